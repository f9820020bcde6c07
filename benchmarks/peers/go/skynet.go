package main

func skynet(up chan int64, first, leaves int64) {
	if leaves == 1 {
		up <- first
		return
	}
	c := make(chan int64)
	for i := int64(0); i < 10; i++ {
		go skynet(c, first+i*(leaves/10), leaves/10)
	}
	var sum int64
	for i := 0; i < 10; i++ {
		sum += <-c
	}
	up <- sum
}

func init() {
	workloads["skynet"] = func(j *job) {
		leaves := int64(10)
		for leaves*10 <= int64(j.count(1_000_000, 1)) {
			leaves *= 10
		}
		j.measureOnce(int(leaves), func() {
			c := make(chan int64)
			go skynet(c, 0, leaves)
			if <-c != leaves*(leaves-1)/2 {
				panic("wrong sum")
			}
		})
	}
}
