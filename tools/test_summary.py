#!/usr/bin/env python3
"""Reads meson's testlog.json files and prints how the tests went; the last line is `N passed, N failed`.

Exits 1 if a test failed, or if none passed.
"""

import json
import sys

results = {}
for path in sys.argv[1:]:
    try:
        with open(path, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                results.setdefault(test["result"], []).append(test["name"])
    except OSError:
        pass  # no test ran

passed = sum(len(results.pop(kind, [])) for kind in ("OK", "EXPECTEDFAIL"))
skipped = results.pop("SKIP", [])
failed = sum(map(len, results.values()))

for kind, names in sorted(results.items()):
    for name in names:
        print(f"{kind}: {name}")
if skipped:
    print(f"skipped: {', '.join(skipped)}")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
