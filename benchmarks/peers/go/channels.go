package main

import (
	"runtime"
	"sync"
)

func roundtrip(j *job, count int, onThreads bool) {
	ping, pong := make(chan int), make(chan int)
	go func() {
		if onThreads {
			runtime.LockOSThread()
		}
		for v := range ping {
			pong <- v
		}
	}()
	if onThreads {
		runtime.LockOSThread()
	}
	j.measure(j.count(count, 1), func(n int) {
		v := 0
		for i := 0; i < n; i++ {
			ping <- v
			v = <-pong
		}
	})
	close(ping)
}

func init() {
	workloads["roundtrip"] = func(j *job) { roundtrip(j, 1_000_000, false) }
	workloads["roundtrip_threads"] = func(j *job) { roundtrip(j, 40_000, true) }
	workloads["buffered_1_1"] = func(j *job) { throughBuffer(j, 1) }
	workloads["buffered_8_8"] = func(j *job) { throughBuffer(j, 8) }
}

var sink int

func throughBuffer(j *job, pairs int) {
	j.measure(j.count(2_000_000, pairs), func(n int) {
		each := n / pairs
		c := make(chan int, 128)
		var producers, consumers sync.WaitGroup
		producers.Add(pairs)
		consumers.Add(pairs)
		for p := 0; p < pairs; p++ {
			go func() {
				defer producers.Done()
				for i := 0; i < each; i++ {
					c <- 1
				}
			}()
			go func() {
				defer consumers.Done()
				for range c {
				}
			}()
		}
		producers.Wait()
		close(c)
		consumers.Wait()
	})
}
