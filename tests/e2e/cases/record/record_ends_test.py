"""How ranks end, and that what they did before is in the trace, whatever ended them."""
import os
import random
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Ends(harness.DejaTest):
    def ended(self, way, code):
        plain = self.launch("reduces", [f"--end={way}"], n=3, options=["--grace", "1"])
        run = self.record("reduces", [f"--end={way}"], n=3, options=["--grace", "1"])
        self.assertSameBehaviour(plain, run)
        self.assertEqual(run.code, code, str(run))
        self.assertVerifies()
        events = self.show_json("--rank", "1")
        self.assertEqual(sum(e.get("call") == "AllReduce" for e in events), 10)
        return self.deja("info", self.trace_path()).stdout, events

    def crashed(self, events, signal_name):
        self.assertEqual((events[-1]["kind"], events[-1]["signal"]), ("crash", signal_name))
        self.assertTrue(events[-1]["frames"])

    def test_exit_code(self):
        info, _ = self.ended("code", 7)
        self.assertRegex(info, r"rank 1: exit 7")
        self.assertRegex(info, r"rank 0: exit 0")

    def test_underscore_exit(self):
        info, events = self.ended("_exit", 8)
        self.assertRegex(info, r"rank 1: exit 8")
        self.assertEqual((events[-1]["kind"], events[-1]["code"]), ("exit", 8))

    def test_quick_exit(self):
        info, _ = self.ended("quick", 6)
        self.assertRegex(info, r"rank 1: exit 6")

    def test_segmentation_fault(self):
        info, events = self.ended("segv", 139)
        self.assertRegex(info, r"rank 1: SIGSEGV at reduces\.cc:\d+, after AllReduce #10 of comm 0")
        self.crashed(events, "SIGSEGV")
        self.assertEqual(events[-1]["address"], 0x40)

    def test_crash_on_another_thread(self):
        info, events = self.ended("thread-segv", 139)
        self.assertRegex(info, r"rank 1: SIGSEGV at reduces\.cc:\d+")
        self.crashed(events, "SIGSEGV")
        self.assertNotEqual(events[-1]["thread"], "0")

    def test_stack_overflow(self):
        info, events = self.ended("stack", 139)
        self.assertRegex(info, r"rank 1: SIGSEGV")
        self.crashed(events, "SIGSEGV")

    def test_floating_point_exception(self):
        info, events = self.ended("fpe", 136)
        self.assertRegex(info, r"rank 1: SIGFPE")
        self.crashed(events, "SIGFPE")

    def test_abort(self):
        info, events = self.ended("abort", 134)
        self.assertRegex(info, r"rank 1: SIGABRT")
        self.crashed(events, "SIGABRT")

    def test_uncaught_exception(self):
        info, events = self.ended("throw", 134)
        self.assertRegex(info, r"rank 1: SIGABRT")
        self.crashed(events, "SIGABRT")

    def test_kill(self):
        info, events = self.ended("kill", 137)
        self.assertRegex(info, r"rank 1: (killed by )?SIGKILL")
        self.assertEqual(events[-1]["kind"], "input")  # getpid, for the kill


class OutOfMemory(harness.DejaTest):
    """The kernel ends the rank that takes more than its cgroup may have."""

    def memory_cgroup(self):
        """A new cgroup with 600 MB; its file for processes."""
        for mount, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = Path(mount) / f"deja-test-{os.getpid()}"
            try:
                group.mkdir()
                self.addCleanup(group.rmdir)
                (group / limit).write_text(str(600 << 20))
            except OSError:
                continue
            return group / "cgroup.procs"
        self.skipTest("no memory cgroup can be made here")

    def test_the_oom_killer_is_named(self):
        procs = self.memory_cgroup()

        def within(argv):
            return self.command(["sh", "-c", f"echo $$ > {procs} && exec \"$@\"", "sh", *argv])
        args = (["--end=memory"], 2, ["--grace", "1"])
        plain = within(self.launch_argv("reduces", *args))
        run = within(self.record_argv("reduces", *args[:2], options=args[2]))
        self.assertSameBehaviour(plain, run)
        self.assertEqual(run.code, 137, str(run))
        ended = "SIGKILL (the kernel's OOM killer ended 1 process of its memory cgroup), after AllReduce #10"
        self.assertIn(f"rank 1: killed by {ended}", run.stderr)
        self.assertIn(f"rank 1: killed by {ended}", self.deja("info", self.trace_path()).stdout)
        rank = self.info_json()["ranks"][1]
        self.assertEqual((rank["killed_by"], rank["oom_kills"]), ("SIGKILL", 1))
        self.assertVerifies()
        again = self.replay(1)
        self.assertEqual(again.code, 0, str(again))


class Sigkill(harness.DejaTest):
    """Everything up to the last call that returned is in the trace of a rank that is killed."""

    def test_at_random_moments(self):
        seed = int(os.environ.get("DEJA_TEST_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        for attempt in range(8):
            with self.subTest(seed=seed, attempt=attempt):
                self.killed_once(rng, attempt)

    def killed_once(self, rng, attempt):
        trace = f"kill{attempt}.deja"
        process = self.start(
            self.record_argv("reduces", ["--calls=1000000", "--say", f"--count={rng.choice([1, 1000, 60000])}"],
                             n=1, trace=trace))
        wanted = rng.randrange(1, 400)
        last = 0
        while last < wanted:
            last = int(process.stdout.readline())
        time.sleep(rng.random() * 0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGKILL)
        run = self.finish(process)
        self.assertEqual(run.code, 137, str(run))
        said = [int(line) for line in run.stdout.split()]
        last = said[-1] if said else last
        self.assertVerifies(trace)
        events = self.show_json("--rank", "0", trace=trace)
        results = [e for e in events if e["kind"] == "results"]
        self.assertGreaterEqual(len(results), last)
        self.assertLessEqual(len(results), last + 1)
        info = self.deja("info", self.trace_path(trace)).stdout
        self.assertIn("SIGKILL", info)
        again = self.replay(0, trace=trace)
        self.assertEqual(again.code, 0, str(again))
        replayed = [int(line) for line in again.stdout.split("\n") if line.isdigit()]
        self.assertGreaterEqual(len(replayed), last)

    def test_deja_itself_is_killed(self):
        process = self.start(self.record_argv("reduces", ["--calls=5", "--say", "--end=hang", "--rank=0"], n=1))
        for _ in range(5):
            process.stdout.readline()
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(sum(e["kind"] == "results" for e in self.show_json()), 5)
        deadline = time.monotonic() + 20  # the rank gets its SIGTERM when its parent is gone
        while self.deja("recover", self.trace_path()).code != 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(self.info_json()["ranks"][0]["finished"])
        self.assertVerifies()


if __name__ == "__main__":
    harness.main()
