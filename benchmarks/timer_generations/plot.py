"""The plot: time per operation over the number of timers, a line for each generation."""


def draw(curves, generations, file):
    """Writes the plot to `file`. False: there is no matplotlib.

    `curves`: for each workload (title, label of its axis, {(workload, procs, timers, generation): value}).
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    procs = sorted({key[1] for _, _, points in curves for key in points})
    figure, axes = pyplot.subplots(
        len(curves), len(procs), figsize=(4 * len(procs), 3 * len(curves)), sharex=True, sharey="row", squeeze=False
    )
    for row, (title, label, points) in zip(axes, curves):
        for ax, p in zip(row, procs):
            for g in generations:
                line = sorted((n, value) for (_, at, n, of), value in points.items() if at == p and of == g)
                if line:
                    ax.plot(*zip(*line), marker="o", markersize=3, label=g)
            ax.set(xscale="log", yscale="log", title=f"{title}, {p} P")
            ax.minorticks_off()
            ax.grid(alpha=0.3)
        row[0].set_ylabel(label)
    for ax in axes[-1]:
        ax.set_xlabel("timers")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(labels))
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(file, metadata={"Date": None})
    return True
