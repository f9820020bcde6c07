// The benchmark program for Go: the same workloads and the same command line as weft's (support/bench.hpp).
//
//	PROGRAM WORKLOAD PROCS [SCALE]     runs one and prints one line of JSON
//	PROGRAM list                       prints the names of its workloads
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

var workloads = map[string]func(*job){}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "list" {
		var names []string
		for name := range workloads {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: %s WORKLOAD PROCS [SCALE] | list\n", os.Args[0])
		os.Exit(2)
	}
	run := workloads[os.Args[1]]
	procs, _ := strconv.Atoi(os.Args[2])
	if run == nil || procs < 1 {
		fmt.Fprintf(os.Stderr, "there is no workload %s for %s processors here\n", os.Args[1], os.Args[2])
		os.Exit(2)
	}
	scale := 1.0
	if len(os.Args) == 4 {
		scale, _ = strconv.ParseFloat(os.Args[3], 64)
	}
	runtime.GOMAXPROCS(procs)
	j := &job{workload: os.Args[1], procs: procs, scale: scale}
	run(j)
	j.print()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// until calls f until the period is over, and at least `least` times.
func until(period time.Duration, least int, f func()) {
	end := time.Now().Add(period)
	for i := 0; i < least || time.Now().Before(end); i++ {
		f()
	}
}
