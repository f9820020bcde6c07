package main

func fib(n int) int {
	if n < 2 {
		return n
	}
	left := make(chan int, 1)
	go func() { left <- fib(n - 1) }()
	right := fib(n - 2)
	return <-left + right
}

func init() {
	workloads["fib"] = func(j *job) {
		n, spawned := 2, 1
		for before := 0; spawned < j.count(800_000, 1); n++ {
			before, spawned = spawned, before+spawned+1
		}
		j.measureOnce(spawned, func() { sink = fib(n) })
	}
}
