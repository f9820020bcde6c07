"""The programs that are compared, and how they are built."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILDS = ROOT / "build" / "bench"


NAMES = ("weft", "go", "tokio", "boost.fiber", "std::thread", "limit")


class Failure(Exception):
    pass


@dataclass
class Peer:
    name: str
    program: Path
    version: str = ""
    any_procs: bool = True  # False: it uses one thread only, and is compared at one P

    def workloads(self):
        return set(output([self.program, "list"]).split())


def output(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def build_cpp(folder):
    """Brings the benchmarks of a meson build folder up to date."""
    if not (folder / "build.ninja").exists():
        raise Failure(f"{folder} is not a build folder: ./dev bench makes one, or --build names another")
    targets = [
        line.split(":")[0]
        for line in output(["ninja", "-C", folder, "-t", "targets", "all"]).splitlines()
        if line.startswith("benchmarks/") and "cpp_LINKER" in line
    ]
    if not targets:
        raise Failure(f"{folder} is configured without the benchmarks")
    output(["ninja", "-C", folder, *targets])


def build_go():
    """Builds the program for Go. None if Go is not installed."""
    if not shutil.which("go"):
        return None
    # The go.mod beside the sources names an old language version, so that an old Go can build them. The one written
    # here names the version that is installed, so that a newer Go behaves as it does by default.
    env = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    version = output(["go", "env", "GOVERSION"], env=env)
    source = ROOT / "benchmarks" / "peers" / "go"
    folder = BUILDS / "go"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(f"module weft.invalid/benchmarks\n\ngo {'.'.join(version[2:].split('.')[:2])}\n")
    output(["go", "build", "-modfile", folder / "go.mod", "-o", folder / "go-bench", "."], cwd=source, env=env)
    return Peer("go", folder / "go-bench", version)


def build_tokio():
    """Builds the program for Tokio. None if cargo is not installed."""
    if not shutil.which("cargo"):
        return None
    # The program is built from a copy, since cargo keeps its lock file beside the sources.
    folder = BUILDS / "tokio"
    source = folder / "source"
    shutil.copytree(ROOT / "benchmarks" / "peers" / "tokio", source, dirs_exist_ok=True)
    env = os.environ | {"CARGO_TARGET_DIR": str(folder)}
    output(["cargo", "build", "--release", "--quiet"], cwd=source, env=env)
    lock = (source / "Cargo.lock").read_text()
    version = re.search(r'name = "tokio"\nversion = "([^"]*)"', lock)[1]
    rust = output(["rustc", "--version"]).split(" (")[0]
    return Peer("tokio", folder / "release" / "tokio-bench", f"{version} ({rust})")


def boost_version():
    header = Path("/usr/include/boost/version.hpp")
    if header.exists():
        for line in header.read_text().splitlines():
            if line.startswith("#define BOOST_LIB_VERSION"):
                return line.split('"')[1].replace("_", ".")
    return ""


def commit(path=ROOT):
    try:
        name = output(["git", "-C", path, "rev-parse", "--short", "HEAD"])
        return name + ("-dirty" if output(["git", "-C", path, "status", "--porcelain", "-uno"]) else "")
    except (Failure, FileNotFoundError):
        return "unknown"


def source_of(build):
    return Path(json.loads((build / "meson-info" / "meson-info.json").read_text())["directories"]["source"])


def all_peers(build, wanted=NAMES):
    """The peers that are wanted and installed. One that cannot be built or does not start is left out, which is said."""
    build_cpp(build)
    programs = build / "benchmarks"
    peers = [Peer("weft", programs / "weft-bench", commit(source_of(build)))]

    def add(name, make):
        if name not in wanted:
            return
        try:
            peer = make()
            if peer and peer.program.exists() and peer.workloads():
                peers.append(peer)
        except (Failure, OSError) as e:
            print(f"benchmarks: {name} is left out\n{e}", file=sys.stderr)

    add("go", build_go)
    add("tokio", build_tokio)
    add("boost.fiber", lambda: Peer("boost.fiber", programs / "boost-fiber-bench", boost_version()))
    add("std::thread", lambda: Peer("std::thread", programs / "std-thread-bench"))
    add("limit", lambda: Peer("limit", programs / "limits-bench", "the bare machine", any_procs=False))
    return peers
