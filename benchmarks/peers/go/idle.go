package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// monotonic reads a clock that is the same in all processes, in ns.
func monotonic() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func init() {
	workloads["idle"] = func(j *job) {
		seconds := j.count(4, 1)
		startEchoServer()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for i := 0; i < 1000; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-gate
			}()
		}
		time.Sleep(50 * time.Millisecond)
		j.measureOnce(seconds, func() { time.Sleep(time.Duration(seconds) * time.Second) })
		close(gate)
		wg.Wait()
	}
	workloads["wake_idle"] = func(j *job) {
		n := j.count(1000, 1000)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		check(err)
		// The sender is the same for all peers. It sends the current time once a millisecond.
		other := exec.Command(os.Getenv("BENCH_TICKS"), "ticks", port, strconv.Itoa(n))
		other.Stderr = os.Stderr
		check(other.Start())
		c, err := l.Accept()
		check(err)
		var late []time.Duration
		for i := 0; i < n; i++ {
			var message [8]byte
			_, err := io.ReadFull(c, message[:])
			check(err)
			late = append(late, time.Duration(monotonic()-int64(binary.LittleEndian.Uint64(message[:]))))
		}
		check(other.Wait())
		j.report(late)
	}
}
