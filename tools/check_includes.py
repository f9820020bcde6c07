#!/usr/bin/env python3
"""Checks the direction of includes: a file may include files of its own folder and of folders below it, never above.

    api > sysmon > sched > netpoll > timers > runtime

Public headers (api/weft/) include the standard library and each other, nothing else.
Demos use weft as any program does: its public headers only.

Usage: check_includes.py [ROOT]      prints each offence as file:line, exits 1 if there is one
"""

import pathlib
import re
import sys

FOLDERS = ["runtime", "timers", "netpoll", "sched", "sysmon", "api"]  # from the bottom to the top
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

STANDARD = set(
    """
    algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
    condition_variable coroutine deque exception execution expected filesystem format forward_list fstream
    functional future generator initializer_list iomanip ios iosfwd iostream istream iterator latch limits list
    locale map mdspan memory memory_resource mutex new numbers numeric optional ostream print queue random
    ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span spanstream sstream stack
    stacktrace stdexcept stop_token streambuf string string_view strstream syncstream system_error thread tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint
    cstdio cstdlib cstring ctime cuchar cwchar cwctype
    """.split()
)


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def own_folder_file(root, path, name):
    """The path of the included file, relative to the root; None if the file is not part of this tree."""
    for base in (root, root / "api", path.parent):
        candidate = (base / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    return None


def offence(root, path, quote, name):
    here = path.relative_to(root)
    target = own_folder_file(root, path, name)
    # A header of ours that does not exist (yet) is still judged by its name.
    folder = target.parts[0] if target else ("api" if name.startswith("weft/") else name.split("/")[0])
    public = name.startswith("weft/") or (target is not None and target.parts[:2] == ("api", "weft"))

    if here.parts[:2] == ("api", "weft"):
        if not public and not (quote == "<" and name in STANDARD):
            return f"a public header may include only the standard library and <weft/...>, not {name}"
    elif here.parts[0] in FOLDERS:
        if folder in FOLDERS and FOLDERS.index(folder) > FOLDERS.index(here.parts[0]):
            return f"{here.parts[0]} may not include {name}: {folder} lies above it"
        if folder in ("tests", "demos", "benchmarks"):
            return f"the library may not include {name}"
    elif folder in FOLDERS and not public:
        return f"{here.parts[0]} may use weft's public headers only, not {name}"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    files = [
        path
        for folder in FOLDERS + ["demos"]
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in (".hpp", ".cpp", ".h", ".cc", ".S") and path.is_file()
    ]
    offences = 0
    for path in files:
        for number, quote, name in includes(path):
            if message := offence(root, path, quote, name):
                offences += 1
                print(f"{path.relative_to(root)}:{number}: {message}")
    print(f"{len(files)} files, {offences} includes in the wrong direction")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
