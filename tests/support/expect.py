#!/usr/bin/env python3
"""Runs a program that must end in a certain way, and compares.

Usage: expect.py FILE.expect PROGRAM [ARGS...]

The .expect file:
    exit: 2                 first line: the exit status, or `signal: SIGSEGV`
    fatal error: all .*     each further line: a regex to be found in a line of stderr, in this order
    not: AddressSanitizer   a regex that no line of stderr may match
    # a comment             (empty lines are skipped, too)
"""

import pathlib
import re
import resource
import signal
import subprocess
import sys


def outcome(status):
    if status < 0:
        return f"signal: {signal.Signals(-status).name}"
    return f"exit: {status}"


def complaints(expected, status, stderr):
    """What differs, one line each. The status None fits all."""
    wanted, *patterns = [l for l in expected.splitlines() if l.strip() and not l.startswith("# ")]
    if status is not None and outcome(status) != wanted.strip():
        yield f"expected `{wanted.strip()}`, but it ended with `{outcome(status)}`"
    rest = iter(stderr.splitlines())
    for pattern in patterns:
        if pattern.startswith("not: "):
            for line in stderr.splitlines():
                if re.search(pattern[5:], line):
                    yield f"this line should not be there (`{pattern}`): {line}"
        elif pattern.startswith("once: "):
            if (n := sum(bool(re.search(pattern[6:], line)) for line in stderr.splitlines())) != 1:
                yield f"{n} lines instead of one: `{pattern}`"
        elif not any(re.search(pattern, line) for line in rest):  # moves `rest` past the match
            yield f"not found in what was left of stderr: `{pattern}`"
            return


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    expected = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    done = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    stderr = done.stderr.decode(errors="replace")
    sys.stderr.write(stderr)
    found = list(complaints(expected, done.returncode, stderr))
    for line in found:
        print(f"{sys.argv[1]}: {line}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
