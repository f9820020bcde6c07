"""Runs every workload on every peer, one after the other, round by round."""

import json
import os
import random
import subprocess
import sys
import time

TIMEOUT = 120  # seconds for one run


def default_procs():
    """1, 2, 4, ... and all CPUs."""
    cpus = len(os.sched_getaffinity(0))
    return sorted({1, 2, cpus} | {1 << i for i in range(cpus.bit_length()) if 1 << i <= cpus})


def take_priority():
    """Called in the child: gives it priority over everything else on the machine, if permitted (it takes root)."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        # Where the kernel groups processes by session (autogroup), niceness counts only within a session. So the
        # session gets a niceness, too: -5, three times another session's share, which is enough. With more, from -10
        # on, Linux 6.18 lets short sleepers beside hogs wait for whole turns.
        with open("/proc/self/autogroup", "w") as f:
            f.write("-5")
    except OSError:
        pass


def run_once(peer, workload, procs, scale, priority):
    """Runs the program once. Returns the JSON that it printed, or {"error": why there is none}."""
    command = [str(peer.program), workload, str(procs), str(scale)]
    env = {k: v for k, v in os.environ.items() if k not in ("WEFT_PROCS", "WEFT_DEBUG", "GOMAXPROCS", "GODEBUG", "GOGC")}
    ahead = {"start_new_session": True, "preexec_fn": take_priority} if priority else {}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=env, **ahead)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {TIMEOUT} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return {"error": f"exit status {done.returncode}" + (f": {lines[0]}" if lines else "")}
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = None
    return result if isinstance(result, dict) else {"error": f"it printed no JSON object: {done.stdout[:100]!r}"}


def plan(peers, known, workloads, procs, number):
    """The runs of round `number`, those of one workload next to each other. `known`: the workloads that each peer has.

    The order of the peers differs from round to round and from workload to workload, but not from run to run. A program
    finds the machine as the one before it left it, for example with memory that the host has just handed out. So none
    should always come after the same one.
    """
    todo = []
    for w in workloads:
        for p in procs:
            order = [peer for peer in peers if w in known[peer.name] and (peer.any_procs or p == 1)]
            random.Random(f"{number} {w} {p}").shuffle(order)
            todo += [(peer, w, p) for peer in order]
    return todo


def measure(peers, workloads, procs, scale, rounds, budget=None, priority=False):
    """Does all runs and returns them as dictionaries. Stops before a round that would exceed the budget, in seconds."""
    runs = []
    known = {p.name: p.workloads() for p in peers}
    gave_up = set()  # runs that failed, which are not tried again
    begin = time.monotonic()
    for number in range(1, rounds + 1):
        round_begin = time.monotonic()
        todo = plan(peers, known, workloads, procs, number)
        for i, (peer, workload, p) in enumerate(todo, 1):
            if (peer.name, workload, p) in gave_up:
                continue
            progress(f"round {number}/{rounds}, {i}/{len(todo)}: {workload} on {p} P, {peer.name}")
            result = run_once(peer, workload, p, scale, priority)
            if "error" in result:
                gave_up.add((peer.name, workload, p))
            runs.append({"round": number, "peer": peer.name, **result, "workload": workload, "procs": p})
        now = time.monotonic()
        if budget and now - begin + (now - round_begin) > budget:
            break
    progress("")
    return runs


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
