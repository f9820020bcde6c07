package main

import "time"

func init() {
	workloads["select_4"] = func(j *job) {
		var chans [4]chan int
		for i := range chans {
			c := make(chan int)
			chans[i] = c
			go func() {
				for {
					c <- 1
				}
			}()
		}
		a, b, c, d := chans[0], chans[1], chans[2], chans[3]
		j.measure(j.count(1_000_000, 1), func(n int) {
			sum := 0
			for i := 0; i < n; i++ {
				select {
				case v := <-a:
					sum += v
				case v := <-b:
					sum += v
				case v := <-c:
					sum += v
				case v := <-d:
					sum += v
				}
			}
			sink = sum
		})
	}
	workloads["select_default"] = func(j *job) {
		c := make(chan int)
		j.measure(j.count(20_000_000, 1), func(n int) {
			for i := 0; i < n; i++ {
				select {
				case <-c:
				default:
				}
			}
		})
	}
	workloads["select_timeout"] = func(j *job) {
		c := make(chan int)
		go func() {
			for {
				c <- 1
			}
		}()
		j.measure(j.count(500_000, 1), func(n int) {
			sum := 0
			for i := 0; i < n; i++ {
				select {
				case v := <-c:
					sum += v
				case <-time.After(time.Second):
					panic("timeout")
				}
			}
			sink = sum
		})
	}
}
