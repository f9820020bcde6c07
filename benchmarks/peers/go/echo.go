package main

import (
	"io"
	"net"
	"sync"
)

const messageSize = 64

// startEchoServer listens on a free port and answers every connection with what it sends, a goroutine each.
func startEchoServer() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			c, err := l.Accept()
			check(err)
			go func() {
				buffer := make([]byte, messageSize)
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

func echoOn(j *job, connections int) {
	server := startEchoServer()
	var conns []net.Conn
	for i := 0; i < connections; i++ {
		conns = append(conns, connect(server))
	}
	j.measure(j.count(50_000, connections), func(n int) {
		var wg sync.WaitGroup
		for i := range conns {
			c := conns[i]
			wg.Add(1)
			go func() {
				defer wg.Done()
				buffer := make([]byte, messageSize)
				for i := 0; i < n/connections; i++ {
					echo(c, buffer)
				}
			}()
		}
		wg.Wait()
	})
}

func init() {
	workloads["echo"] = func(j *job) { echoOn(j, 1) }
	workloads["echo_64"] = func(j *job) { echoOn(j, 64) }
}
