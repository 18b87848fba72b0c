#!/usr/bin/env python3
"""Checks Deja on a machine with a GPU and NVIDIA's NCCL, or (--simulated) on the simulated ones.

One line a check: ok, FAILED (why, the command, the folder that is kept) or skipped (why); then a count. The exit code
is 0 if something was checked and nothing failed. With --simulated it is 77 if all was skipped. Python's standard
library is all that is needed besides the folder that pack.sh makes.
"""
import argparse
import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine as machines  # noqa: E402

os.environ["DEJA_BUILD_DIR"] = str(machines.BUILD)
import check  # noqa: E402
import checks_figures  # noqa: E402
import checks_programs  # noqa: E402
import checks_torch  # noqa: E402

MODULES = (checks_programs, checks_torch, checks_figures)

SKIPPED = 77  # the exit code, where the stand-ins could do none of the chosen checks

# What says most of a machine that is lent for minutes; the others follow in the order of the files.
FIRST = ("streams_2_ranks", "digests_by_kernel", "torch_ddp_2_ranks", "torch_fsdp_2_ranks", "graphs_2_ranks",
         "torch_compile_graphs", "fold_turns_2_ranks", "figure_digest_bandwidth", "figure_gpt2_1_rank", "figure_step")


def all_checks():
    """(name, case) of each, those of FIRST before the others."""
    found = dict(checks_of_files())
    return [(name, found[name]) for name in (*FIRST, *(name for name in found if name not in FIRST))]


def checks_of_files():
    for module in MODULES:
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, check.Check) and cls.__module__ == module.__name__:
                for method in vars(cls):
                    if method.startswith("test_"):
                        yield method[len("test_"):], cls(method)


def first_line(text):
    """What an assertion says: the end of it says most, if it holds a command's output."""
    lines = [line for line in str(text).strip().splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"(?i)error|deja:|returned|diverge|no end after", line)]
    return (told or lines or ["no message"])[0][:300]


class Lines(unittest.TestResult):
    """Prints a line for each check as it ends."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.results = []

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def report(self, test, outcome, why=""):
        name = test._testMethodName[len("test_"):]
        seconds = time.monotonic() - self.started
        entry = {"check": name, "outcome": outcome, "seconds": round(seconds, 2), "why": why, "detail": test.detail}
        if outcome == "FAILED":
            entry |= {"command": test.last_command(), "environment": test.with_environment(), "folder": str(test.dir)}
        self.results.append(entry)
        line = f"{outcome:8}{name} ({seconds:.1f} s)"
        for text in (why, test.detail):
            line += f": {text}" if text else ""
        if outcome == "FAILED":
            line += f" | {entry['environment']} {entry['command']} | kept: {entry['folder']}"
        print(line, flush=True)

    def addSuccess(self, test):
        self.report(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(test, "skipped", reason)

    def failed(self, test, err):
        (Path(test.dir) / "why.txt").write_text(self._exc_info_to_string(err, test))
        self.report(test, "FAILED", first_line(err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", action="store_true",
                        help="with the driver and the NCCL of tests/fakes/cuda: says nothing about hardware")
    parser.add_argument("--list", action="store_true", help="the checks, and what each does")
    parser.add_argument("--only", metavar="REGEX", default="", help="those whose name it is found in")
    parser.add_argument("--json", action="store_true", help="the results as one JSON document behind the lines")
    parser.add_argument("--out", metavar="FOLDER", help="for what failed, results.json with all figures, and doctor's report "
                                                        "(default: a new folder in /tmp)")
    parser.add_argument("--minutes", type=float, default=8.5, help="a check that has not begun by then is skipped (8.5)")
    parser.add_argument("--nccl", metavar="FOLDER", default="", help="the folder of libnccl.so.2 (default: the loader's, "
                                                                     "CUDA's, torch's)")
    parser.add_argument("--nccl-tests", metavar="FOLDER", default="", help="the folder of nccl-tests' *_perf")
    parser.add_argument("--python", metavar="PYTHON", help="one that has torch (default: python3; with --simulated none, "
                                                           "and then on CPUs)")
    return parser.parse_args()


def prepare(args):
    """The folder for what is left, and what is on this machine."""
    if not args.simulated and not machines.PACKED:
        sys.exit("run.sh: the programs of a build tree are linked to the simulated driver. tests/gpu/pack.sh FOLDER makes "
                 "a folder whose run.sh is for a GPU; here only --simulated works.")
    out = Path(args.out or tempfile.mkdtemp(prefix="deja-gpu-")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(out)
    python = args.python if args.python is not None else "" if args.simulated else "python3"
    machine = machines.look(args.simulated, args.nccl, python, args.nccl_tests)
    check.SETTINGS = check.Settings(machine, time.monotonic() + args.minutes * 60, out, {})
    return out, machine


def run_all(chosen, result, minutes):
    for _, case in chosen:
        if time.monotonic() > check.SETTINGS.end - 5:
            result.started = time.monotonic()
            result.addSkip(case, f"the {minutes:g} minutes are over")
        else:
            # The harness tells there what the line has.
            with open(os.devnull, "w") as quiet, contextlib.redirect_stderr(quiet):
                case.run(result)


def main():
    args = parse()
    chosen = [(name, case) for name, case in all_checks() if re.search(args.only, name)]
    if args.list:
        for name, case in chosen:
            print(f"{name:32} {case._testMethodDoc}")
        return 0
    if not chosen:
        sys.exit(f"run.sh: no check's name has '{args.only}' in it; --list shows them")
    out, machine = prepare(args)
    print(f"Deja on: {machine.describe()}", flush=True)
    began = time.monotonic()
    result = Lines(out)
    run_all(chosen, result, args.minutes)
    count = {outcome: sum(r["outcome"] == outcome for r in result.results) for outcome in ("ok", "FAILED", "skipped")}
    document = {"machine": vars(machine), "count": count, "results": result.results, "figures": check.SETTINGS.figures}
    (out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    print(f"{count['ok']} ok, {count['FAILED']} failed, {count['skipped']} skipped of {len(chosen)} in "
          f"{time.monotonic() - began:.0f} s; {shlex.quote(str(out))}")
    if args.json:
        print(json.dumps(document))
    if args.simulated and not count["FAILED"] and not count["ok"]:
        return SKIPPED
    return 1 if count["FAILED"] or not count["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
