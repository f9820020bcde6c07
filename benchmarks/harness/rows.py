"""The rows of the table of results, and weft's target in each."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Row:
    workload: str
    title: str
    metric: str = "ns_per_op"
    # Target: at most this many times Go's value. Keyed by the number of Ps; the largest key that is not above the
    # number of Ps counts.
    ratio: dict = field(default_factory=dict)
    # The same for the first milestone, in rows where the final target is far off.
    first_ratio: float | None = None
    # Target: at most this many ns, whatever Go takes.
    at_most: float | None = None
    # Target: at most this many times the limit (peers/limits).
    times_limit: float | None = None
    group: str = ""

    @property
    def has_target(self):
        return bool(self.ratio or self.at_most or self.times_limit)

    def ratio_for(self, procs):
        known = [p for p in self.ratio if p <= procs]
        return self.ratio[max(known)] if known else None


# Targets against the other peers: at most this many times the peer's value, in every row that both have.
PEERS = {"tokio": 1.0, "boost.fiber": 0.25}


def _ratio(value):
    return {1: value}


def _group(name, *rows):
    return [replace(row, group=name) for row in rows]


# How many goroutines or timers there are, where the cost of one operation among many is measured.
MANY = {"_1k": "10^3", "_10k": "10^4", "_100k": "10^5", "_1m": "10^6"}
CONNECTIONS = {"": "1 connection", "_64": "64 connections", "_1k": "1000 connections", "_10k": "10^4 connections"}


def _exchange(workload, title, **target):
    return [
        Row(workload, f"{title}, each", **target),
        Row(workload, f"{title}: CPU of each", metric="cpu_ns_per_op"),
        Row(workload, f"{title}: p50", metric="p50_ns"),
        Row(workload, f"{title}: p99", metric="p99_ns"),
        Row(workload, f"{title}: p99.9", metric="p999_ns"),
    ]


LATENESS = "lateness and idling"

ROWS = [
    *_group(
        "goroutines",
        Row("yield", "yield, 8 goroutines", ratio=_ratio(0.20), first_ratio=0.5, times_limit=8),
        Row("spawn_join", "spawn and join", ratio=_ratio(0.25), first_ratio=0.5),
        Row("spawn_batch", "spawn 1000, join 1000", ratio=_ratio(0.25), first_ratio=0.5),
        Row("fan_out", "spawn 10^6 from one, join all"),
        Row("skynet", "skynet, each of 10^6 leaves", ratio=_ratio(0.30), first_ratio=0.5),
        Row("fib", "fork-join fib, each fork"),
        Row("wake_all", "start 10^6 that park, each", metric="created_ns", ratio=_ratio(1.0)),
        Row("wake_all", "wake 10^6 parked, each", ratio=_ratio(0.5)),
    ),
    *_group(
        "channels",
        Row("roundtrip", "unbuffered channel, there and back", ratio=_ratio(0.22), first_ratio=0.5),
        Row("roundtrip_threads", "unbuffered channel, sides tied to threads"),
        Row("buffered_1_1", "buffered channel, 1 to 1", ratio=_ratio(0.40)),
        Row("buffered_8_8", "buffered channel, 8 to 8", ratio=_ratio(0.40)),
        Row("sieve", "prime sieve, each hop of 1000 primes", ratio=_ratio(0.30)),
        Row("select_4", "select of 4", ratio=_ratio(0.35)),
        Row("select_default", "select with default, nothing ready", ratio=_ratio(1.0)),
        Row("select_timeout", "select with timeout, a value comes"),
    ),
    *_group(
        "locks",
        Row("wait_group", "wait group of 1000"),
        Row("mutex_64", "64 goroutines on one mutex", ratio={1: 0.8, 2: 0.4}),
        Row("mutex_work", "8 goroutines: 2 us with one mutex, 2 us without it"),
        Row("rwmutex_64", "64 goroutines on one rwmutex, 1 of 16 writes"),
        Row("condition", "condition variable, there and back"),
    ),
    *_group(
        "timers",
        Row("timer_create_stop", "timer nobody waits for: create and stop", ratio=_ratio(0.30)),
        Row("timer_reset", "timer nobody waits for: reset", ratio=_ratio(0.40)),
        Row("after_func_stop", "after_func: create and stop"),
        Row("after_func_reset", "after_func: reset"),
        Row("timer_add_1m", "timer: add to a heap of 10^6", ratio=_ratio(0.50)),
        Row("timer_stop_1m", "timer: stop in a heap of 10^6", ratio=_ratio(0.50)),
        Row("after_func_1m", "10^6 after_func within 1 ms, each", ratio=_ratio(0.35)),
        Row("sleep_1m", "10^6 goroutines sleep 100 ms, each", ratio=_ratio(0.70)),
        Row("sleepers", "10^4 goroutines sleep 1 s, CPU each time", metric="cpu_ns_per_op", ratio=_ratio(0.50)),
        Row("sleepers_short", "1000 goroutines sleep 5 to 12 ms, CPU each time", metric="cpu_ns_per_op"),
        Row("sleepers_short", "1000 goroutines sleep 5 to 12 ms: late, p50", metric="p50_ns"),
        Row("sleepers_short", "1000 goroutines sleep 5 to 12 ms: late, p99", metric="p99_ns"),
    ),
    *_group(
        "growth",
        *(Row("yield" + at, f"yield, {n} goroutines") for at, n in MANY.items()),
        *(Row("ask" + at, f"one of {n} goroutines that wait is asked, and answers") for at, n in MANY.items()),
        *(Row("reset" + at, f"one of {n} timers is set anew") for at, n in MANY.items()),
    ),
    *_group(
        LATENESS,
        Row("late_50us", "sleep 50 us: late, p50", metric="p50_ns", at_most=15e3),
        Row("late_50us", "sleep 50 us: late, p99", metric="p99_ns"),
        Row("late_200us", "sleep 200 us: late, p50", metric="p50_ns", at_most=15e3),
        Row("late_200us", "sleep 200 us: late, p99", metric="p99_ns"),
        Row("late_1ms", "sleep 1 ms: late, p50", metric="p50_ns"),
        Row("late_1ms", "sleep 1 ms: late, p99", metric="p99_ns", at_most=60e3),
        Row("late_1ms", "sleep 1 ms: CPU of each", metric="cpu_ns_per_op"),
        Row("late_5ms", "sleep 5 ms: late, p50", metric="p50_ns"),
        Row("late_5ms", "sleep 5 ms: late, p99", metric="p99_ns", at_most=60e3),
        Row("late_5ms", "sleep 5 ms: CPU of each", metric="cpu_ns_per_op"),
        Row("hogs_sleep", "sleep 1 ms beside 8 hogs: late, p50", metric="p50_ns", at_most=0.5e6),
        Row("hogs_sleep", "sleep 1 ms beside 8 hogs: late, p99", metric="p99_ns", at_most=2e6),
        Row("hogs_sleep", "sleep 1 ms beside 8 hogs: late, max", metric="max_ns", at_most=10e6),
        Row("hogs_echo", "echo beside 8 hogs, p50", metric="p50_ns"),
        Row("hogs_echo", "echo beside 8 hogs, p99", metric="p99_ns", at_most=4e6),
        Row("hogs_many", "10 ms ticker beside 10^4 hogs and 10^4 blocked reads: late, p50", metric="p50_ns"),
        Row("hogs_many", "10 ms ticker beside 10^4 hogs and 10^4 blocked reads: late, p99", metric="p99_ns", at_most=20e6),
        Row("wake_idle", "idle process, a message comes: late, p50", metric="p50_ns"),
        Row("wake_idle", "idle process, a message comes: late, p99", metric="p99_ns"),
        Row("idle", "idle for 1 s with 1000 parked: CPU", metric="cpu_ns_per_op"),
    ),
    *_group(
        "connections",
        *(row for at, what in CONNECTIONS.items() for row in _exchange("echo" + at, f"echo, {what}", times_limit=1.08)),
        *(row for at, what in CONNECTIONS.items() for row in _exchange("http" + at, f"HTTP, {what}")),
    ),
    *_group(
        "memory",
        Row("wake_all", "memory of a parked goroutine", metric="bytes_per_parked"),
        Row("echo_10k", "memory of a connection, both ends", metric="bytes_per_connection"),
    ),
]

# Costs that should not grow: what is counted, and the workloads for each number of it. The target is weft's time with
# the greatest number, at most so many times its time with the least.
MOST_GROWTH = 1.5
GROWTH = {
    "yield, of so many goroutines": {n: "yield" + at for at, n in MANY.items()},
    "ask one of so many goroutines": {n: "ask" + at for at, n in MANY.items()},
    "set anew one of so many timers": {n: "reset" + at for at, n in MANY.items()},
    "echo, of so many connections": {"10^3": "echo_1k", "10^4": "echo_10k"},
    "HTTP, of so many connections": {"10^3": "http_1k", "10^4": "http_10k"},
}

WORKLOADS = list(dict.fromkeys(row.workload for row in ROWS))
# The workloads that `quick` leaves out, since they take long, are much like another one, or say something else when
# they are small.
SLOW = {
    *(name for family in GROWTH.values() for name in family.values()),
    "wait_group",
    "roundtrip_threads",
    "timer_stop_1m",
    "after_func_stop",
    "after_func_reset",
    "sleep_1m",
    "sleepers",
    "sleepers_short",
    "late_50us",
    "late_200us",
    "late_5ms",
    "hogs_echo",
    "hogs_many",
    "idle",
    "http_64",
}
