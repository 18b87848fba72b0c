#!/usr/bin/env python3
"""Runs the steps of tools/test.sh: builds, tests, lints. Says every minute where it is, and at the end the times.

usage: tools/run_steps.py (--quick | --push | --all | --nightly)

A step that fails does not stop the others, so that one run shows all that is wrong. What a step prints goes to
build/steps/STEP.log; what failed is shown. The processor time of each label's tests is held against the table in
docs/TESTING.md: a label that takes over 20% more fails the run.
"""
import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import test_report

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "steps"
JOBS = int(os.environ.get("DEJA_JOBS") or os.cpu_count())
# Jobs of several processes wait for each other a third of the time. They are one step, so that the longest of all begin
# first and no processor is idle at the end of each label.
WAITING_LABELS = ("e2e", "torch")
# What runs for a time, and not until it is done, has a processor of its own.
TIMED_LABELS = ("fuzz",)
FUZZERS = "fuzz/fuzz_"  # how their tests' names begin
TICK_S = 60


def first_tool(*names):
    return next((name for name in names if shutil.which(name)), names[0])


CLANG = [f"-DCMAKE_C_COMPILER={first_tool('clang-14', 'clang-18', 'clang')}",
         f"-DCMAKE_CXX_COMPILER={first_tool('clang++-14', 'clang++-18', 'clang++')}"]


def folder_of(preset):
    return ROOT / ("build" if preset == "dev" else f"build-{preset}")


@dataclasses.dataclass
class Ran:
    """One command's end: exit code, seconds by the clock, seconds of processor time of it and its children."""
    code: int
    wall: float
    cpu: float


def log_of(step):
    LOGS.mkdir(parents=True, exist_ok=True)
    return LOGS / (re.sub(r"[^a-z0-9]+", "-", step.lower()) + ".log")


def started(log, argv, env=None, append=False):
    """(process, when it began)."""
    with open(log, "a" if append else "w", encoding="utf-8") as out:
        began = time.monotonic()
        return subprocess.Popen([str(a) for a in argv], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                                env={**os.environ, **(env or {})}), began


def ended(process, began):
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ran(process.returncode, time.monotonic() - began, used.ru_utime + used.ru_stime)


def jobs_for(labels):
    if set(labels) & set(TIMED_LABELS):
        return JOBS
    return 5 * JOBS // 2 if set(labels) & set(WAITING_LABELS) else 2 * JOBS


class Run:
    def __init__(self, steps):
        self.steps = steps
        self.failed = []      # names of steps
        self.shown = []       # what each of them said, for the end
        self.took = []        # (step, Ran)
        self.reports = []     # JUnit files of all tests that ran
        self.counts = {}      # label or step -> [passed, failed, skipped]
        self.over_budget = []
        self.unstable = []
        self.began = time.monotonic()
        self.current = None   # (step, log)
        self.beside = {}      # step -> the thread that waits for it: what runs beside the others
        self.ended = threading.Event()

    # ---- running

    def command(self, step, argv, env=None, append=False):
        """Runs a command into the step's log."""
        log = log_of(step)
        self.current = (step, log)
        return ended(*started(log, argv, env, append)), log

    def begin(self, step, argv):
        """Starts a command that waits more than it computes, beside the steps that follow."""
        command = started(log_of(step), argv)
        self.beside[step] = threading.Thread(target=lambda: self.took.append((step, ended(*command))), daemon=True)
        self.beside[step].start()

    def join(self, step):
        self.current = (step, log_of(step))
        self.beside.pop(step).join()

    def fail(self, step, *texts):
        """Said at once: a run that is stopped has no summary."""
        print(f"FAILED: {step}", flush=True)
        self.failed.append(step)
        self.shown += [(step, text) for text in texts]

    def plain(self, step, argv):
        ran, log = self.command(step, argv)
        self.took.append((step, ran))
        if ran.code != 0:
            self.fail(step, tail(log))
        return ran.code == 0

    def build(self, preset, options=()):
        step = f"{preset}: build"
        configured, log = self.command(step, ["cmake", "--preset", preset, *options])
        if configured.code != 0:
            return self.fail(step, tail(log))
        ran, log = self.command(step, ["cmake", "--build", "--preset", preset, "-j", str(JOBS)], append=True)
        self.took.append((step, ran))
        if ran.code != 0:
            self.fail(step, compiler_errors(log))
        return None

    def tests(self, preset, labels, env=None):
        """The tests of these labels. Those that fail run again, alone: what then passes is named as unstable, a bug
        that is not of the change that is tested. A fuzzer does not run again: it draws other inputs, and what it
        has found stays a bug."""
        step = step_of(preset, labels)
        if f"{preset}: build" in self.failed:
            self.fail(step, "not run: the build failed")
            return
        name = "-".join(labels)
        report = folder_of(preset) / f"tests-{name}.xml"
        report.unlink(missing_ok=True)
        jobs = jobs_for(labels)
        argv = ["ctest", "--test-dir", folder_of(preset), "-L", f"^({'|'.join(labels)})$", "-j", str(jobs), "--no-tests=error",
                "--output-on-failure", "--test-output-size-passed", "1000000", "--output-junit", report]
        ran, log = self.command(step, argv, env)
        self.took.append((step, ran))
        if not report.exists():
            self.fail(step, tail(log))
            return
        self.reports.append((preset, report))
        cases = test_report.read(report)
        broken = [case for case in cases if case.failed]
        repeatable = [case for case in broken if not case.name.startswith(FUZZERS)]
        for case in broken:
            print(f"failed: {preset}: {case.name}{'; it runs again, alone' if case in repeatable else ''}", flush=True)
        self.shown += [(step, test_report.story(case)) for case in broken]
        if repeatable:
            again = folder_of(preset) / f"tests-{name}-again.xml"
            again.unlink(missing_ok=True)
            names = "|".join(f"^{re.escape(case.name)}$" for case in repeatable)
            self.command(step, ["ctest", "--test-dir", folder_of(preset), "-R", names, "-j", "1", "--output-on-failure",
                                "--output-junit", again], env, append=True)
            second = {case.name: case for case in test_report.read(again)} if again.exists() else {}
            passed = [c.name for c in repeatable if c.name in second and not second[c.name].failed]
            self.unstable += [f"{preset}: {name}" for name in passed]
            cases = [second.get(case.name, case) if case.failed else case for case in cases]
        if any(case.failed for case in cases):
            self.fail(step)
        self.counts[step] = test_report.counts(cases)
        for line in test_report.skips(cases):
            print(f"skipped: {preset}: {line}", flush=True)
        # A night repeats: no budget. To know the machine's pace takes seconds, and few steps need it.
        if not env and test_report.over_budget(step, ran.cpu):
            over = test_report.over_budget(step, ran.cpu, pace())
            if over:
                self.over_budget.append(over)

    # ---- saying

    def progress(self):
        """What the step's log says of how far it is: ninja's [3/40], ctest's 3/40."""
        if self.current is None:
            return ""
        step, log = self.current
        try:
            with open(log, "rb") as file:
                file.seek(max(0, log.stat().st_size - 4096))
                text = file.read().decode(errors="replace")
        except OSError:
            return step
        found = re.findall(r"(?m)^\[(\d+)/(\d+)\]|^ *(\d+)/(\d+) Test", text)
        if not found:
            return step
        done, of = [n for n in found[-1] if n]
        return f"{step}, {done} of {of}"

    def tick(self):
        while not self.ended.wait(TICK_S):
            left = [name for name, _ in self.steps[self.at + 1:]]
            rest = f"; left: {', '.join(left)}" if left else ""
            print(f"[{self.minutes():4.1f} min] {self.progress()}{rest}", flush=True)

    def minutes(self):
        return (time.monotonic() - self.began) / 60

    def go(self):
        ticker = threading.Thread(target=self.tick, daemon=True)
        self.at = 0
        ticker.start()
        for self.at, (name, step) in enumerate(self.steps):
            print(f"[{self.minutes():4.1f} min] {name}", flush=True)
            step(self)
        self.ended.set()
        ticker.join()
        return self.summary()

    def summary(self):
        for step, text in self.shown:
            print(f"\n== {step}\n{text}")
        print("\nstep                                 clock, s  processor, s")
        for step, ran in self.took:
            print(f"{step:36} {ran.wall:8.0f} {ran.cpu:13.0f}")
        print("\nslowest builds, s")
        for seconds, name in slowest_builds(self.began)[:10]:
            print(f"{seconds:8.1f}  {name}")
        print("\nslowest tests, s")
        timed = [(case.seconds, f"{preset}: {case.name}") for preset, report in self.reports
                 for case in test_report.read(report)]
        for seconds, name in sorted(timed, reverse=True)[:10]:
            print(f"{seconds:8.1f}  {name}")
        for name in self.unstable:
            print(f"\nUNSTABLE: {name} passed only when it ran alone")
        for line in self.over_budget:
            print(f"\nOVER BUDGET: {line}")
        if self.failed:
            print(f"\nFAILED: {', '.join(self.failed)}")
        sums = [sum(column) for column in zip(*self.counts.values())] or [0, 0, 0]
        print(f"\n{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped, in {self.minutes():.1f} minutes", flush=True)
        (LOGS / "summary.json").write_text(json.dumps({
            "minutes": self.minutes(), "counts": self.counts, "failed": self.failed, "unstable": self.unstable,
            "steps": [{"step": step, "clock_s": ran.wall, "processor_s": ran.cpu} for step, ran in self.took]},
            indent=1))
        return 1 if self.failed or self.over_budget else 0


def tail(log, lines=60):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def compiler_errors(log):
    said = log.read_text(errors="replace").splitlines()
    errors = [i for i, line in enumerate(said) if re.search(r"error:|FAILED:|undefined reference", line)]
    return "\n".join(said[i] for i in errors[:80]) or tail(log)


def slowest_builds(began):
    """(seconds, output) of what the builds of this run made, as ninja's logs have it."""
    found = []
    for log in ROOT.glob("build*/.ninja_log"):
        if log.stat().st_mtime < time.time() - (time.monotonic() - began):
            continue
        for line in log.read_text().splitlines()[1:]:
            begin, end, _, output, _ = line.split("\t")
            found.append(((int(end) - int(begin)) / 1000, f"{log.parent.name}: {output}"))
    return sorted(found, reverse=True)


def pace():
    """How slow this machine is now beside the one of docs/TESTING.md's budget. It is the processor time of a fixed
    piece of work on all processors at once, over that machine's. At least 1."""
    work = ("import hashlib, time, zlib\nb = time.process_time()\nd = {}\n"
            "for i in range(2000000): d[str(i)] = i\n"
            "for i in range(80): zlib.compress(hashlib.sha256(b'%d' % i).digest() * 40000)\n"
            "print(time.process_time() - b)")
    running = [subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE, text=True)
               for _ in range(os.cpu_count())]
    times = [float(process.communicate()[0]) for process in running]
    return max(1.0, sum(times) / len(times) / test_report.REFERENCE_PACE_S)


def formatting(run):
    run.plain("formatting", ["tools/format.sh", "--check"])


def build(preset, options=()):
    return f"{preset}: build", lambda run: run.build(preset, options)


def step_of(preset, labels):
    return f"{preset}: {', '.join(labels)}"


def tests(preset, *groups, env=None):
    """A step for each label, or for each tuple of labels whose tests run side by side."""
    groups = [(group,) if isinstance(group, str) else group for group in groups]
    return [(step_of(preset, labels), lambda run, labels=labels: run.tests(preset, labels, env)) for labels in groups]


def newest_torch(env):
    """The step that begins its installation, and those that wait for it. A failure shows in the tests, which install it
    once more."""
    step = "installation of the newest torch"
    argv = [first_tool("/usr/bin/python3", sys.executable), "tests/e2e/newest_torch_test.py", "--install"]
    return ((f"{step} begins", lambda run: run.begin(step, argv)),
            [(step, lambda run: run.join(step)), *tests("dev", "newest-torch", env=env)])


def tidy(*arguments):
    return "clang-tidy", lambda run: run.plain("clang-tidy", ["tools/tidy.py", *arguments])


PUSH_LABELS = ("unit", "conformance", "golden", "fuzz", "crash", WAITING_LABELS)
NIGHTLY = {"DEJA_TEST_KILLS": "500", "DEJA_REPLAYS": "100", "DEJA_FUZZ_SECONDS": "3600"}


def steps_of(kind):
    """[(name, function of the run)] in their order."""
    patient = ["-DDEJA_TIMEOUT_FACTOR=100"] if kind == "nightly" else []
    first = [("formatting", formatting), build("dev", options=patient)]
    if kind == "quick":
        return first + tests("dev", "unit", "conformance")
    env = NIGHTLY if kind == "nightly" else None
    push = first + tests("dev", *PUSH_LABELS, env=env)
    if kind == "push":
        return push
    # asan has clang, AddressSanitizer, UBSan and the fuzzers in one build, of the product and what can run under them.
    installation, with_newest_torch = newest_torch(env)
    whole = [installation] + push + [
        build("asan", options=[*CLANG, *patient]),
        *tests("asan", "unit", "golden", "crash", "fuzz", env=env),
        build("tsan"), *tests("tsan", "unit"),
        # They take the dev build's objects from the compiler's cache.
        build("release"), *tests("release", "benchmark"), *tests("dev", "wheel"), *with_newest_torch,
        tidy(*(["--all"] if kind == "nightly" else []))]
    if kind == "nightly":
        # Each source by itself: what it needs it has to include.
        whole += [build("plain"), build("clang", options=CLANG), *tests("clang", "unit", "conformance", "golden"),
                  *tests("dev", "packaging", env=env)]
    return whole


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kind = parser.add_mutually_exclusive_group(required=True)
    for name in ("quick", "push", "all", "nightly"):
        kind.add_argument(f"--{name}", dest="kind", action="store_const", const=name)
    # Checkouts share the compiler's cache, but for sources with precompiled headers. Where the sources were when an
    # object was compiled matters to few tests (tests/e2e/apps/replay/CMakeLists.txt).
    os.environ.update(CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    shutil.rmtree(LOGS, ignore_errors=True)
    sys.exit(Run(steps_of(parser.parse_args().kind)).go())


if __name__ == "__main__":
    main()
