package main

func generate(out chan<- int) {
	for i := 2; ; i++ {
		out <- i
	}
}

func filter(in <-chan int, out chan<- int, prime int) {
	for {
		if v := <-in; v%prime != 0 {
			out <- v
		}
	}
}

// hops returns how many values go through the channels, all together, until the last of that many primes is known.
func hops(primes int) int {
	var known []int
	n := 0
next:
	for i := 2; len(known) < primes; i++ {
		n++
		for _, p := range known {
			if i%p == 0 {
				continue next
			}
			n++
		}
		known = append(known, i)
	}
	return n
}

func init() {
	workloads["sieve"] = func(j *job) {
		const primes = 1000
		j.measureOnce(hops(primes), func() {
			c := make(chan int)
			go generate(c)
			for i := 0; ; i++ {
				prime := <-c
				if i+1 == primes {
					break
				}
				next := make(chan int)
				go filter(c, next, prime)
				c = next
			}
		})
	}
}
