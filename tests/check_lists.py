#!/usr/bin/env python3
"""Checks lists that nobody misses an entry of: each tests/programs/*.cpp stands in tests/meson.build, has an .expect file,
and runs there; each mutant of tests/mutants/list still changes its file.

Usage: check_lists.py [ROOT]      prints what is wrong, exits 1 if anything is
"""

import pathlib
import re
import subprocess
import sys


def programs(root):
    tests = root / "tests"
    listed = re.search(r"^programs = \{\n(.*?)^\}", (tests / "meson.build").read_text(), re.M | re.S)[1]
    names = re.findall(r"^  '(\w+)':", listed, re.M)
    sources = {p.stem for p in tests.glob("programs/*.cpp")}
    expected = {p.stem for p in tests.glob("programs/*.expect")}
    for name in sorted(sources - set(names)):
        yield f"tests/programs/{name}.cpp: not in tests/meson.build"
    for name in sorted(sources ^ expected):
        yield f"tests/programs/{name}: .cpp and .expect do not both exist"
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"tests/meson.build: {name} twice"


def mutants(root):
    names = set()
    for line in (root / "tests/mutants/list").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, test, file, script = (part.strip() for part in line.split("|", 3))
        if name in names:
            yield f"tests/mutants/list: {name} twice"
        names.add(name)
        source = f"tests/{test}.cpp" if test.startswith("programs/") else f"tests/{test}_test.cpp"
        if not (root / source).exists():
            yield f"tests/mutants/list: {name}: there is no {source}"
        changed = subprocess.run(["sed", script, root / file], capture_output=True, text=True)
        if changed.returncode != 0 or changed.stdout.split() == (root / file).read_text().split():  # except for blanks
            yield f"tests/mutants/list: {name} changes nothing in {file} {changed.stderr.strip()}"


root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
wrong = [*programs(root), *mutants(root)]
print(*wrong, sep="\n", end="\n" if wrong else "")
print(f"{len(wrong)} wrong")
sys.exit(bool(wrong))
