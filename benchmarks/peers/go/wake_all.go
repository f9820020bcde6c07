package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

func init() {
	workloads["wake_all"] = func(j *job) {
		n := j.countInMemory(1_000_000, 12*1024)
		gate := make(chan struct{})
		var wg sync.WaitGroup
		var arrived int64
		before := residentBytes()
		started := time.Now()
		for i := 0; i < n; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				atomic.AddInt64(&arrived, 1)
				<-gate
			}()
		}
		for atomic.LoadInt64(&arrived) < int64(n) {
			runtime.Gosched()
		}
		runtime.Gosched() // so that the last ones park
		j.note("created_ns", float64(time.Since(started).Nanoseconds())/float64(n))
		j.note("bytes_per_parked", float64(residentBytes()-before)/float64(n))
		j.measureOnce(n, func() {
			close(gate)
			wg.Wait()
		})
	}
}
