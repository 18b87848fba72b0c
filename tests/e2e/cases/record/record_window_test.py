#!/usr/bin/env python3
"""Recordings that keep a window of payloads: what is on the disk, what is kept, and what is said about it."""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

RANKS = 2

# Workers that come one after the other and read files, each its own ones.
READERS = r"""
import os, sys, zlib

for worker, name in enumerate(sys.argv[1:]):
    pid = os.fork()
    if pid == 0:
        with open(name, "rb") as file:
            print(worker, zlib.crc32(file.read()), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""
# A launcher that starts the two ranks of a job again and again. All but the last time it kills them when they have
# used the disk budget up.
RESTARTS = r"""
import os, pathlib, signal, subprocess, sys, time

trace, full, times, first_port = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])


def start(time_no, steps):
    shared = {"WORLD_SIZE": "2", "NCCL_COMM_ID": f"127.0.0.1:{first_port + time_no}"}
    return [subprocess.Popen([*sys.argv[5:], f"--steps={steps}"], env={**os.environ, **shared, "RANK": str(rank)})
            for rank in range(2)]


def taken(folder):
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # dropped meanwhile
            pass
    return total


for time_no in range(times):
    ranks = start(time_no, 1000000)
    name = "" if time_no == 0 else f".{time_no}"
    while not all((trace / f"rank-0000{rank}{name}").is_dir() for rank in range(2)):
        time.sleep(0.01)
    end = time.monotonic() + 60
    said = False
    while time.monotonic() < end and not said:
        said = sum(taken(trace / f"rank-0000{rank}{name}") for rank in range(2)) > full // (1 if time_no == 0 else 3)
        time.sleep(0.01)
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
        rank.wait()
    if not said:
        sys.exit(f"attempt {time_no} kept too little")
sys.exit(max(rank.wait() for rank in start(times, 12)))
"""
READER = harness.ROOT / "tests" / "conformance" / "trace" / "independent_reader.py"


class Window(harness.DejaTest):
    def payload_files(self, rank=0):
        return sorted((self.trace_path() / f"rank-0000{rank}").glob("payloads*.deja"))

    def payload_bytes_on_disk(self):
        total = 0
        for path in self.trace_path().glob("rank-*/payloads*.deja"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # dropped meanwhile
                pass
        return total

    def results(self, rank):
        """(step, hash) of each result, in order."""
        step, found = 0, []
        for event in self.show_json("--rank", str(rank)):
            if event["kind"] == "step":
                step = event["step"]
            elif event["kind"] == "results":
                found += [(step, tensor["hash"]) for tensor in event["outputs"]]
        return found

    def kept_hashes(self):
        """As a reader written from docs/FORMAT.md finds them; what several ranks have together counts."""
        kept = set()
        for folder in self.trace_path().glob("rank-*"):
            dump = subprocess.run([sys.executable, READER, folder], stdout=subprocess.PIPE, text=True, check=True)
            kept |= set(re.findall(r'"payload":"([0-9a-f]+)"', dump.stdout))
        return kept

    def assertKept(self, steps, gone=()):
        kept = self.kept_hashes()
        for rank in range(RANKS):
            results = self.results(rank)
            self.assertTrue(results)
            for step, name in results:
                if step in steps:
                    self.assertIn(name, kept, f"rank {rank}, step {step}")
                if step in gone:
                    self.assertNotIn(name, kept, f"rank {rank}, step {step}")

    def assertNamedStepsAreWhole(self):
        kept = self.kept_hashes()
        for rank, info in enumerate(self.info_json()["ranks"]):
            named = info["window"]["kept_steps"]
            for step, name in self.results(rank):
                if any(first <= step <= last for first, last in named):
                    self.assertIn(name, kept, f"rank {rank}, step {step}")

    def assertSaidItsSize(self, run):
        """At the end, of what there is at the end."""
        said = re.search(r"recorded .* in run\.deja \(([0-9.]+) (k?M?)B\)", run.stderr)
        self.assertTrue(said, run.stderr)
        size = sum(path.stat().st_size for path in self.trace_path().glob("*/*") if path.is_file())
        self.assertAlmostEqual(float(said[1]) * {"": 1, "k": 1e3, "M": 1e6}[said[2]] / size, 1, delta=0.01)

    def wait_for(self, what, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if what():
                return
            time.sleep(0.05)
        self.fail("it did not come to pass")

    def test_a_long_run_takes_no_more_than_its_window(self):
        args = ["--steps=1500", "--calls=2", "--count=16384"]
        process = self.start(self.record_argv("stepper", args, n=RANKS, options=["--keep-steps", "5"]))
        most = 0
        while process.poll() is None:
            most = max(most, self.payload_bytes_on_disk())
            time.sleep(0.02)
        recorded = self.checked(self.finish(process))
        one_step = 2 * 65536 * RANKS  # if nothing shrank and nothing was kept once
        # The window, the rest of a slower rank's, and segments on their way out; not the 1500 steps.
        self.assertLess(most, 100 * one_step)
        self.assertLess(self.payload_bytes_on_disk(), 20 * one_step)
        self.assertSameLines(self.launch("stepper", args, n=RANKS).stdout, recorded.stdout)
        self.assertVerifies()
        self.assertKept(range(1496, 1501), gone=range(1, 1480))
        info = self.deja("info", self.trace_path())
        self.checked(info)
        self.assertRegex(info.stdout, r"window: the payloads of steps \d+ to 1500 are kept; .* were dropped")
        self.assertNamedStepsAreWhole()

    def test_a_replay_says_why_it_ends(self):
        # Each rank keeps its own: else the other one may have all that is left.
        self.checked(self.record("stepper", ["--steps=40", "--count=100000"], n=RANKS,
                                 options=["--keep-steps", "3", "--redundancy", "0"]))
        run = self.replay(0)
        self.assertEqual(run.code, harness.EXIT_FAILURE, f"\n{run}")
        said = run.stdout + run.stderr
        self.assertRegex(said, r"the payloads of step(s \d+ to)? \d+ are kept")
        self.assertRegex(said, r"the result of AllReduce #1 of comm 0 is not kept: .*deja info.*larger window")

    def test_everything_in_the_window_replays(self):
        args = ["--steps=19", "--count=300000"]  # more than short steps may have together
        self.checked(self.record("stepper", args, n=RANKS, options=["--keep-steps", "20"]))
        self.assertGreater(len(self.payload_files()), 1)
        for rank in range(RANKS):
            self.checked(self.replay(rank))

    def test_bytes_bound_a_program_without_steps(self):
        limit = 2 << 20
        self.checked(self.record("stepper", ["--steps=300", "--mute", "--pause-us=1000"], n=RANKS,
                                 options=["--keep-bytes", str(limit), "--redundancy", "0"]))
        for rank in range(RANKS):
            size = sum(path.stat().st_size for path in self.payload_files(rank))
            self.assertLess(size, limit + (1 << 20))
            self.assertGreater(size, limit // 2)
        self.assertVerifies()

    def test_the_budget_is_reported(self):
        run = self.record("stepper", ["--steps=300", "--mute"], n=RANKS, options=["--disk-budget", "4MB"])
        self.checked(run)
        self.assertRegex(run.stderr, r"deja: rank \d: the disk budget is reached; from here on the oldest")
        self.assertRegex(run.stderr, r"older ones \(.*\) were dropped")
        self.assertVerifies()
        self.assertRegex(self.deja("show", self.trace_path(), "--kind", "window").stdout, r"dropped \(disk budget\)")

    def test_children_share_the_budget(self):
        budget = 4 << 20
        files = []
        for number in range(12):
            files.append(self.dir / f"data-{number}.bin")
            files[-1].write_bytes(os.urandom(1 << 20))
        command = [sys.executable, "-c", READERS, *files]
        run = self.checked(self.record_single(*command, options=["--inputs", "full", "--disk-budget", str(budget)]))
        self.assertSameLines(self.command(command).stdout, run.stdout)
        size = sum(path.stat().st_size for path in self.trace_path().rglob("*") if path.is_file())
        self.assertLess(size, budget)
        self.assertGreater(size, budget // 8)
        self.assertSaidItsSize(run)
        self.assertVerifies()

    def test_a_rank_that_comes_again_has_half_of_the_budget(self):
        budget, times = 8 << 20, 2
        job = [sys.executable, "-c", RESTARTS, self.trace_path(), budget * 3 // 4, times, harness.free_port(),
               harness.app("stepper"), "--count=16384"]
        env = {"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl"}
        run = self.deja("record", "--out", self.trace_path(), "--disk-budget", str(budget), "--buffer", "1M", "--", *job, env=env)
        self.checked(run)
        self.assertSaidItsSize(run)
        size = sum(path.stat().st_size for path in self.trace_path().rglob("*") if path.is_file())
        self.assertLess(size, budget)
        self.assertVerifies()
        for rank in range(RANKS):
            self.checked(self.replay(rank))
        ranks = self.info_json()["ranks"]
        self.assertEqual([one["attempt"] for one in ranks], [0, 1, 2] * RANKS)
        for one in ranks:
            self.assertEqual(one["degraded"], [])
            if one["attempt"] == times:
                self.assertNotIn("window", one)
        killed_last = [one for one in ranks if one["attempt"] == times - 1]
        kept = sum(one["file_bytes"] for one in killed_last)
        self.assertGreater(kept, budget // 8)
        self.assertLess(sum(one["file_bytes"] for one in ranks if one["attempt"] < times), budget // 2 + (64 << 10))

    def loaders(self, steps, blocks, pause_us):
        """Data in blocks of a size of its own, so old that it is known not to change, for loaders.cc."""
        files = []
        for name in ("worker.bin", "helpers.bin"):
            files.append(self.dir / name)
            files[-1].write_bytes(os.urandom(blocks * 16384))
            os.utime(files[-1], (1_500_000_000, 1_500_000_000))
        return [harness.app("loaders"), *files, str(steps), str(blocks), str(pause_us)]

    def child_payload_bytes(self):
        total = 0
        for path in self.trace_path().glob("child-*/payloads*.deja"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # dropped meanwhile
                pass
        return total

    def test_children_keep_the_window_of_their_rank(self):
        steps, blocks = 600, 100
        command = self.loaders(steps, blocks, 4000)
        plain = self.checked(self.command(command))
        process = self.start([harness.DEJA, "record", "--single", "--inputs", "full", "--keep-steps", "20",
                              "--checkpoint-every", "50", "--out", self.trace_path(), "--", *command])
        most = 0
        while process.poll() is None:
            most = max(most, self.child_payload_bytes())
            time.sleep(0.2)
        run = self.checked(self.finish(process))
        self.assertSameLines(plain.stdout, run.stdout)
        self.assertNotRegex(run.stderr, "cannot|budget|missing")
        # Worker and helpers read 19.7 MB of noise, of which the window, back to a checkpoint, is 1.6 MB.
        self.assertLess(self.child_payload_bytes(), 5 << 20)
        self.assertSaidItsSize(run)
        self.assertLess(most, 9 << 20)
        # Nor is more set aside for each of many folders.
        blocks_taken = sum(path.stat().st_blocks for path in self.trace_path().rglob("*"))
        self.assertLess(blocks_taken * 512, 40 << 20)
        self.assertVerifies()
        self.assertRegex(self.deja("verify", self.trace_path()).stdout, r"dropped")
        for step in (steps - 5, steps - 40):
            late = self.checked(self.replay(0, options=["--from-step", str(step)]))
            self.assertIn(plain.stdout.strip(), late.stdout)
        whole = self.replay(0)
        self.assertRegex(whole.stdout + whole.stderr, r"the recording's window .* has moved past it")

    def test_a_mark_keeps_the_window(self):
        process = self.start(self.record_argv("stepper", ["--steps=400", "--pause-us=20000"], n=RANKS,
                                              options=["--keep-steps", "3"]))
        self.wait_for(lambda: any("payloads-" in path.name for path in self.payload_files()))  # the window moves
        self.checked(self.deja("mark", self.trace_path(), "--reason", "the loss jumped"))
        self.checked(self.finish(process))
        marked = [event for event in self.show_json("--rank", "0", "--kind", "window") if event["what"] == "marked"]
        self.assertEqual([event["reason"] for event in marked], ["the loss jumped"])
        windows = [rank["window"] for rank in self.info_json()["ranks"]]
        self.assertGreaterEqual(windows[0]["marked_segments"], 1)  # short steps share them
        # Each result is kept by one of the ranks: the last step of one may have nothing of its own.
        named = {step for window in windows for first, last in window["kept_steps"] for step in range(first, last + 1)}
        last = max(step for step in named if step < 390)  # far from what the end keeps: the mark kept it
        self.assertLessEqual({last - 2, last - 1, last}, named)
        self.assertKept([last - 1, last - 2, 398, 399, 400])
        self.assertVerifies()
        self.assertEqual(list(self.trace_path().glob("mark-*")), [])
        run = self.deja("mark", self.trace_path())
        self.assertEqual(run.code, harness.EXIT_FAILURE)
        self.assertIn("no recording writes it", run.stderr)

    def test_a_hang_keeps_the_window(self):
        args = ["--steps=60", "--pause-us=30000", "--stop=20", "--stop-ms=6000"]
        run = self.record("stepper", args, n=RANKS, options=["--keep-steps", "3", "--hang-after", "2"])
        self.checked(run)
        self.assertRegex(run.stderr, r"no collective for 2 s: a hang\? The window is kept")
        self.assertSameLines(self.launch("stepper", args, n=RANKS).stdout, run.stdout)
        self.assertKept([18, 19, 58, 59, 60], gone=range(1, 10))
        self.assertVerifies()

    def test_a_failure_keeps_the_window_of_the_others(self):
        args = ["--steps=200", "--pause-us=30000", "--fail=20"]
        run = self.record("stepper", args, n=RANKS, options=["--keep-steps", "3", "--grace", "60"])
        self.assertEqual(run.code, 7, f"\n{run}")
        self.assertKept([18, 19])
        self.assertVerifies()

    def assert_the_end_keeps_the_window(self, how, code, reason):
        """One of two ranks, which no process of Deja's has started, ends in step 20; the other one goes on."""
        script = ("export WORLD_SIZE=2 NCCL_COMM_ID=127.0.0.1:$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$1; shift; "
                  "RANK=1 LOCAL_RANK=1 \"$@\" & RANK=0 LOCAL_RANK=0 \"$@\"; first=$?; wait $!; echo $first $?")
        job = ["sh", "-c", script, "sh", harness.free_port(), harness.app("stepper"), "--steps=150", "--pause-us=20000", how + "=20"]
        env = {"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl"}
        run = self.deja("record", "--out", self.trace_path(), "--keep-steps", "3", "--", *job, env=env)
        self.checked(run)
        self.assertRegex(run.stdout, rf"(?m)^0 {code}$")
        marked = [event for event in self.show_json("--rank", "0", "--kind", "window") if event["what"] == "marked"]
        self.assertEqual([event["reason"] for event in marked], [reason])
        self.assertKept([18, 19])
        self.assertVerifies()
        self.assertEqual(list(self.trace_path().glob("mark-*")), [])
        job[4] = harness.free_port()
        self.assertSameLines(self.command(job, env=env).stdout, run.stdout)

    def test_sigterm_to_a_rank_of_another_launcher_keeps_the_window(self):
        self.assert_the_end_keeps_the_window("--term", 143, "a rank received a signal to end: SIGTERM")

    def test_a_signal_that_ends_a_rank_of_another_launcher_keeps_the_window(self):
        self.assert_the_end_keeps_the_window("--abort", 134, "a rank was ended by a signal")

    def test_an_exit_code_of_a_rank_of_another_launcher_keeps_the_window(self):
        self.assert_the_end_keeps_the_window("--fail", 7, "a rank ended with an exit code other than 0")

    def test_background_threads(self):
        process = self.start(self.record_argv("stepper", ["--steps=200", "--pause-us=20000"], n=1, options=[
            "--background-nice", "7", "--background-idle-io", "--background-cpus", "0"]))

        def thread():
            for path in Path("/proc").glob("[0-9]*/task/[0-9]*"):
                try:
                    owner = (path / "../../cmdline").read_bytes()
                    if (path / "comm").read_text() == "deja-writer\n" and str(self.dir).encode() in \
                            (path / "../../environ").read_bytes() and owner:
                        return path
                except OSError:
                    pass
            return None
        self.wait_for(thread)
        path = thread()
        fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
        self.assertEqual(int(fields[16]), min(19, os.nice(0) + 7))
        self.assertIn("Cpus_allowed_list:\t0\n", (path / "status").read_text())
        self.checked(self.finish(process))
        run = self.deja("record", "--background-cpus", "x", "--", "true")
        self.assertEqual(run.code, harness.EXIT_USAGE, f"\n{run}")

    def test_pressure_is_counted(self):
        # More at once than the buffer holds.
        self.checked(self.record("stepper", ["--steps=6", "--count=2000000"], n=RANKS,
                                 options=["--buffer", "1MB", "--redundancy", "0"]))
        for rank in self.info_json()["ranks"]:
            pressure = rank["pressure"]
            self.assertGreater(pressure["waits"], 0)
            self.assertEqual(pressure["payloads"], 0)
            self.assertLessEqual(pressure["peak_bytes"], pressure["buffer_bytes"])
        self.assertRegex(self.deja("info", self.trace_path()).stdout, r"the program waited for room \d+ times")
        for rank in range(RANKS):
            self.checked(self.replay(rank))


if __name__ == "__main__":
    harness.main()
