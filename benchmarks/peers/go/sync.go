package main

import "sync"

// work takes about 2 µs: it waits for one multiplication after the other.
//
//go:noinline
func work() {
	x := uint64(1)
	for i := 0; i < 2000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 {
		panic("not zero")
	}
}

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
	workloads["mutex_work"] = func(j *job) {
		j.measure(j.count(100_000, 8), func(n int) {
			var m sync.Mutex
			var wg sync.WaitGroup
			for g := 0; g < 8; g++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := 0; i < n/8; i++ {
						m.Lock()
						work()
						m.Unlock()
						work()
					}
				}()
			}
			wg.Wait()
		})
	}
	workloads["rwmutex_64"] = func(j *job) {
		j.measure(j.count(5_000_000, 64), func(n int) {
			var m sync.RWMutex
			var wg sync.WaitGroup
			counter := 0
			for g := 0; g < 64; g++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					seen := 0
					for i := 0; i < n/64; i++ {
						if i%16 == 0 {
							m.Lock()
							counter++
							m.Unlock()
						} else {
							m.RLock()
							seen += counter
							m.RUnlock()
						}
					}
				}()
			}
			wg.Wait()
		})
	}
	workloads["condition"] = func(j *job) {
		j.measure(j.count(500_000, 1), func(n int) {
			var m sync.Mutex
			changed := sync.NewCond(&m)
			turn := 0
			var wg sync.WaitGroup
			for g := 0; g < 2; g++ {
				me := g
				wg.Add(1)
				go func() {
					defer wg.Done()
					m.Lock()
					defer m.Unlock()
					for i := 0; i < n; i++ {
						for turn != me {
							changed.Wait()
						}
						turn = 1 - me
						changed.Signal()
					}
				}()
			}
			wg.Wait()
		})
	}
}
