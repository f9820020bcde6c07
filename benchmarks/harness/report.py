"""Turns runs into a page of Markdown, which begins with where weft loses."""

import statistics
from dataclasses import dataclass

from harness.peers import NAMES
from harness.rows import GROWTH, LATENESS, MANY, MOST_GROWTH, PEERS, ROWS

BASE = "go"
LIMIT = "limit"


@dataclass
class Cell:
    """The values of one peer in one row, one value for each round."""

    rounds: dict

    @property
    def median(self):
        return statistics.median(self.rounds.values())

    @property
    def spread(self):
        """Half of the distance from the smallest value to the largest, relative to the median."""
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
    """A row of the table: all peers, at one number of Ps."""

    row: object
    procs: int
    cells: dict  # peer's name → Cell
    cpu: dict  # the same for the CPU time
    subject: str
    base: str

    def against(self, peer):
        """The subject's median divided by the peer's."""
        return ratio(self.cells.get(self.subject), self.cells.get(peer))

    def cpu_against(self, peer):
        return ratio(self.cpu.get(self.subject), self.cpu.get(peer))

    @property
    def ratio(self):
        return self.against(self.base)

    @property
    def cpu_ratio(self):
        return self.cpu_against(self.base)

    def range_against(self, peer):
        """The smallest and the largest ratio to the peer; each ratio is of two runs of the same round."""
        a, b = self.cells[self.subject].rounds, self.cells[peer].rounds
        each = [a[n] / b[n] for n in a if b.get(n)]
        return (min(each), max(each)) if each else (0, 0)

    @property
    def target(self):
        return self.row.ratio_for(self.procs)

    def most(self, peer):
        """The target for against(peer), which is an upper limit; None if there is no such target."""
        if peer == self.base:
            return self.target
        return self.row.times_limit if peer == LIMIT else PEERS.get(peer)

    def is_level_with(self, peer):
        """True if the subject was ahead in one round, and the peer in another."""
        least, most = self.range_against(peer)
        return least < 1 < most

    def beats(self, peer):
        return (self.against(peer) or 1) < 1 and not self.is_level_with(peer)

    def loses_to(self, peer):
        return peer != LIMIT and (self.against(peer) or 0) > 1 and not self.is_level_with(peer)

    @property
    def winners(self):
        return [p for p in self.cells if p != self.subject and self.loses_to(p)]

    @property
    def excess(self):
        """The result divided by its target; None if there is no target, or nothing to compare with."""
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
    result = []
    for row in ROWS:
        for procs in all_procs:
            cells, cpu = {}, {}
            for peer in peers:
                if c := cell(runs, peer, row.workload, procs, row.metric):
                    cells[peer] = c
                cpu[peer] = cell(runs, peer, row.workload, procs, "cpu_ns_per_op") if row.metric == "ns_per_op" else None
            if cells.get(subject):
                result.append(Line(row, procs, cells, cpu, subject, base))
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


def range_text(line):
    return "" if line.ratio is None else "{:.2f}–{:.2f}".format(*line.range_against(line.base))


def target_text(line):
    if line.row.at_most:
        return f"≤ {quantity(line.row.at_most, line.row.metric)}"
    return f"≤ {line.target:.2f}" if line.target else ""


def verdict(line):
    """Says whether weft loses, and whether all targets are reached, including those against other peers."""
    if line.winners:
        return "**loses**" + ("" if line.winners == [line.base] else f" to {', '.join(line.winners)}")
    known = [excess for excess in (line.excess, *(excess_over(line, p) for p in line.cells)) if excess is not None]
    if not known:
        return ""
    return "ok" if max(known) <= 1 else "misses"


def excess_over(line, peer):
    """The ratio to a peer, other than the base, divided by its target; None if there is none."""
    most, r = line.most(peer), line.against(peer)
    return r / most if peer != line.base and most and r is not None else None


def beside(line, peer):
    """The peer's value and, in brackets, weft's value divided by it."""
    c, r = line.cells.get(peer), line.against(peer)
    if not c:
        return ""
    return quantity(c.median, line.row.metric) + (f" ({r:.2f})" if r is not None else "")


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


def summary(all_lines, peers):
    """A table with a row for each peer: how often weft is ahead, level or behind, and how often on target."""
    body = []
    for peer in peers:
        known = [x for x in all_lines if x.against(peer)]
        if not known:
            continue
        with_target = [x for x in known if x.most(peer)]
        reached = sum(x.against(peer) <= x.most(peer) for x in with_target)
        ahead, behind = sum(x.beats(peer) for x in known), sum(x.loses_to(peer) for x in known)
        standing = ["", "", ""] if peer == LIMIT else [str(n) for n in (ahead, len(known) - ahead - behind, behind)]
        body.append([peer, *standing, f"{reached} of {len(with_target)}" if with_target else ""])
    return table(["weft against", "ahead", "level", "behind", "target reached"], body)


def means(all_lines, peers):
    """A table of the geometric means of the ratios to each peer, by group of rows."""
    peers = [p for p in peers if any(x.against(p) for x in all_lines)]

    def mean(peer, some):
        known = [r for x in some if (r := x.against(peer))]
        return number(statistics.geometric_mean(known)) if known else ""

    groups = dict.fromkeys(x.row.group for x in all_lines)
    body = [[g, *(mean(p, [x for x in all_lines if x.row.group == g]) for p in peers)] for g in groups]
    # The lateness is left out of the average: it is a hundredth of Go's, and would speak for all the others.
    rest = [x for x in all_lines if x.row.group != LATENESS]
    body.append([f"all but {LATENESS}", *(mean(p, rest) for p in peers)])
    return table(["geometric mean of the ratios to", *peers], body)


def worst(all_lines, peer, heading, key, chosen):
    found = sorted((x for x in all_lines if chosen(x)), key=key, reverse=True)
    if not found:
        return []
    cpu = lambda x: f" (CPU time: {c:.2f})" if (c := x.cpu_against(peer)) is not None else ""
    return [heading, *(f"- {name(x)}: {x.against(peer):.2f} times {peer}{cpu(x)}" for x in found), ""]


def losses(all_lines, peers):
    text = []
    for peer in peers:
        if peer == LIMIT:
            continue
        heading = f"Slower than {peer}, worst first:\n"
        lost = worst(all_lines, peer, heading, lambda x: x.against(peer), lambda x: x.loses_to(peer))
        text += lost or ([f"Nowhere slower than {peer}.\n"] if any(x.against(peer) for x in all_lines) else [])
        if level := [name(x) for x in all_lines if x.against(peer) and x.is_level_with(peer)]:
            text.append(f"Level with {peer}, ahead in one round and behind in another: {'; '.join(level)}.\n")
    missed = sorted((x for x in all_lines if x.excess and x.excess > 1), key=lambda x: -x.excess)
    if missed:
        text.append("Short of the target, worst first:\n")
        for x in missed:
            mine = quantity(x.cells[x.subject].median, x.row.metric)
            what = mine if x.row.at_most else f"{x.ratio:.2f}"
            text.append(f"- {name(x)}: {what}, target {target_text(x)}" + ("" if x.row.at_most else cpu_note(x)))
        text.append("")
    for peer in peers:
        if peer == BASE:
            continue
        what = "Farther from the limit than the target" if peer == LIMIT else f"Short of the target against {peer}"
        text += worst(
            all_lines,
            peer,
            f"{what}, worst first:\n",
            lambda x: excess_over(x, peer),
            lambda x: not x.loses_to(peer) and (excess_over(x, peer) or 0) > 1,
        )
    first = [x for x in all_lines if x.misses_first]
    if first:
        text.append("Slower than the first milestone, half of Go's time: " + "; ".join(name(x) for x in first) + ".\n")
    return "\n".join(text)


def cpu_note(line):
    return f" (CPU time: {line.cpu_ratio:.2f})" if line.cpu_ratio is not None else ""


def growth(all_lines, peers):
    """A table of the costs that should not grow with the number of goroutines, timers or connections."""
    at = {(x.row.workload, x.procs): x for x in all_lines if x.row.metric == "ns_per_op"}
    body = []
    for title, workloads in GROWTH.items():
        for procs in sorted({x.procs for x in all_lines}):
            known = [at.get((w, procs)) for w in workloads.values()]
            for peer in ("weft", *peers):
                cells = {n: x.cells.get(peer) if x else None for n, x in zip(workloads, known)}
                medians = [c.median for c in cells.values() if c]
                if len(medians) < 2:
                    continue
                times = medians[-1] / medians[0]
                over = peer == "weft" and times > MOST_GROWTH
                values = (quantity(c.median, "ns_per_op") if (c := cells.get(n)) else "" for n in MANY.values())
                body.append([title, str(procs), peer, *values, f"**{times:.2f}**" if over else f"{times:.2f}"])
    if not body:
        return ""
    text = f"*Times*: the time with most of them, divided by the time with 10^3. The target is {MOST_GROWTH}.\n"
    return "\n".join(["### How cost grows\n", text, table(["", "P", "", *MANY.values(), "times"], body), ""])


def failures(runs):
    return "\n".join(
        f"- {r['workload']}, {r['procs']} P, {r['peer']}: {r['error']}" for r in runs if "error" in r
    )


def conditions(data):
    m, s = data["machine"], data["settings"]
    rounds = max((r["round"] for r in data["runs"]), default=0)
    versions = [f"{p['name']} {p['version']}" for p in data["peers"] if p["version"] and p["name"] not in ("weft", LIMIT)]
    what = "two versions of weft" if s["command"] == "compare" else f"weft {data['commit']}"
    text = [
        f"- {m['when']}, {what}, {rounds} rounds at scale {s['scale']:g}, interleaved; medians, and ± half of the range",
        f"- {m['cpu']}{' (virtual machine)' if m['virtual'] else ''}, {m['cpus']} CPUs, {m['memory']}; {m['kernel']}",
        f"- {m['compiler']}; {', '.join(versions)}",
    ]
    if s["command"] != "compare" and (absent := set(NAMES) - {p["name"] for p in data["peers"]}):
        text.append(f"- not compared: {', '.join(p for p in NAMES if p in absent)}")
    other = f"other processes used {data['other_load'] * 100:.0f} % of the CPUs meanwhile"
    if s.get("priority"):
        text.append(f"- run before all else on the machine (--priority); {other}")
    elif data["other_load"] > 0.05:
        text.append(
            f"- **noisy**: {other}. Trust ratios of CPU time most, ratios of time less, and times least."
            " As root, --priority helps."
        )
    return "\n".join(text)


def page(data):
    all_lines = lines(data["runs"])
    peers = [p["name"] for p in data["peers"] if p["name"] != "weft"]
    others = [p for p in peers if p != BASE]
    body = []
    for x in all_lines:
        body.append(
            [
                x.row.title,
                str(x.procs),
                with_spread(x.cells.get("weft"), x.row.metric),
                with_spread(x.cells.get(BASE), x.row.metric),
                number(x.ratio),
                range_text(x),
                number(x.cpu_ratio),
                target_text(x),
                verdict(x),
                *[beside(x, o) for o in others],
            ]
        )
    head = ["workload", "P", "weft", "go", "weft/go", "range", "CPU time", "target", "", *others]
    failed = failures(data["runs"])
    return "\n".join(
        [
            "### Where weft loses\n",
            *(["Failed:\n\n" + failed + "\n"] if failed else []),
            summary(all_lines, peers) + "\n",
            means(all_lines, peers) + "\n",
            losses(all_lines, peers),
            growth(all_lines, peers),
            "### All\n",
            "In brackets: weft's value divided by the peer's.\n",
            table(head, body),
            "",
            conditions(data),
            "",
        ]
    )


def comparison(data):
    """The page that compares two versions of weft: the second one's values divided by the first one's."""
    old, new = (p["name"] for p in data["peers"])
    all_lines = lines(data["runs"], subject=new, base=old)
    body = [
        [
            x.row.title,
            str(x.procs),
            with_spread(x.cells.get(old), x.row.metric),
            with_spread(x.cells.get(new), x.row.metric),
            number(x.ratio),
            range_text(x),
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
