#!/usr/bin/env python3
"""What it costs in gdb to go back one step late in a run: to an image of the process, and by starting it anew.

    benchmarks/replay/going_back.py [--build build] [--lengths 100,1000,10000] [--runs 3]

Records tests/e2e/apps/replay/alone.cc, two ranks, and goes to the last step but one and from there one back, with `deja goto`. Elapsed time, since
gdb's is most of it; both ways in the same run of this program.
"""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path

CLOCK = 'python import time; print("at %.3f" % time.monotonic())'
NO_IMAGES = "python import deja_gdb.images; deja_gdb.images.latest = lambda *_: None"


def seconds(deja, trace, steps, images):
    """(to the late step, back from there)"""
    commands = [CLOCK, f"deja goto step {steps - 1}", CLOCK, *([] if images else [NO_IMAGES]), f"deja goto step {steps - 2}", CLOCK]
    words = [word for command in commands for word in ("--gdb-command", command)]
    run = subprocess.run([deja, "replay", trace, "--rank", "1", "--gdb", *words], capture_output=True, text=True, check=True)
    if ("went back to the image of step" in run.stdout) != images:
        raise SystemExit(run.stdout + run.stderr)
    begin, there, back = map(float, re.findall(r"^at (\S+)$", run.stdout, re.MULTILINE))
    return there - begin, back - there


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--lengths", default="100,1000,10000")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    build = options.build.resolve()
    print("| steps | to the last but one | back, to an image | back, anew |\n| --- | --- | --- | --- |")
    for steps in map(int, options.lengths.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").write_bytes(bytes(1024))
            trace = f"{folder}/run.deja"
            subprocess.run([build / "bin/deja", "record", "--loopback", "-n", "2", "--level", "full", "--out", trace, "--",
                            build / "tests/apps/replay_alone", f"{folder}/data", "--steps", str(steps)],
                           cwd=folder, capture_output=True, check=True)
            found = {images: [seconds(build / "bin/deja", trace, steps, images) for _ in range(options.runs)] for images in (True, False)}
        columns = [[there for there, _ in found[True]], [back for _, back in found[True]], [back for _, back in found[False]]]
        print(f"| {steps} | " + " | ".join(f"{min(c):.2f} to {max(c):.2f} s" for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
