#!/usr/bin/env python3
"""How long `deja check` takes on recordings of very many ranks, from events and from summaries, and how much memory.

usage: check_many.py [--ranks 64 256 1024] [--collectives 100000] [--build build] [--folder DIR]

Writes each trace with the product's writer (tests/zoo/many_ranks.cc: level digest, two digests a collective); one rank
leaves one collective out. The check must name that rank. Each trace is removed before the next. The page cache is as
writing left it.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def run(argv, good):
    """Elapsed and processor seconds, megabytes at most, and the output."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(a) for a in argv], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        if process.returncode != good:
            raise SystemExit(f"{argv}: exit {process.returncode}")
        out.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read().decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--collectives", type=int, default=100_000)
    parser.add_argument("--build", type=Path, default=Path("build-release"))
    parser.add_argument("--folder", help="where the traces are made; default: where temporary files are")
    args = parser.parse_args()
    deja, writer = args.build / "bin" / "deja", args.build / "tests" / "zoo" / "zoo_many_ranks"
    print(f"{args.collectives} collectives a rank\n")
    print("| ranks | events, MB | command | clock, s | processor, s | memory, MB | load |\n| " + "--- | " * 7)
    for ranks in args.ranks:
        folder = Path(tempfile.mkdtemp(prefix="deja-bench-", dir=args.folder))
        trace, faulty = folder / "run.deja", ranks * 3 // 5
        try:
            run([writer, trace, ranks, args.collectives, faulty], 0)
            for name, argv, good in (("check", ["check", trace, "--json"], 4),
                                     ("check --summarize", ["check", "--summarize", trace], 0),
                                     ("check, from summaries", ["check", trace, "--json"], 4)):
                seconds, processor, memory, out = run([deja, *argv], good)
                if good == 4:
                    found = [(f["kind"], f["ranks"], f["collective"]) for f in json.loads(out)["findings"]]
                    if found != [("order", [faulty], args.collectives // 2 + 1)]:
                        raise SystemExit(f"found {found}")
                pattern = "summary.deja" if name.endswith("summaries") else "events.deja"
                size = sum(file.stat().st_size for file in trace.glob(f"rank-*/{pattern}"))
                print(f"| {ranks} | {size / 1e6:.0f} | {name} | {seconds:.1f} | {processor:.1f} | {memory:.0f} | "
                      f"{os.getloadavg()[0]:.1f} |", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
