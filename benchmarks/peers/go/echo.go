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

// startEchoServer listens on a free port and answers every connection with what it sends, a goroutine each.
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

// echo sends a message there and back.
func echo(c net.Conn, buffer []byte) {
	_, err := c.Write(buffer)
	check(err)
	_, err = io.ReadFull(c, buffer)
	check(err)
}

// talk measures exchange, called on all of the connections at once, full times altogether, and how long one takes. Each
// connection has a buffer.
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
		var start time.Time // of all: who waits for its first turn does not hide it
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
	time.Sleep(50 * time.Millisecond) // all are accepted
	j.note("bytes_per_connection", float64(residentBytes()-before)/float64(len(conns)))
	talk(j, conns, messages, messageSize, echo)
}

func init() {
	workloads["echo"] = func(j *job) { echoOn(j, 1, 50_000) }
	workloads["echo_64"] = func(j *job) { echoOn(j, 64, 50_000) }
	workloads["echo_1k"] = func(j *job) { echoOn(j, 1000, 100_000) }
	workloads["echo_10k"] = func(j *job) { echoOn(j, 10_000, 200_000) }
}
