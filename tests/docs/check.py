#!/usr/bin/env python3
"""Keeps README.md and docs/ true, as far as a script can.

  - A fenced code block that follows `<!-- example: FILE#NAME -->` shows exactly what stands in tests/docs/FILE between
    the lines `// [NAME]` and `// [/NAME]`, less its indentation. These files are compiled and run as tests.
  - Every example between such markers is shown somewhere.
  - One that follows `<!-- report: NAME -->` is what tests/programs/NAME may write to stderr: it satisfies the patterns in
    tests/programs/NAME.expect. Lines that are left out are "...".
  - Relative links lead to files, and #anchors to headings.
  - `folder/file.cpp` in backquotes is a file of the tree; in `folder/file.cpp: name` the name occurs in that file
    (of `type::name` the last part is looked for). Names with `*` are patterns.

Usage: check.py [ROOT]            prints each offence as file:line, exits 1 if there is one
       check.py --write [ROOT]    first puts the present examples into the documents
"""

import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import expect  # pylint: disable=wrong-import-position

FOLDERS = "runtime timers netpoll sched sysmon api tests benchmarks tools demos docs".split()
COMMENT = re.compile(r"<!-- example: (\S+)#(\S+) -->")
REPORT = re.compile(r"<!-- report: (\w+) -->")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
REFERENCE = re.compile(r"((?:%s)/[\w./*+-]+)(?:: (.+))?" % "|".join(FOLDERS))
MARKER = re.compile(r"\s*// \[(/?)([\w-]+)\]\s*$")


def examples(folder):
    """{(file, name): text}"""
    found = {}
    for path in sorted(folder.glob("*.cpp")):
        name, lines = None, []
        for line in path.read_text(encoding="utf-8").splitlines():
            if marker := MARKER.match(line):
                if marker[1]:
                    found[path.name, marker[2]] = textwrap.dedent("\n".join(lines)).strip("\n")
                name, lines = (None, []) if marker[1] else (marker[2], [])
            elif name is not None:
                lines.append(line)
    return found


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    found, fenced = set(), False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.match(r"#+ (.*)", line)):
            text = re.sub(r"[`*]", "", heading[1]).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


class document:
    def __init__(self, root, path):
        self.root, self.path = root, path
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.shown = set()
        self.offences = []

    def offend(self, number, message):
        self.offences.append(f"{self.path.relative_to(self.root)}:{number}: {message}")

    def blocks(self, pattern=COMMENT):
        """(the number of the comment's line, what it names, where the code begins, where it ends) of each example."""
        for i, line in enumerate(self.lines):
            if not (comment := pattern.search(line)):
                continue
            begin = next((k for k in range(i + 1, min(i + 3, len(self.lines))) if self.lines[k].startswith("```")), None)
            if begin is None:
                self.offend(i + 1, "no code block follows")
                continue
            end = next((k for k in range(begin + 1, len(self.lines)) if self.lines[k].startswith("```")), len(self.lines))
            yield i + 1, comment.groups(), begin + 1, end

    def check_examples(self, known):
        for number, key, begin, end in self.blocks():
            self.shown.add(key)
            if key not in known:
                self.offend(number, f"tests/docs/{key[0]} has no example [{key[1]}]")
            elif "\n".join(self.lines[begin:end]) != known[key]:
                self.offend(number, f"is not what tests/docs/{key[0]} has under [{key[1]}] (check.py --write)")

    def check_reports(self):
        for number, (name,), begin, end in self.blocks(REPORT):
            file = self.root / "tests" / "programs" / f"{name}.expect"
            if not file.exists():
                self.offend(number, f"there is no tests/programs/{name}.expect")
                continue
            patterns = file.read_text(encoding="utf-8")
            for complaint in expect.complaints(patterns, None, "\n".join(self.lines[begin:end])):
                self.offend(number, f"not what {name} writes: {complaint}")

    def write_examples(self, known):
        before = list(self.lines)
        for _, key, begin, end in reversed(list(self.blocks())):
            if key in known:
                self.lines[begin:end] = known[key].split("\n")
        if self.lines != before:
            self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    def check_references(self):
        fenced = False
        for number, line in enumerate(self.lines, 1):
            if line.startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for target in LINK.findall(line):
                self.check_link(number, target)
            for text in CODE.findall(line):
                if reference := REFERENCE.fullmatch(text):
                    self.check_name(number, reference[1], reference[2])

    def check_link(self, number, target):
        if re.match(r"[a-z]+:", target):
            return
        file, _, anchor = target.partition("#")
        to = (self.path.parent / file).resolve() if file else self.path
        if not to.exists():
            self.offend(number, f"leads nowhere: {target}")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            self.offend(number, f"no such heading: {target}")

    def check_name(self, number, file, names):
        paths = [p for p in self.root.glob(file)] if "*" in file else [self.root / file]
        if not any(p.exists() for p in paths):
            self.offend(number, f"there is no {file}")
            return
        text = "".join(p.read_text(encoding="utf-8") for p in paths if p.is_file())
        for name in (names or "").split(", "):
            last = name.split("::")[-1].strip("()")
            if last and not re.search(rf"\b{re.escape(last)}\b", text):
                self.offend(number, f"{file} says nothing of {name}")


def main():
    arguments = sys.argv[1:]
    write = "--write" in arguments
    roots = [a for a in arguments if a != "--write"]
    root = pathlib.Path(roots[0] if roots else pathlib.Path(__file__).parent.parent.parent).resolve()
    known = examples(root / "tests" / "docs")
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    offences, shown = [], set()
    for path in paths:
        d = document(root, path)
        if write:
            d.write_examples(known)
        d.check_examples(known)
        d.check_reports()
        d.check_references()
        offences += d.offences
        shown |= d.shown
    offences += [f"tests/docs/{file}: example [{name}] is shown nowhere" for file, name in sorted(known.keys() - shown)]
    for offence in offences:
        print(offence)
    print(f"{len(paths)} documents, {len(shown)} examples, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
