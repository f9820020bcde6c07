"""From runs to a page of Markdown: where weft loses, first."""

import statistics
from dataclasses import dataclass

from harness.rows import ROWS

BASE = "go"


@dataclass
class Cell:
    """One row's values of one peer, a value for each round."""

    rounds: dict

    @property
    def median(self):
        return statistics.median(self.rounds.values())

    @property
    def spread(self):
        """Half of the way from the smallest to the largest, relative to the median."""
        values = self.rounds.values()
        return (max(values) - min(values)) / 2 / self.median if self.median else 0.0


def cell(runs, peer, workload, procs, metric):
    rounds = {
        r["round"]: r[metric]
        for r in runs
        if r["peer"] == peer and r["workload"] == workload and r["procs"] == procs and metric in r
    }
    return Cell(rounds) if rounds else None


def ratio(a, b):
    return a.median / b.median if a and b and b.median else None


@dataclass
class Line:
    """A row at one number of procs."""

    row: object
    procs: int
    cells: dict  # peer's name → Cell
    cpu_ratio: float | None
    subject: str
    base: str

    @property
    def ratio(self):
        return ratio(self.cells.get(self.subject), self.cells.get(self.base))

    @property
    def ratio_range(self):
        """The smallest and largest ratio of the two runs of one round."""
        a, b = self.cells[self.subject].rounds, self.cells[self.base].rounds
        each = [a[n] / b[n] for n in a if b.get(n)]
        return (min(each), max(each)) if each else (0, 0)

    @property
    def target(self):
        return self.row.ratio_for(self.procs)

    @property
    def loses(self):
        return self.ratio is not None and self.ratio > 1

    @property
    def excess(self):
        """How many times over the target; None where there is none, or nothing to compare with."""
        mine = self.cells.get(self.subject)
        if self.row.at_most and mine:
            return mine.median / self.row.at_most
        if self.target and self.ratio is not None:
            return self.ratio / self.target
        return None

    @property
    def misses_first(self):
        return self.row.first_ratio and self.ratio is not None and self.ratio > self.row.first_ratio


def lines(runs, subject="weft", base=BASE):
    peers = list(dict.fromkeys(r["peer"] for r in runs))
    all_procs = sorted({r["procs"] for r in runs})
    single = {p for p in peers if {r["procs"] for r in runs if r["peer"] == p} == {all_procs[0]} and p == "limit"}
    result = []
    for row in ROWS:
        for procs in all_procs:
            cells, cpu = {}, {}
            for peer in peers:
                at = all_procs[0] if peer in single else procs
                if c := cell(runs, peer, row.workload, at, row.metric):
                    cells[peer] = c
                cpu[peer] = cell(runs, peer, row.workload, at, "cpu_ns_per_op") if row.metric == "ns_per_op" else None
            if cells.get(subject):
                result.append(Line(row, procs, cells, ratio(cpu.get(subject), cpu.get(base)), subject, base))
    return result


# ---- text ----


def quantity(value, metric):
    if metric.startswith("bytes"):
        return f"{value:,.0f} B"
    for limit, factor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms"), (float("inf"), 1e9, "s")):
        if value < limit:
            return f"{value / factor:.3g} {unit}"
    raise AssertionError


def with_spread(c, metric):
    if not c:
        return ""
    return quantity(c.median, metric) + (f" ±{c.spread * 100:.0f}%" if len(c.rounds) > 1 else "")


def number(value):
    return "" if value is None else f"{value:.2f}"


def target_text(line):
    if line.row.at_most:
        return f"≤ {quantity(line.row.at_most, line.row.metric)}"
    return f"≤ {line.target:.2f}" if line.target else ""


def verdict(line):
    if line.loses:
        return "**loses**"
    if line.excess is None:
        return ""
    return "ok" if line.excess <= 1 else "misses"


def table(head, body):
    rows = [head, *body]
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]

    def text(r):
        cells = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join(("-" * (w + 2)) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([text(head), rule, *map(text, body)])


def name(line):
    return f"{line.row.title}, {line.procs} P"


def losses(all_lines):
    lost = sorted((x for x in all_lines if x.loses), key=lambda x: -x.ratio)
    missed = sorted((x for x in all_lines if x.excess and x.excess > 1), key=lambda x: -x.excess)
    text = []
    if lost:
        text.append(f"Slower than {lost[0].base}, worst first:\n")
        text += [f"- {name(x)}: {x.ratio:.2f} times {x.base}" + cpu_note(x) for x in lost]
    else:
        text.append(f"Nowhere slower than {BASE}.")
    if missed:
        text.append("\nShort of the target, worst first:\n")
        for x in missed:
            mine = quantity(x.cells[x.subject].median, x.row.metric)
            what = mine if x.row.at_most else f"{x.ratio:.2f}"
            text.append(f"- {name(x)}: {what}, target {target_text(x)}" + ("" if x.row.at_most else cpu_note(x)))
    first = [x for x in all_lines if x.misses_first]
    if first:
        text.append("\nShort of the first milestone's half of Go's: " + "; ".join(name(x) for x in first) + ".")
    return "\n".join(text)


def cpu_note(line):
    return f" (CPU time: {line.cpu_ratio:.2f})" if line.cpu_ratio is not None else ""


def failures(runs):
    return "\n".join(
        f"- {r['workload']}, {r['procs']} P, {r['peer']}: {r['error']}" for r in runs if "error" in r
    )


def conditions(data):
    m, s = data["machine"], data["settings"]
    rounds = max((r["round"] for r in data["runs"]), default=0)
    what = "two versions of weft" if s["command"] == "compare" else f"weft {data['commit']}"
    text = [
        f"- {m['when']}, {what}, {rounds} rounds at scale {s['scale']:g}, interleaved; medians, and ± half of the range",
        f"- {m['cpu']}{' (virtual machine)' if m['virtual'] else ''}, {m['cpus']} CPUs, {m['memory']}; {m['kernel']}",
        f"- {m['compiler']}; " + ", ".join(f"{p['name']} {p['version']}" for p in data["peers"] if p["version"] and p["name"] not in ("weft", "limit")),
    ]
    other = f"other processes used {data['other_load'] * 100:.0f} % of the CPUs meanwhile"
    if s.get("priority"):
        text.append(f"- run before all else on the machine (--priority); {other}")
    elif data["other_load"] > 0.05:
        text.append(
            f"- **noisy**: {other}. Times then say little, ratios more, ratios of CPU time most."
            " As root, --priority helps."
        )
    return "\n".join(text)


def page(data):
    all_lines = lines(data["runs"])
    others = [p["name"] for p in data["peers"] if p["name"] not in ("weft", BASE)]
    body = []
    for x in all_lines:
        body.append(
            [
                x.row.title,
                str(x.procs),
                with_spread(x.cells.get("weft"), x.row.metric),
                with_spread(x.cells.get(BASE), x.row.metric),
                number(x.ratio),
                "" if x.ratio is None else "{:.2f}–{:.2f}".format(*x.ratio_range),
                number(x.cpu_ratio),
                target_text(x),
                verdict(x),
                *[quantity(c.median, x.row.metric) if (c := x.cells.get(o)) else "" for o in others],
            ]
        )
    head = ["workload", "P", "weft", "go", "weft/go", "range", "CPU time", "target", "", *others]
    failed = failures(data["runs"])
    return "\n".join(
        [
            "### Where weft loses\n",
            *(["Failed:\n\n" + failed + "\n"] if failed else []),
            losses(all_lines),
            "\n### All\n",
            table(head, body),
            "",
            conditions(data),
            "",
        ]
    )


def comparison(data):
    """Two versions of weft: the second one's time as a part of the first one's."""
    old, new = (p["name"] for p in data["peers"])
    all_lines = lines(data["runs"], subject=new, base=old)
    body = [
        [
            x.row.title,
            str(x.procs),
            with_spread(x.cells.get(old), x.row.metric),
            with_spread(x.cells.get(new), x.row.metric),
            number(x.ratio),
            "" if x.ratio is None else "{:.2f}–{:.2f}".format(*x.ratio_range),
            number(x.cpu_ratio),
        ]
        for x in all_lines
    ]
    failed = failures(data["runs"])
    return "\n".join(
        [
            *(["Failed:\n\n" + failed + "\n"] if failed else []),
            table(["workload", "P", old, new, "new/old", "range", "CPU time"], body),
            "",
            conditions(data),
            "",
        ]
    )
