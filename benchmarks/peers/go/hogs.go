package main

import (
	"sync/atomic"
	"time"
)

// withHogs calls sample over and over beside eight goroutines that compute and call nothing.
func withHogs(j *job, sample func() time.Duration) {
	var stop, ended int32
	for i := 0; i < 8; i++ {
		go func() {
			for atomic.LoadInt32(&stop) == 0 {
			}
			atomic.AddInt32(&ended, 1)
		}()
	}
	time.Sleep(20 * time.Millisecond) // until all have begun
	var times []time.Duration
	until(j.period(), 5, func() { times = append(times, sample()) })
	atomic.StoreInt32(&stop, 1)
	for atomic.LoadInt32(&ended) < 8 {
		time.Sleep(time.Millisecond)
	}
	j.report(times)
}

func init() {
	workloads["hogs_sleep"] = func(j *job) {
		withHogs(j, func() time.Duration {
			start := time.Now()
			time.Sleep(time.Millisecond)
			return time.Since(start) - time.Millisecond
		})
	}
	workloads["hogs_echo"] = func(j *job) {
		c := connect(startEchoServer())
		buffer := make([]byte, messageSize)
		withHogs(j, func() time.Duration {
			time.Sleep(time.Millisecond)
			start := time.Now()
			echo(c, buffer)
			return time.Since(start)
		})
	}
}
