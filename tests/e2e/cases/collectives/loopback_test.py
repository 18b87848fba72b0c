"""The loopback library alone: N processes on the NCCL API, without recording or replaying."""
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

THEMES = ["abort", "collectives", "comms", "errors", "groups", "grow", "initall", "large", "nonblocking", "p2p",
          "premul", "registration", "scalable", "shrink", "split", "threads"]
FEWEST_RANKS = {"abort": 2, "grow": 2, "shrink": 3}


class Job:
    """Processes with RANK, WORLD_SIZE and one NCCL_COMM_ID, as a launcher starts them."""

    def __init__(self, test, program, n, args=(), env=None, ranks=None, delay=None):
        comm_id = f"127.0.0.1:{os.getpid() % 30000 + 20000}-{id(self)}-{time.monotonic_ns()}"
        self.processes = {}
        self.outputs = {}
        for rank in (range(n) if ranks is None else ranks):
            if delay and rank in delay:
                time.sleep(delay[rank])
            variables = {"RANK": rank, "WORLD_SIZE": n, "NCCL_COMM_ID": comm_id, **(env or {})}
            self.processes[rank] = test.start([harness.app(program), *args], env=variables)
        self._readers = [threading.Thread(target=self._read, args=item) for item in self.processes.items()]
        for reader in self._readers:
            reader.start()

    def _read(self, rank, process):
        out, err = process.communicate()
        self.outputs[rank] = (process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def wait(self, test, timeout=120):
        end = time.monotonic() + timeout
        for reader in self._readers:
            reader.join(max(0.0, end - time.monotonic()))
        late = [rank for rank, process in self.processes.items() if process.poll() is None]
        for rank in late:
            self.processes[rank].kill()
        for reader in self._readers:
            reader.join()
        if late:
            test.fail(f"ranks {late} did not end within {timeout} s: {self.outputs}")
        return self.outputs


class Loopback(harness.DejaTest):
    def good(self, program, n, args=(), **kwargs):
        outputs = Job(self, program, n, args, **kwargs).wait(self)
        for rank, (code, out, err) in outputs.items():
            self.assertEqual(code, 0, f"rank {rank} of {program}: {out}{err}")
            self.assertIn(f"rank {rank}: ok", out)
        return "".join(outputs[rank][1] for rank in sorted(outputs))

    def test_every_function_does_what_its_reference_says(self):
        for theme in THEMES:
            for n in (1, 2, 3, 4, 5):
                if n < FEWEST_RANKS.get(theme, 1) or (n == 5 and theme in ("collectives", "large")):
                    continue
                with self.subTest(theme=theme, ranks=n):
                    self.good(f"nccl_{theme}", n)

    def test_results_are_the_same_in_every_run(self):
        for theme in ("collectives", "groups", "large", "p2p", "premul", "threads"):
            with self.subTest(theme=theme):
                first = self.good(f"nccl_{theme}", 3, ["--seed", "42"])
                self.assertEqual(first, self.good(f"nccl_{theme}", 3, ["--seed", "42"]))
                if theme == "groups":
                    self.assertNotEqual(first, self.good(f"nccl_{theme}", 3, ["--seed", "43"]))

    def test_unseeded_runs_check_themselves_too(self):
        for theme in ("groups", "p2p", "split", "nonblocking", "threads"):
            with self.subTest(theme=theme):
                first = self.good(f"nccl_{theme}", 4, ["--unseeded"])
                self.assertNotEqual(first, self.good(f"nccl_{theme}", 4, ["--unseeded"]))

    def test_more_ranks_than_processors(self):
        self.good("nccl_p2p", 12)
        self.good("nccl_split", 12)

    def test_ranks_may_come_late_and_in_any_order(self):
        self.good("nccl_split", 3, ranks=[2, 1, 0], delay={0: 0.7, 1: 0.2})

    def test_an_id_of_the_program_is_enough(self):
        # Without NCCL_COMM_ID ids are random; these ranks share a process.
        self.good("nccl_initall", 2, env={"NCCL_COMM_ID": ""})

    def test_nothing_is_left(self):
        before = harness.shm_names()
        self.good("nccl_comms", 3)
        Job(self, "nccl_survivors", 3, ["--during", "large"]).wait(self)
        # Recordings of tests that run at the same time have their tails there.
        left = {name for name in harness.shm_names() - before if not name.endswith(".tail")}
        self.assertEqual(left, set())

    def test_the_death_of_a_rank_reaches_all_others(self):
        for during in ("all-reduce", "large", "broadcast", "receive", "send", "split", "group", "init"):
            for victim in (0, 1):
                with self.subTest(during=during, victim=victim):
                    outputs = Job(self, "nccl_survivors", 4, ["--during", during, "--victim", str(victim)]).wait(self)
                    for rank, (code, out, err) in outputs.items():
                        if rank == victim:
                            self.assertEqual(code, -9)
                        else:
                            self.assertEqual(code, 0, f"rank {rank}: {out}{err}")

    def test_a_rank_0_that_never_comes_is_an_error(self):
        outputs = Job(self, "nccl_split", 3, ranks=[1, 2], env={"NCCL_SOCKET_RETRY_CNT": 5}).wait(self, timeout=60)
        for code, _, err in outputs.values():
            self.assertEqual(code, 1)
            self.assertIn("rank 0 of this communicator did not appear in time", err)

    def test_ranks_that_disagree_on_the_size_are_reported(self):
        comm_id = f"disagree-{os.getpid()}-{time.monotonic_ns()}"
        processes = [self.start([harness.app("nccl_split")], env={"RANK": rank, "WORLD_SIZE": size, "NCCL_COMM_ID": comm_id})
                     for rank, size in ((0, 2), (1, 3))]
        _, err = processes[1].communicate(timeout=60)
        self.assertEqual(processes[1].returncode, 1)
        self.assertIn("rank 0 says 2", err.decode())
        processes[0].kill()
        processes[0].communicate()

    def test_messages_go_to_stderr_when_nccl_debug_says_so(self):
        loud = Job(self, "nccl_errors", 1, env={"NCCL_DEBUG": "WARN"}).wait(self)[0][2]
        self.assertIn("NCCL WARN", loud)
        quiet = Job(self, "nccl_errors", 1).wait(self)[0][2]
        self.assertNotIn("NCCL WARN", quiet)


class Library(harness.DejaTest):
    LIBRARY = harness.BUILD / "lib" / "nccl" / "libnccl.so.2"

    def test_every_function_of_the_header_is_exported_twice(self):
        header = (harness.ROOT / "include" / "compat" / "nccl.h").read_text()
        names = re.findall(r"^DEJA_NCCL_DECLARE\([^,]+, (nccl\w+),", header, re.M)
        self.assertGreater(len(names), 50)
        symbols = dict(reversed(line.split()[1:]) for line in subprocess.run(
            ["nm", "-D", "--defined-only", self.LIBRARY], check=True, capture_output=True, text=True).stdout.splitlines())
        for name in names:
            self.assertEqual(symbols.pop(name, None), "W", name)
            self.assertEqual(symbols.pop("p" + name, None), "T", name)
        self.assertEqual({name for name in symbols if "nccl" not in name}, set())

    def test_it_is_called_libnccl(self):
        dynamic = self.checked(self.command(["readelf", "-d", self.LIBRARY])).stdout
        self.assertIn("Library soname: [libnccl.so.2]", dynamic)
        self.assertNotIn("libstdc++", dynamic)

    def test_it_loads_by_ctypes(self):
        library = ctypes.CDLL(str(self.LIBRARY))
        version = ctypes.c_int()
        self.assertEqual(library.ncclGetVersion(ctypes.byref(version)), 0)
        self.assertGreaterEqual(version.value, 23000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
