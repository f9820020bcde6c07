#!/usr/bin/env python3
"""The page of benchmarks/run, from runs that nobody measured.

Usage: report_test.py [ROOT]
"""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
sys.path.insert(0, str(ROOT / "benchmarks"))

from harness import plot, report, rows  # pylint: disable=wrong-import-position


def runs(workload, procs, **values):
    """values: for each peer ns of each round, or dictionaries of metrics."""
    return [
        {"round": n, "peer": peer.replace("_", "."), "workload": workload, "procs": procs}
        | (value if isinstance(value, dict) else {"ns_per_op": value, "cpu_ns_per_op": 2 * value})
        for peer, all_rounds in values.items()
        for n, value in enumerate(all_rounds, 1)
    ]


def data(*groups, command="all", peers=("weft", "go", "tokio", "boost.fiber", "limit")):
    return {
        "machine": {
            "when": "2030-01-01 00:00 UTC",
            "cpu": "A processor",
            "cpus": 2,
            "memory": "1 GiB",
            "virtual": True,
            "kernel": "Linux",
            "compiler": "c++",
        },
        "commit": "abc1234",
        "settings": {"command": command, "scale": 1.0, "procs": [1, 2], "priority": False},
        "peers": [{"name": p, "version": "1"} for p in peers],
        "other_load": 0.01,
        "runs": [r for group in groups for r in group],
    }


def section(page, heading):
    """The items below a heading that ends in a colon."""
    lines = page.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(heading))
    return [line for line in lines[at + 2 : lines.index("", at + 2)] if line.startswith("- ")]


def cells(page, title, procs):
    for line in page.splitlines():
        all_cells = [c.strip() for c in line.strip("|").split("|")]
        if all_cells[:2] == [title, str(procs)]:
            head = next(other for other in page.splitlines() if other.startswith("| workload"))
            return dict(zip([c.strip() for c in head.strip("|").split("|")], all_cells))
    raise AssertionError(f"no line {title}, {procs} P")


YIELD, ECHO, BUFFERED = "yield, 8 goroutines", "echo, 1 connection, each", "buffered channel, 1 to 1"


class Page(unittest.TestCase):
    def test_medians_spread_and_range(self):
        page = report.page(data(runs("yield", 1, weft=[10, 12, 30], go=[100, 100, 100])))
        line = cells(page, YIELD, 1)
        self.assertEqual(line["weft"], "12 ns ±83%")
        self.assertEqual(line["weft/go"], "0.12")
        self.assertEqual(line["range"], "0.10–0.30")
        self.assertEqual(line["target"], "≤ 0.20")
        self.assertEqual(line[""], "ok")

    def test_what_is_lost_comes_first_and_the_worst_of_it(self):
        page = report.page(
            data(
                runs("yield", 1, weft=[150], go=[100]),
                runs("buffered_1_1", 1, weft=[300], go=[100]),
                runs("buffered_1_1", 2, weft=[90], go=[100]),
            )
        )
        self.assertEqual(
            section(page, "Slower than go"),
            [
                f"- {BUFFERED}, 1 P: 3.00 times go (CPU time: 3.00)",
                f"- {YIELD}, 1 P: 1.50 times go (CPU time: 1.50)",
            ],
        )
        missed = section(page, "Short of the target, worst")
        self.assertIn(f"- {BUFFERED}, 2 P: 0.90, target ≤ 0.40 (CPU time: 0.90)", missed)
        self.assertTrue(page.startswith("### Where weft loses"))
        self.assertLess(page.index("Slower than go"), page.index("### All"))

    def test_every_peer_counts(self):
        page = report.page(
            data(runs("yield", 1, weft=[10], go=[100], tokio=[8], boost_fiber=[30], limit=[1]))
        )
        self.assertEqual(section(page, "Slower than tokio"), [f"- {YIELD}, 1 P: 1.25 times tokio (CPU time: 1.25)"])
        self.assertEqual(
            section(page, "Short of the target against boost.fiber"),
            [f"- {YIELD}, 1 P: 0.33 times boost.fiber (CPU time: 0.33)"],
        )
        far = section(page, "Farther from the limit")
        self.assertEqual(far, [f"- {YIELD}, 1 P: 10.00 times limit (CPU time: 10.00)"])
        self.assertIn("Nowhere slower than go.", page)
        line = cells(page, YIELD, 1)
        self.assertEqual(line["tokio"], "8 ns (1.25)")
        self.assertEqual(line[""], "**loses** to tokio")

    def test_a_target_against_another_peer_can_be_missed(self):
        missed = report.page(data(runs("yield", 1, weft=[10], go=[100], boost_fiber=[30])))
        self.assertEqual(cells(missed, YIELD, 1)[""], "misses")
        reached = report.page(data(runs("yield", 1, weft=[10], go=[100], boost_fiber=[40])))
        self.assertEqual(cells(reached, YIELD, 1)[""], "ok")

    def test_the_limit_is_compared_on_one_processor(self):
        page = report.page(
            data(runs("echo", 1, weft=[109], go=[200], limit=[100]), runs("echo", 2, weft=[109], go=[200]))
        )
        self.assertEqual(cells(page, ECHO, 1)["limit"], "100 ns (1.09)")
        self.assertEqual(cells(page, ECHO, 2)["limit"], "")
        self.assertEqual(cells(page, ECHO, 2)[""], "")
        self.assertEqual(section(page, "Farther from the limit"), [f"- {ECHO}, 1 P: 1.09 times limit (CPU time: 1.09)"])

    def test_who_is_ahead_in_one_round_only_is_level(self):
        page = report.page(
            data(
                runs("yield", 1, weft=[10, 30, 30], go=[20, 20, 20]),
                runs("buffered_1_1", 1, weft=[10, 10, 30], go=[20, 20, 20]),
                runs("buffered_8_8", 1, weft=[30, 30, 30], go=[20, 20, 20]),
                runs("sieve", 1, weft=[10, 10, 10], go=[20, 20, 20]),
                peers=("weft", "go"),
            )
        )
        self.assertRegex(page, r"\| go +\| +1 \| +2 \| +1 \|")
        self.assertEqual(len(section(page, "Slower than go")), 1)
        self.assertIn(f"Level with go, ahead in one round and behind in another: {YIELD}, 1 P; {BUFFERED}, 1 P.", page)
        self.assertEqual(cells(page, YIELD, 1)[""], "misses")

    def test_who_was_not_there_is_said(self):
        page = report.page(data(runs("yield", 1, weft=[10], go=[20]), peers=("weft", "go", "tokio")))
        self.assertIn("- not compared: boost.fiber, std::thread, limit", page)

    def test_the_summary_counts_rows(self):
        page = report.page(
            data(
                runs("yield", 1, weft=[10], go=[40], tokio=[5]),
                runs("buffered_1_1", 1, weft=[10], go=[90], tokio=[20]),
                peers=("weft", "go", "tokio"),
            )
        )
        self.assertRegex(page, r"\| go +\| +2 \| +0 \| +0 \| +1 of 2 \|")
        self.assertRegex(page, r"\| tokio +\| +1 \| +0 \| +1 \| +1 of 2 \|")
        self.assertRegex(page, r"\| goroutines +\| +0\.25 \| +2\.00 \|")
        self.assertRegex(page, r"\| channels +\| +0\.11 \| +0\.50 \|")
        self.assertRegex(page, r"\| all but lateness and idling +\| +0\.17 \| +1\.00 \|")

    def test_times_have_targets_of_their_own(self):
        page = report.page(data(runs("late_50us", 1, weft=[{"p50_ns": 16e3, "p99_ns": 2e4}], go=[{"p50_ns": 1e6}])))
        missed = section(page, "Short of the target, worst")
        self.assertEqual(missed, ["- sleep 50 us: late, p50, 1 P: 16 us, target ≤ 15 us"])

    def test_what_failed_is_said_before_all(self):
        page = report.page(data(runs("yield", 1, weft=[10], go=[{"error": "exit status 2: no"}])))
        self.assertIn("- yield, 1 P, go: exit status 2: no", page.split("Slower")[0])
        self.assertEqual(cells(page, YIELD, 1)["weft/go"], "")

    def test_an_unmeasurable_little_is_no_ratio(self):
        page = report.page(data(runs("idle", 1, weft=[{"cpu_ns_per_op": 5}], go=[{"cpu_ns_per_op": 0}])))
        self.assertEqual(cells(page, "idle for 1 s with 1000 parked: CPU", 1)["weft/go"], "")

    def test_growth_is_from_the_least_number_to_the_greatest(self):
        page = report.page(
            data(
                runs("yield_1k", 1, weft=[10], go=[100], boost_fiber=[50]),
                runs("yield_100k", 1, weft=[14], go=[400], boost_fiber=[500]),
                runs("yield_1m", 1, weft=[16], go=[100]),
                runs("echo_1k", 2, weft=[1000]),
                runs("echo_10k", 2, weft=[1500]),
                runs("reset_1k", 1, weft=[10]),
            )
        )
        lines = [[c.strip() for c in x.strip("|").split("|")] for x in page.splitlines() if ", of so many" in x]
        self.assertEqual([x[:3] for x in lines if x[0].startswith("yield")], [
            ["yield, of so many goroutines", "1", "weft"],
            ["yield, of so many goroutines", "1", "go"],
            ["yield, of so many goroutines", "1", "boost.fiber"],
        ])
        self.assertEqual(lines[0][3:], ["10 ns", "", "14 ns", "16 ns", "**1.60**"])
        self.assertEqual([x[-1] for x in lines[1:]], ["1.00", "10.00", "1.50"])
        self.assertNotIn("set anew one of so many timers", page)

    def test_without_growth_nothing_is_said_of_it(self):
        self.assertNotIn("How cost grows", report.page(data(runs("yield", 1, weft=[10], go=[100]))))

    def test_two_commits(self):
        page = report.comparison(data(runs("yield", 1, old=[10], new=[5]), command="compare", peers=("old", "new")))
        self.assertEqual(cells(page, YIELD, 1)["new/old"], "0.50")


class Rows(unittest.TestCase):
    def test_titles_are_unique(self):
        titles = [r.title for r in rows.ROWS]
        self.assertEqual(len(titles), len(set(titles)))

    def test_what_grows_exists(self):
        self.assertLessEqual({w for family in rows.GROWTH.values() for w in family.values()}, set(rows.WORKLOADS))

    def test_what_is_slow_exists(self):
        self.assertLessEqual(rows.SLOW, set(rows.WORKLOADS))

    def test_a_ratio_is_that_of_the_next_lower_number_of_processors(self):
        row = next(r for r in rows.ROWS if r.workload == "mutex_64")
        self.assertEqual([row.ratio_for(p) for p in (1, 2, 16)], [0.8, 0.4, 0.4])


class Plots(unittest.TestCase):
    def test_they_are_drawn_beside_the_page(self):
        measured = data(
            runs("yield", 1, weft=[10], go=[40], limit=[2]), runs("yield", 2, weft=[5], go=[40], boost_fiber=[60])
        )
        with tempfile.TemporaryDirectory() as folder:
            names = plot.draw(measured, pathlib.Path(folder) / "x")
            if names is None:
                self.skipTest("there is no matplotlib")
            self.assertEqual(names, ["x-ratios.svg", "x-scaling.svg"])
            for name in names:
                self.assertIn("<svg", (pathlib.Path(folder) / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
