"""Operations of torch.distributed that fail: what is raised for whom is what is raised without Deja, and again in a
replay."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchFailures(TorchTest):
    def assertFailsAlike(self, what, **env):
        plain = self.checked(self.launch(PYTHON, [APPS / "failures.py", what], n=2, env=env, timeout=300))
        run = self.record_job("failures", 2, what, **env)
        for rank in range(2):
            self.assertEqual(of_rank(rank, run.stdout), of_rank(rank, plain.stdout))
            replayed = self.checked(self.replay(rank, env={"MASTER_PORT": "1"}))
            self.assertIn("the same as recorded", replayed.stdout)
            self.assertEqual(of_rank(rank, replayed.stdout), of_rank(rank, run.stdout))
        self.assertIn("Error: ", of_rank(0, run.stdout)[-2])
        return run

    def test_after_a_peer_is_lost(self):
        """Blocking, a work, a future, what follows a future, C++ that waits at once or at a backward pass's end."""
        lines = of_rank(0, self.assertFailsAlike("lost").stdout)
        for kind in ("sync", "async", "future", "then", "construct", "backward"):
            self.assertIn("Error: ", lines[lines.index(f"rank 0 {kind}") + 1], lines)

    @unittest.skipUnless(VERSION and VERSION >= (2, 1), "functional collectives are newer than this torch")
    def test_functional(self):
        self.assertFailsAlike("functional")

    def test_timeout(self):
        self.assertFailsAlike("timeout")

    def test_shapes_that_do_not_match(self):
        self.assertFailsAlike("shapes", TORCH_DISTRIBUTED_DEBUG="DETAIL")

    def test_calls_that_do_not_match(self):
        self.assertFailsAlike("calls", TORCH_DISTRIBUTED_DEBUG="DETAIL")

    def assertEndsAgain(self, what, code, *ends):
        """ends: what `deja info` says of each rank."""
        run = self.record("env", [f"PYTHONPATH={harness.ROOT / 'python'}", PYTHON, APPS / "ends.py", what], n=2, timeout=300)
        self.checked(run, code)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        for rank, end in enumerate(ends):
            self.assertRegex(info, rf"(?s)rank {rank}: {end}")
            replayed = self.checked(self.replay(rank, env={"MASTER_PORT": "1"}))
            self.assertIn("the same as recorded", replayed.stdout)
            self.assertEqual(of_rank(rank, replayed.stdout), of_rank(rank, run.stdout)[:3])
        self.assertIn("comm 0: rank 0 reached c10d_", info)
        self.assertIn("rank 1 never entered it: its last was c10d_allreduce #3 at ends.py:", info)
        return replayed

    def test_a_store_that_cannot_be_made(self):
        """Its constructor raises in a replay what it raised, although no server is asked."""
        script = self.dir / "stores.py"
        script.write_text(
            "import datetime, os\nimport torch\nimport torch.distributed as dist\n"
            "try:\n"
            "    dist.TCPStore('127.0.0.1', 1, 2, False, timeout=datetime.timedelta(seconds=1))\n"
            "    told = 'made'\n"
            "except Exception as error:\n"
            "    told = f'{type(error).__name__} {str(error).splitlines()[0]}'\n"
            "dist.init_process_group('gloo')\n"
            "dist.all_reduce(torch.randn(2))\n"
            "os.write(1, f'rank {dist.get_rank()} {told}\\n'.encode())\n")
        run = self.checked(self.record(PYTHON, [script], n=2))
        self.assertRegex(run.stdout, "rank 0 .*Error .*127.0.0.1")
        self.assertRanksReplay(run, 2)

    def test_an_exception_of_several_lines(self):
        """It is shown in one, and the debugger to use is Python's."""
        script = self.dir / "bad.py"
        script.write_text("import torch, torch.distributed as dist\ndist.init_process_group('gloo')\ndist.all_reduce(torch.ones(1))\n"
                          "if dist.get_rank() == 1: raise ValueError('first line\\n  middle\\nlast line')\n")
        run = self.record(PYTHON, [script], n=2)
        text = r"exit 1, ValueError: first line … last line at bad\.py:4 in <module>"
        self.assertRegex(run.stderr, rf"deja: rank 1: {text}")
        self.assertRegex(run.stderr, r"\ndeja: +deja replay \S+ --rank 1 --pdb +it failed first\n")
        again = self.replay(1, options=("--edited",))
        self.assertRegex(again.stdout, rf"the recorded failure \({text}.*\) comes again: {text}; ")

    def test_an_uncaught_exception_of_c_plus_plus(self):
        replayed = self.assertEndsAgain("terminate", 134, r"exit 1, RuntimeError: .* at distributed_c10d\.py:\d+ in barrier, in step 2, after c10d_barrier #4",
                                        r"SIGABRT at ends\.py:19 in end, in step 2, after c10d_allreduce #3")
        self.assertIn("terminate called", replayed.stderr)

    def test_a_rank_is_killed(self):
        self.assertEndsAgain("kill", 137, "exit 1, RuntimeError: .*, in step 2, after c10d_barrier #4",
                             "killed by SIGKILL, in step 2, after c10d_allreduce #3")

    def test_a_rank_does_not_come_to_a_barrier(self):
        self.assertEndsAgain("absent", 1, "exit 1, RuntimeError: .*failed to pass monitoredBarrier in 2000 ms.*, in step 2, after "
                             "c10d_monitored_barrier #4", "exit 0")


if __name__ == "__main__":
    harness.main()
