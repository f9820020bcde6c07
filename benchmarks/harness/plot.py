"""The plots of a page: weft's ratio to each peer, and how much weft and each peer gain from more processors."""

from harness.report import LIMIT, lines
from harness.rows import ROWS


def draw(data, stem):
    """Writes STEM-ratios.svg and STEM-scaling.svg and returns their names; None if there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"
    from matplotlib import pyplot

    all_lines = lines(data["runs"])
    peers = [p["name"] for p in data["peers"]]
    colours = {p: f"C{i}" for i, p in enumerate(peers)}
    written = []
    for name, kind in (("ratios", ratios), ("scaling", scaling)):
        if figure := kind(pyplot, all_lines, peers, colours):
            file = stem.with_name(f"{stem.name}-{name}.svg")
            figure.savefig(file, metadata={"Date": None}, bbox_inches="tight")
            pyplot.close(figure)
            written.append(file.name)
    return written


def ratios(pyplot, all_lines, peers, colours):
    """A line for each row, with a dot at weft's ratio to each peer, and a bar of the same colour at the target."""
    shown = [x for x in all_lines if x.row.has_target or x.row.metric.startswith(("ns_per_op", "bytes"))]
    rows = [r for r in ROWS if any(x.row is r for x in shown)]
    procs = sorted({x.procs for x in shown})
    if not rows:
        return None
    size = (3 + 4 * len(procs), 1 + 0.22 * len(rows))
    figure, axes = pyplot.subplots(1, len(procs), figsize=size, sharey=True, squeeze=False)
    for ax, p in zip(axes[0], procs):
        for x in (x for x in shown if x.procs == p):
            y = rows.index(x.row)
            for peer in peers:
                if r := x.against(peer) if peer != x.subject else None:
                    ax.plot(r, y, "o", color=colours[peer], markersize=5, label=peer)
                    if most := x.most(peer):
                        ax.plot(most, y, "|", color=colours[peer], markersize=9, markeredgewidth=2)
        ax.axvline(1, color="black", linewidth=1)
        ax.set(xscale="log", xlabel="weft's time as a part of the peer's", title=f"{p} P")
        ax.set_yticks(range(len(rows)), [r.title for r in rows])
        ax.grid(alpha=0.3)
    axes[0][0].invert_yaxis()
    legend(figure, axes[0], "left of the line weft is ahead; |: the target")
    return figure


def scaling(pyplot, all_lines, peers, colours):
    """A plot for each row: the speed relative to the fewest Ps, over their number. None if there is only one number."""
    procs = sorted({x.procs for x in all_lines})
    rows = [r for r in ROWS if r.metric == "ns_per_op" and any(x.row is r for x in all_lines)]
    if len(procs) < 2 or not rows:
        return None
    columns = min(5, len(rows))
    figure, axes = pyplot.subplots(
        -(-len(rows) // columns), columns, figsize=(3 * columns, 0.5 + 2.3 * -(-len(rows) // columns)), squeeze=False
    )
    flat = list(axes.flat)
    for ax, row in zip(flat, rows):
        of_row = [x for x in all_lines if x.row is row]
        for peer in (p for p in peers if p != LIMIT):
            times = {x.procs: c.median for x in of_row if (c := x.cells.get(peer)) and c.median}
            if procs[0] in times:
                gains = [times[procs[0]] / t for t in times.values()]
                ax.plot(list(times), gains, "o-", color=colours[peer], markersize=3, label=peer)
        ax.plot(procs, [p / procs[0] for p in procs], ":", color="grey", label="ideal")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
        ax.set_title(row.title, fontsize=8)
        ax.grid(alpha=0.3)
    for ax in flat[len(rows) :]:
        ax.remove()
    figure.tight_layout()
    legend(figure, flat[: len(rows)], "times as fast, over the number of Ps")
    return figure


def legend(figure, axes, title):
    seen = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    if not seen:
        return
    figure.legend(seen.values(), seen.keys(), title=title, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=len(seen))
