package main

import (
	"bytes"
	"net"
	"net/http"
)

var (
	request = []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	body    = []byte("Hello, World!\n")
)

func startHTTPServer() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(body)
	}))
	return l.Addr().String()
}

func get(c net.Conn, buffer []byte) {
	_, err := c.Write(request)
	check(err)
	for have := 0; ; {
		n, err := c.Read(buffer[have:])
		check(err)
		have += n
		if got := buffer[:have]; bytes.Contains(got, []byte("\r\n\r\n")) && bytes.HasSuffix(got, body) {
			return
		}
	}
}

func httpOn(j *job, n, requests int) {
	talk(j, connectAll(startHTTPServer(), connections(n)), requests, 1024, get)
}

func init() {
	workloads["http"] = func(j *job) { httpOn(j, 1, 50_000) }
	workloads["http_64"] = func(j *job) { httpOn(j, 64, 50_000) }
	workloads["http_1k"] = func(j *job) { httpOn(j, 1000, 100_000) }
	workloads["http_10k"] = func(j *job) { httpOn(j, 10_000, 200_000) }
}
