#!/usr/bin/env python3
"""What `deja check` finds in all recordings of the end-to-end tests.

Each finding is true of its program, or a false alarm.

    DEJA_CHECK_LOG=found.jsonl ctest --test-dir build -L e2e
    tests/e2e/check_log.py found.jsonl             counts by exit status and kind, and each finding with its test

harness.py calls look_at() after each command; without DEJA_CHECK_LOG it does nothing.
"""
import collections
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

LOG = os.environ.get("DEJA_CHECK_LOG")
TIMEOUT = 120


def recorded(deja, argv, folder):
    """The trace that `deja record --out …` has left, and its level; None: the command is another one."""
    argv = [str(word) for word in argv]
    try:
        start = argv.index(str(deja))
        options = argv[start + 1:argv.index("--", start)] if "--" in argv[start:] else argv[start + 1:]
        out = next(value for name, value in zip(options, options[1:]) if name in ("--out", "-o"))
    except (ValueError, StopIteration):
        return None
    trace = Path(folder, out)
    if options[0] != "record" or not any(trace.glob("rank-*")):
        return None
    return trace, dict(zip(options, options[1:])).get("--level", "full")


def look_at(test, deja, argv, folder):
    found = recorded(deja, argv, folder) if LOG else None
    if found is None:
        return
    trace, level = found
    done = subprocess.run([deja, "check", trace, "--json"], env=test.environment(None), capture_output=True, text=True,
                          check=False, timeout=TIMEOUT)
    line = {"test": test.id(), "level": level, "command": [str(word) for word in argv], "exit": done.returncode}
    if done.returncode in (0, 3, 4):
        report = json.loads(done.stdout)
        line.update(findings=report["findings"], notes=report["notes"])
    else:
        line.update(findings=[], error=done.stderr)
    with open(LOG, "a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(json.dumps(line) + "\n")


def main():
    with open(sys.argv[1]) as log:
        lines = [json.loads(line) for line in log]
    exits = collections.Counter(line["exit"] for line in lines)
    kinds = collections.Counter(finding["kind"] for line in lines for finding in line["findings"])
    print(f"{len(lines)} recordings of {len({line['test'] for line in lines})} tests; by exit status: "
          + ", ".join(f"{code}: {count}" for code, count in sorted(exits.items())))
    print("findings: " + (", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none"))
    for line in lines:
        if "error" in line:
            print(f"\n{line['test']}\n  {line['error'].strip()}")
        for finding in line["findings"]:
            print(f"\n{line['test']} (level {line['level']})\n  {' '.join(line['command'][-6:])}\n"
                  f"  {finding['kind']}: {finding['sentence']}")


if __name__ == "__main__":
    main()
