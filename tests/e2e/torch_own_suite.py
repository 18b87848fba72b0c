#!/usr/bin/env python3
"""PyTorch's own tests of process groups (DistributedTest, of the installed torch) without Deja and under `deja record`.

    DEJA_TORCH_PYTHON=PYTHON tests/e2e/torch_own_suite.py [--size 2] [--match REGEX]

Each test has processes of its own, forked. Prints how many passed, failed and were skipped in both runs, and every
test that did not end alike. torch's tests need the package expecttest. It takes half an hour, so it is no part of
`ctest -L torch`.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()


def run_tests(match, results):
    """In torch's Python. Each test's end is written as a line at once: a run that hangs keeps what it has."""
    import unittest

    import torch
    from torch.testing._internal.distributed import distributed_test

    class Own(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    class Result(unittest.TestResult):
        def tell(self, test, end, text=""):
            with open(results, "a", encoding="utf-8") as file:
                last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
                file.write(f"{test.id().rpartition('.')[2]}\t{end}\t{last}\n")

        def addSuccess(self, test):
            self.tell(test, "passed")

        def addSkip(self, test, reason):
            self.tell(test, "skipped")

        def addFailure(self, test, error):
            self.tell(test, "failed", self._exc_info_to_string(error, test))

        addError = addFailure

    torch.set_num_threads(1)
    names = [name for name in unittest.TestLoader().getTestCaseNames(Own) if re.search(match, name)]
    unittest.TestSuite(map(Own, names)).run(Result())


def results_of(command, size, folder, match, timeout):
    folder.mkdir()
    results = folder / "results"
    results.touch()
    env = {**os.environ, "BACKEND": "gloo", "WORLD_SIZE": str(size), "TEMP_DIR": str(folder), "INIT_METHOD": "env://",
           "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60", "CUDA_VISIBLE_DEVICES": ""}
    with open(folder / "output", "wb") as output:
        job = subprocess.Popen([*map(str, command), str(HERE), "--match", match, "--results", str(results)], env=env,
                               cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            job.wait(timeout)
        except subprocess.TimeoutExpired:
            job.terminate()
            job.wait()
            print(f"{folder.name}: not all tests in {timeout} s")
    return {name: (end, why) for name, end, why in
            (line.split("\t", 2) for line in results.read_text(encoding="utf-8").splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--match", default="")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for each of the two runs")
    parser.add_argument("--keep", type=Path, help="a folder for the output of both runs")
    parser.add_argument("--results", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.results:
        return run_tests(options.match, options.results)
    python = os.environ.get("DEJA_TORCH_PYTHON", "/usr/bin/python3")
    deja = Path(os.environ.get("DEJA_BUILD_DIR", HERE.parents[2] / "build")) / "bin" / "deja"
    with tempfile.TemporaryDirectory(prefix="deja-suite-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        runs = {"without": [python], "recorded": [deja, "record", "--out", folder / "run.deja", "--", python]}
        ends = {name: results_of(command, options.size, folder / name, options.match, options.timeout)
                for name, command in runs.items()}
    for name, found in ends.items():
        print(name, dict(collections.Counter(end for end, _ in found.values())))
    unlike = 0
    for test in sorted(set(ends["without"]) | set(ends["recorded"])):
        plain, recorded = (ends[name].get(test, ("not reached", "")) for name in runs)
        if plain[0] != recorded[0]:
            unlike += 1
            print(f"{test}: {plain[0]} without Deja, {recorded[0]} under it {recorded[1] or plain[1]}")
    print(f"{unlike} tests ended otherwise")
    if not any(end == "passed" for end, _ in ends["without"].values()):
        return f"no test passed without Deja: {folder / 'without' / 'output'} says why (--keep FOLDER keeps it)"
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
