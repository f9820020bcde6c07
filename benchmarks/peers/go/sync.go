package main

import "sync"

func init() {
	workloads["mutex_64"] = func(j *job) {
		j.measure(j.count(10_000_000, 64), func(n int) {
			var m sync.Mutex
			var wg sync.WaitGroup
			counter := 0
			for g := 0; g < 64; g++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := 0; i < n/64; i++ {
						m.Lock()
						counter++
						m.Unlock()
					}
				}()
			}
			wg.Wait()
			sink = counter
		})
	}
}
