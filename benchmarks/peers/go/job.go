package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"
)

// A job is one run of one workload: its parameters and its results, as bench::job in support/bench.hpp.
type job struct {
	workload string
	procs    int
	scale    float64

	nsPerOp float64
	ops     int
	notes   []note
}

type note struct {
	name  string
	value float64
}

// count returns the number of operations: full at scale 1, in proportion at other scales, rounded down to a multiple of
// unit, but not to 0.
func (j *job) count(full, unit int) int {
	n := int(float64(full) * j.scale)
	if n/unit == 0 {
		return unit
	}
	return n / unit * unit
}

// countInMemory is the same for things that need this much memory each: no more than fit into three quarters of the
// memory that is free.
func (j *job) countInMemory(full, bytesEach int) int {
	n := j.count(full, 1)
	if fit := procField("/proc/meminfo", "MemAvailable") / 4 * 3 / bytesEach; fit < n {
		return fit
	}
	return n
}

// connections returns how many connections can have both ends in this process: wanted, or fewer if the descriptors do
// not suffice. Go itself raises the soft limit when a process starts.
func connections(wanted int) int {
	var files syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if most := int(files.Cur-100) / 2; most < wanted {
		return most
	}
	return wanted
}

func (j *job) period() time.Duration {
	if j.scale < 0.5 {
		return time.Second
	}
	return time.Duration(2 * j.scale * float64(time.Second))
}

// measure times f(n), after a warm-up with fewer operations.
func (j *job) measure(n int, f func(n int)) {
	f(n/16 + 1)
	j.measureOnce(n, func() { f(n) })
}

func (j *job) measureOnce(n int, f func()) {
	cpu := cpuTime()
	start := time.Now()
	f()
	j.nsPerOp = float64(time.Since(start)) / float64(n)
	j.ops = n
	j.note("cpu_ns_per_op", float64(cpuTime()-cpu)/float64(n))
}

// report reports percentiles, and the median as ns_per_op.
func (j *job) report(samples []time.Duration) {
	j.percentiles(samples)
	j.nsPerOp = float64(samples[len(samples)/2])
	j.ops = len(samples)
}

// percentiles reports percentiles in addition to what was measured.
func (j *job) percentiles(samples []time.Duration) {
	sort.Slice(samples, func(a, b int) bool { return samples[a] < samples[b] })
	percentile := func(p float64) float64 {
		i := int(p / 100 * float64(len(samples)))
		if i == len(samples) {
			i--
		}
		return float64(samples[i])
	}
	j.note("p50_ns", percentile(50))
	j.note("p99_ns", percentile(99))
	j.note("p999_ns", percentile(99.9))
	j.note("max_ns", percentile(100))
}

func (j *job) note(name string, value float64) { j.notes = append(j.notes, note{name, value}) }

func (j *job) print() {
	fmt.Printf(`{"workload": %q, "procs": %d, "ns_per_op": %.2f, "ops": %d`, j.workload, j.procs, j.nsPerOp, j.ops)
	for _, n := range j.notes {
		fmt.Printf(`, %q: %.2f`, n.name, n.value)
	}
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	fmt.Printf(`, "peak_bytes": %d}`+"\n", usage.Maxrss*1024)
}

// cpuTime returns the CPU time of all threads of this process, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func residentBytes() int { return procField("/proc/self/smaps_rollup", "Rss") }

// procField returns the number in a line "Name:   123 kB" of a file in /proc, in bytes; 0 if there is no such line.
func procField(file, name string) int {
	f, err := os.Open(file)
	check(err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kib int
		if strings.HasPrefix(s.Text(), name+":") {
			fmt.Sscanf(s.Text()[len(name)+1:], "%d", &kib)
			return kib * 1024
		}
	}
	return 0
}
