"""Describes the machine that was measured on, and how busy other processes kept it."""

import json
import os
import resource
from datetime import datetime, timezone
from pathlib import Path

from harness.peers import Failure, output


def _field(file, name):
    for line in Path(file).read_text().splitlines():
        if line.split(":")[0].strip() == name:
            return line.split(":", 1)[1].strip()
    return ""


def _compiler(build):
    try:
        options = {o["name"]: o["value"] for o in json.loads(output(["meson", "introspect", build, "--buildoptions"]))}
        targets = json.loads(output(["meson", "introspect", build, "--targets"]))
        command = next(s["compiler"] for t in targets for s in t["target_sources"] if s.get("language") == "cpp")
        return f"{output([*command, '--version']).splitlines()[0]}, {options['buildtype']}"
    except (Failure, FileNotFoundError, KeyError, StopIteration):
        return "unknown"


def describe(build):
    uname = os.uname()
    memory = int(_field("/proc/meminfo", "MemTotal").split()[0]) // 2**20
    return {
        "when": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _field("/proc/cpuinfo", "model name") or uname.machine,
        "cpus": len(os.sched_getaffinity(0)),
        "memory": f"{memory} GiB",
        "virtual": "hypervisor" in _field("/proc/cpuinfo", "flags").split(),
        "kernel": f"{uname.sysname} {uname.release} {uname.machine}",
        "compiler": _compiler(build),
    }


class OtherLoad:
    """Measures the share of the CPUs that other processes use, from the construction to share()."""

    def __init__(self):
        self._start = self._now()

    def share(self):
        busy, total, ours = (b - a for a, b in zip(self._start, self._now()))
        return max(0.0, (busy - ours) / total) if total else 0.0

    @staticmethod
    def _now():
        user, nice, system, idle, iowait, irq, softirq, steal = map(
            int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        busy = user + nice + system + irq + softirq + steal
        ours = sum(
            u.ru_utime + u.ru_stime
            for u in (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF))
        )
        ticks = os.sysconf("SC_CLK_TCK")
        return busy / ticks, (busy + idle + iowait) / ticks, ours
