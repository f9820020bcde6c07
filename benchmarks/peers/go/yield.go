package main

import (
	"runtime"
	"sync"
)

func init() {
	workloads["yield"] = func(j *job) {
		j.measure(j.count(4_000_000, 1), func(n int) {
			var wg sync.WaitGroup
			for g := 0; g < 8; g++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := 0; i < n/8; i++ {
						runtime.Gosched()
					}
				}()
			}
			wg.Wait()
		})
	}
}
