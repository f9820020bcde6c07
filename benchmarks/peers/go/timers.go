package main

import (
	"math/rand"
	"sync"
	"sync/atomic"
	"time"
)

func onEachProc(j *job, n int, f func(n int)) {
	var wg sync.WaitGroup
	for p := 0; p < j.procs; p++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(n / j.procs)
		}()
	}
	wg.Wait()
}

// minstd is C++'s minstd_rand, which takes less time than a rand.Rand.
type minstd uint64

func (m *minstd) below(n int) int {
	*m = *m * 48271 % 0x7fffffff
	return int(uint64(*m) % uint64(n))
}

// far returns a time between an hour and an hour and a second.
func (m *minstd) far() time.Duration {
	return time.Hour + time.Duration(m.below(1_000_000))*time.Microsecond
}

// farTimers uses AfterFunc, since a timer with a channel need not be in the heap while nobody waits for it.
func farTimers(n int) []*time.Timer {
	random := minstd(1)
	timers := make([]*time.Timer, 0, n)
	for i := 0; i < n; i++ {
		timers = append(timers, time.AfterFunc(random.far(), func() {}))
	}
	return timers
}

// sleepers measures the CPU time for each wake-up of a process in which 10,000 goroutines sleep 1 s over and over.
func sleepers(j *job) {
	const n = 10_000
	seconds := 2
	if j.scale > 0.5 {
		seconds = int(4 * j.scale)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := 0; i < n; i++ {
		offset := time.Duration(i) * 100 * time.Microsecond
		wg.Add(1)
		go func() {
			defer wg.Done()
			time.Sleep(offset)
			for !stop.Load() {
				time.Sleep(time.Second)
			}
		}()
	}
	time.Sleep(1500 * time.Millisecond)
	j.measureOnce(n*seconds, func() { time.Sleep(time.Duration(seconds) * time.Second) })
	stop.Store(true)
	wg.Wait()
}

// sleepersShort has 1000 goroutines sleep for 5 to 12 ms over and over. It measures the CPU time for each sleep, and
// how late one goroutine in ten wakes.
func sleepersShort(j *job) {
	const n = 1000
	var sleeps atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	late := make([][]time.Duration, n)
	for i := range late {
		i := i
		d := 5*time.Millisecond + time.Duration(i)*7*time.Microsecond
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				start := time.Now()
				time.Sleep(d)
				sleeps.Add(1)
				if i%10 == 0 {
					late[i] = append(late[i], time.Since(start)-d)
				}
			}
		}()
	}
	time.Sleep(200 * time.Millisecond)
	cpu, before := cpuTime(), sleeps.Load()
	time.Sleep(j.period())
	j.ops = int(sleeps.Load() - before)
	j.nsPerOp = float64(j.period()) / float64(j.ops)
	j.note("cpu_ns_per_op", float64(cpuTime()-cpu)/float64(j.ops))
	stop.Store(true)
	wg.Wait()
	var all []time.Duration
	for _, l := range late {
		all = append(all, l...)
	}
	j.percentiles(all)
}

func lateness(j *job, d time.Duration) {
	var late []time.Duration
	cpu := cpuTime()
	until(j.period(), 1, func() {
		start := time.Now()
		time.Sleep(d)
		late = append(late, time.Since(start)-d)
	})
	j.note("cpu_ns_per_op", float64(cpuTime()-cpu)/float64(len(late)))
	j.report(late)
}

var kept []*time.Timer

func init() {
	workloads["sleepers"] = sleepers
	workloads["sleepers_short"] = sleepersShort
	workloads["timer_create_stop"] = func(j *job) {
		j.measure(j.count(2_000_000, j.procs), func(n int) {
			onEachProc(j, n, func(n int) {
				for i := 0; i < n; i++ {
					time.NewTimer(time.Hour).Stop()
				}
			})
		})
	}
	workloads["timer_reset"] = func(j *job) {
		j.measure(j.count(5_000_000, j.procs), func(n int) {
			onEachProc(j, n, func(n int) {
				t := time.NewTimer(time.Hour)
				for i := 0; i < n; i++ {
					t.Reset(time.Hour)
				}
			})
		})
	}
	workloads["after_func_stop"] = func(j *job) {
		j.measure(j.count(2_000_000, j.procs), func(n int) {
			onEachProc(j, n, func(n int) {
				for i := 0; i < n; i++ {
					time.AfterFunc(time.Hour, func() {}).Stop()
				}
			})
		})
	}
	workloads["after_func_reset"] = func(j *job) {
		j.measure(j.count(5_000_000, j.procs), func(n int) {
			onEachProc(j, n, func(n int) {
				t := time.AfterFunc(time.Hour, func() {})
				for i := 0; i < n; i++ {
					t.Reset(time.Hour)
				}
			})
		})
	}
	workloads["timer_add_1m"] = func(j *job) {
		n := j.count(1_000_000, 1)
		others := farTimers(n)
		j.measureOnce(n, func() { kept = farTimers(n) })
		kept = append(kept, others...)
	}
	workloads["timer_stop_1m"] = func(j *job) {
		n := j.count(1_000_000, 1)
		timers := farTimers(n)
		rand.New(rand.NewSource(2)).Shuffle(n, func(a, b int) { timers[a], timers[b] = timers[b], timers[a] })
		j.measureOnce(n, func() {
			for _, t := range timers {
				t.Stop()
			}
		})
	}
	workloads["after_func_1m"] = func(j *job) {
		n := j.countInMemory(1_000_000, 12*1024)
		j.measureOnce(n, func() {
			var wg sync.WaitGroup
			wg.Add(n)
			random := minstd(3)
			for i := 0; i < n; i++ {
				time.AfterFunc(time.Duration(random.below(1_000_000)), wg.Done)
			}
			wg.Wait()
		})
	}
	workloads["sleep_1m"] = func(j *job) {
		n := j.countInMemory(1_000_000, 12*1024)
		j.measureOnce(n, func() {
			var wg sync.WaitGroup
			for i := 0; i < n; i++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					time.Sleep(100 * time.Millisecond)
				}()
			}
			wg.Wait()
		})
	}
	workloads["late_50us"] = func(j *job) { lateness(j, 50*time.Microsecond) }
	workloads["late_200us"] = func(j *job) { lateness(j, 200*time.Microsecond) }
	workloads["late_1ms"] = func(j *job) { lateness(j, time.Millisecond) }
	workloads["late_5ms"] = func(j *job) { lateness(j, 5*time.Millisecond) }
}
