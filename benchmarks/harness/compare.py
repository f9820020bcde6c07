"""Builds weft at a commit: from the sources of that commit, with the benchmarks of the working tree."""

import os
import shutil
import subprocess

from harness.peers import BUILDS, ROOT, Failure, Peer, build_cpp, commit, output


def build_at(revision):
    """Builds weft-bench for a commit, and returns it as a Peer; '.' is the working tree as it is."""
    if revision == ".":
        name, source = commit(), ROOT
        folder = BUILDS / "worktree"
    else:
        name = output(["git", "-C", ROOT, "rev-parse", "--short", revision + "^{commit}"])
        source = BUILDS / name / "source"
        folder = BUILDS / name / "build"
        extract(name, source)
    if not (folder / "build.ninja").exists():
        folder.mkdir(parents=True, exist_ok=True)
        cxx = os.environ.get("CXX", "g++")
        env = os.environ | {"CXX": f"ccache {cxx}" if shutil.which("ccache") and " " not in cxx else cxx}
        output(["meson", "setup", folder, source, "-Dtests=disabled", "-Ddemos=disabled", "-Dbenchmarks=enabled"], env=env)
    build_cpp(folder)
    return Peer(name, folder / "benchmarks" / "weft-bench", revision)


def extract(name, source):
    if not source.exists():
        source.mkdir(parents=True)
        archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", name], stdout=subprocess.PIPE)
        output(["tar", "-x", "-C", source], stdin=archive.stdout)
        if archive.wait() != 0:
            raise Failure(f"git archive {name} failed")
    shutil.copytree(
        ROOT / "benchmarks", source / "benchmarks", dirs_exist_ok=True, ignore=shutil.ignore_patterns("results")
    )
