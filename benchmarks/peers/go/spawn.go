package main

import "sync"

const batch = 1000

func init() {
	workloads["spawn_join"] = func(j *job) {
		j.measure(j.count(1_000_000, 1), func(n int) {
			var wg sync.WaitGroup
			for i := 0; i < n; i++ {
				wg.Add(1)
				go wg.Done()
				wg.Wait()
			}
		})
	}
	workloads["fan_out"] = func(j *job) {
		j.measure(j.count(1_000_000, 1), func(n int) {
			var wg sync.WaitGroup
			for i := 0; i < n; i++ {
				wg.Add(1)
				go wg.Done()
			}
			wg.Wait()
		})
	}
	batches := func(j *job) {
		j.measure(j.count(2_000_000, batch), func(n int) {
			var wg sync.WaitGroup
			for i := 0; i < n; i += batch {
				for k := 0; k < batch; k++ {
					wg.Add(1)
					go wg.Done()
				}
				wg.Wait()
			}
		})
	}
	workloads["spawn_batch"] = batches
	workloads["wait_group"] = batches
}
