package main

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	messageSize  = 64
	serverBuffer = 1024 // a server does not know how long messages are
)

// startEchoServer starts a server on a free port that sends back what it receives, with one goroutine for each
// connection.
func startEchoServer() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			c, err := l.Accept()
			check(err)
			go func() {
				buffer := make([]byte, serverBuffer)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					c.Write(buffer[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}

func connect(address string) net.Conn {
	c, err := net.Dial("tcp", address)
	check(err)
	return c
}

// echo sends a message and reads it back.
func echo(c net.Conn, buffer []byte) {
	_, err := c.Write(buffer)
	check(err)
	_, err = io.ReadFull(c, buffer)
	check(err)
}

// talk calls exchange on all connections at once, full times in all at scale 1. It measures the time for each call, and
// the percentiles of how long one takes. Each connection has a buffer of its own.
func talk(j *job, conns []net.Conn, full, bufferSize int, exchange func(c net.Conn, buffer []byte)) {
	var times []time.Duration
	j.measure(j.count(full, len(conns)), func(n int) {
		each := n / len(conns)
		if each == 0 {
			each = 1
		}
		of := make([][]time.Duration, len(conns))
		var wg sync.WaitGroup
		gate := make(chan struct{})
		var start time.Time // the same for all, so that the wait for a goroutine's first turn counts
		for k := range conns {
			i, c := k, conns[k]
			wg.Add(1)
			go func() {
				defer wg.Done()
				buffer := make([]byte, bufferSize)
				<-gate
				last := start
				for k := 0; k < each; k++ {
					exchange(c, buffer)
					now := time.Now()
					of[i] = append(of[i], now.Sub(last))
					last = now
				}
			}()
		}
		start = time.Now()
		close(gate)
		wg.Wait()
		times = nil
		for _, some := range of {
			times = append(times, some...)
		}
	})
	j.percentiles(times)
}

func connectAll(address string, n int) []net.Conn {
	var conns []net.Conn
	for i := 0; i < n; i++ {
		conns = append(conns, connect(address))
	}
	return conns
}

func echoOn(j *job, n, messages int) {
	before := residentBytes()
	conns := connectAll(startEchoServer(), connections(n))
	time.Sleep(50 * time.Millisecond) // until all are accepted
	j.note("bytes_per_connection", float64(residentBytes()-before)/float64(len(conns)))
	talk(j, conns, messages, messageSize, echo)
}

func init() {
	workloads["echo"] = func(j *job) { echoOn(j, 1, 50_000) }
	workloads["echo_64"] = func(j *job) { echoOn(j, 64, 50_000) }
	workloads["echo_1k"] = func(j *job) { echoOn(j, 1000, 100_000) }
	workloads["echo_10k"] = func(j *job) { echoOn(j, 10_000, 200_000) }
}
