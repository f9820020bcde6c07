package main

import (
	"math/rand"
	"runtime"
	"sync"
	"sync/atomic"
)

func takeTurns(j *job, goroutines int) {
	each := j.count(8_000_000, goroutines) / goroutines
	var begun, done atomic.Int64
	var start, end atomic.Bool
	gate := make(chan struct{}) // nobody takes turns with the spawner
	var wg sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-gate
			begun.Add(1)
			for !start.Load() {
				runtime.Gosched()
			}
			for k := 0; k < each; k++ {
				runtime.Gosched()
			}
			done.Add(1)
			for !end.Load() {
				runtime.Gosched()
			}
		}()
	}
	close(gate)
	for begun.Load() < int64(goroutines) {
		runtime.Gosched()
	}
	j.measureOnce(goroutines*(each+1), func() {
		start.Store(true)
		for done.Load() < int64(goroutines) {
			runtime.Gosched()
		}
	})
	end.Store(true)
	wg.Wait()
}

func ask(j *job, goroutines int) {
	var begun atomic.Int64
	questions := make([]chan int, goroutines)
	answers := make(chan int)
	for i := range questions {
		q := make(chan int)
		questions[i] = q
		go func() {
			begun.Add(1)
			for v := range q {
				answers <- v
			}
		}()
	}
	for begun.Load() < int64(goroutines) {
		runtime.Gosched()
	}
	runtime.Gosched() // so that the last ones wait
	rand.New(rand.NewSource(1)).Shuffle(goroutines, func(a, b int) {
		questions[a], questions[b] = questions[b], questions[a]
	})
	j.measure(j.count(1_000_000, 1), func(n int) {
		for i := 0; i < n; i++ {
			questions[i%goroutines] <- 1
			<-answers
		}
	})
	for _, q := range questions {
		close(q)
	}
}

func resetTimers(j *job, timers int) {
	all := farTimers(timers)
	rand.New(rand.NewSource(1)).Shuffle(timers, func(a, b int) { all[a], all[b] = all[b], all[a] })
	random := minstd(1)
	j.measure(j.count(2_000_000, 1), func(n int) {
		for i := 0; i < n; i++ {
			all[i%timers].Reset(random.far())
		}
	})
	for _, t := range all {
		t.Stop()
	}
}

func init() {
	for name, n := range map[string]int{"1k": 1000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000} {
		n := n
		workloads["yield_"+name] = func(j *job) { takeTurns(j, n) }
		workloads["ask_"+name] = func(j *job) { ask(j, n) }
		workloads["reset_"+name] = func(j *job) { resetTimers(j, n) }
	}
}
