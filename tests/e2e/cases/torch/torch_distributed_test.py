"""Jobs of torch.distributed on CPUs, unseeded and unchanged: recorded, and each rank replayed alone."""
import array
import random
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchDistributed(TorchTest):
    def test_data_parallel(self):
        first = self.assertJobReplays("train", 4)
        again = self.checked(self.launch(PYTHON, [APPS / "train.py"], n=4))
        self.assertNotEqual(sorted(first.stdout.splitlines()), sorted(again.stdout.splitlines()),
                            "the program does the same each time by itself")
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", "2")).stdout
        self.assertIn("enter c10d_allreduce", shown)
        self.assertIn("op=sum", shown)
        stacks = self.checked(self.deja("show", self.trace_path(), "--rank", "2", "--kind", "enter", "--stacks")).stdout
        self.assertRegex(stacks, r"train\.py:\d+ in main")
        states = self.show_json("--rank", "2", "--kind", "snapshot")
        self.assertIn("rng/torch", [e["name"] for e in states])
        comms = self.info_json()["ranks"][2]["comms"]
        self.assertEqual([(c["rank"], c["nranks"]) for c in comms], [(2, 4)])

    def test_gradient_accumulation_with_workers_of_the_loader(self):
        self.assertJobReplays("train", 2, MODE="accumulate+workers")
        # Twelve batches, six steps of the optimizer.
        steps = [e["step"] for e in self.show_json("--rank", "0", "--kind", "step")]
        self.assertEqual(steps, [1, 2, 3, 4, 5, 6])

    def test_named_steps(self):
        self.checked(self.record_single(PYTHON, APPS / "standalone" / "named_steps.py"))
        self.assertEqual([e["step"] for e in self.show_json("--rank", "0", "--kind", "step")], [10, 11, 12])
        self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), "0\n1\n2\n")
        plain = self.checked(self.command([PYTHON, APPS / "standalone" / "named_steps.py"],
                                          env={"PYTHONPATH": harness.ROOT / "python"}))
        self.assertEqual(plain.stdout, "0\n1\n2\n")

    @unittest.skipIf(shutil.which("gdb") is None, "gdb is not installed")
    def test_back_in_gdb_with_threads(self):
        run = self.record_job("waiting_threads", 2)
        count = "python print('threads', len(gdb.selected_inferior().threads()))"
        commands = ("deja goto step 9", "deja goto step 4", count, "deja goto step 8", "deja goto step 3", count, "deja goto end")
        words = [word for command in commands for word in ("--gdb-command", command)]
        back = self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--gdb", *words, timeout=600, env={"MASTER_PORT": "1"}))
        self.assertEqual(back.stdout.count("deja: went back to "), 2, f"\n{back}")
        self.assertNotIn("deja: started again", back.stdout)
        self.assertNotIn("Traceback", back.stderr)
        for threads in re.findall(r"^threads (\d+)$", back.stdout, re.MULTILINE):
            self.assertGreaterEqual(int(threads), 3, f"\n{back}")
        told = of_rank(1, run.stdout)
        self.assertEqual(sorted(set(of_rank(1, back.stdout))), sorted(told), f"\n{back}")
        self.assertEqual(of_rank(1, back.stdout)[-5:], told[-5:], f"\n{back}")
        self.assertIn("deja: the program ends with exit", back.stdout)
        self.assertNotRegex(back.stdout, r"compared, [1-9]\d* different")

    def test_a_sharded_optimizer_with_workers_that_stay(self):
        """They are there when the interpreter ends, and end well when the signal comes from their parent."""
        self.assertJobReplays("train", 2, MODE="zero+persistent")

    def test_a_loop_that_is_left_early(self):
        """Which worker's batch comes first into their queue decides how many messages were taken by then."""
        run = self.checked(self.record(PYTHON, [APPS / "standalone" / "left_early.py"], n=2, options=["--inputs", "full"], timeout=300))
        self.assertRanksReplay(run, 2)

    def test_workers_of_the_loader_with_an_order_of_locks(self):
        """A recording takes no locks that a replay does not take."""
        run = self.checked(self.record(PYTHON, [APPS / "train.py"], n=2, env={"MODE": "workers"}, timeout=300,
                                       options=["--threads", "order"]))
        self.assertRanksReplay(run, 2)

    def test_workers_whose_data_set_is_gone(self):
        rows = self.dir / "rows"
        rows.mkdir()
        for number in range(48):
            (rows / str(number)).write_bytes(array.array("f", (random.gauss(number, 1) for _ in range(32))).tobytes())
        run = self.record(PYTHON, [APPS / "train.py"], n=2, env={"MODE": "files", "ROWS": rows}, options=["--inputs", "full"],
                          timeout=300)
        self.checked(run)
        shutil.rmtree(rows)
        self.assertRanksReplay(run, 2)

    @unittest.skipUnless(VERSION and VERSION >= (2, 0), "groups with several backends are newer than this torch")
    def test_a_backend_that_cannot_be_made(self):
        """Here it raises, since there is no GPU."""
        command = [PYTHON, "-c", "import torch.distributed as dist; dist.init_process_group('cpu:gloo,cuda:nccl')"]
        plain = self.command(["env", "CUDA_VISIBLE_DEVICES=", *self.launch_argv(command[0], command[1:], n=1)])
        run = self.record(command[0], command[1:], n=1, env={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(run.code, plain.code, f"\n{plain}\n{run}")
        error = [line for line in plain.stderr.splitlines() if "Error: " in line][-1]
        self.assertIn(error, run.stderr)

    @unittest.skipUnless(VERSION and VERSION >= (2, 7), "a fake backend that is one of C++ is newer than this torch")
    def test_several_backends_in_a_group(self):
        """Each device keeps its own: in the default group, a new one, one of a mesh, and for DDP."""
        plain = self.checked(self.launch(PYTHON, [APPS / "mixed.py"], n=2, env={"JOB_SEED": "5"}))
        run = self.assertJobReplays("mixed", 2, JOB_SEED="5")
        for rank in range(2):
            self.assertEqual(of_rank(rank, run.stdout), of_rank(rank, plain.stdout))

    @unittest.skipUnless(VERSION and VERSION >= (2, 4), "torch.compile is for older Pythons in this torch")
    def test_compiled(self):
        """Dynamo traces nothing of Deja's."""
        self.assertJobReplays("train", 2, MODE="compiled")

    @unittest.skipUnless(VERSION and VERSION >= (2, 13), "torch has other names for these operations since 2.13")
    def test_operations_of_new_names(self):
        self.assertJobReplays("single_tensors", 2)

    @unittest.skipUnless(VERSION and VERSION >= (2, 4), "this torch does not name gloo's threads")
    def test_threads_that_come_late(self):
        """What they free when the interpreter has begun to end does not end the process."""
        self.assertJobReplays("late_threads", 2)

    def test_remote_calls(self):
        """They are not recorded: the recording says so, and a replay, which ends there."""
        script = self.dir / "remote.py"
        script.write_text("import os\nimport torch\nfrom torch.distributed import rpc\n"
                          "rank = int(os.environ['RANK'])\n"
                          "rpc.init_rpc(f'rank{rank}', rank=rank, world_size=2)\n"
                          "if rank == 0:\n"
                          "    print(rpc.rpc_sync('rank1', torch.add, args=(torch.ones(2), 1)))\n"
                          "rpc.shutdown()\n")
        if self.command([PYTHON, "-c", "from torch.distributed import rpc; rpc.init_rpc"]).code != 0:
            self.skipTest(f"{PYTHON} has no torch.distributed.rpc")
        run = self.checked(self.record(PYTHON, [script], n=2))
        self.assertIn("tensor([2., 2.])", run.stdout)
        what = "torch.distributed.rpc (TensorPipe): its messages are not recorded"
        self.assertIn(f"deja: not recorded: ranks 0, 1: {what}", run.stderr)
        replayed = self.replay(0, timeout=60)
        self.assertNotEqual(replayed.code, 0)
        self.assertIn(what, replayed.stdout)

    @unittest.skipUnless(VERSION and VERSION >= (2, 4), "FSDP on CPUs is newer than this torch")
    def test_fully_sharded(self):
        self.assertJobReplays("train", 2, MODE="fsdp1")

    @unittest.skipUnless(VERSION and VERSION >= (2, 6), "fully_shard is newer than this torch")
    def test_fully_shard(self):
        self.assertJobReplays("train", 2, MODE="fsdp2")

    def test_pipeline(self):
        self.assertJobReplays("pipeline", 2)

    def test_every_operation(self):
        self.assertJobReplays("operations", 3)
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", "0", "--kind", "enter")).stdout
        for reduction in ("sum", "max", "min", "prod"):
            self.assertRegex(shown, rf"c10d_allreduce .*op={reduction} ")

    def test_reducers_of_data_parallel_models(self):
        """Their operations end, and are recorded, whatever else a backward pass does."""
        self.assertJobReplays("reducers", 2)
        calls = self.show_json("--rank", "0", "--kind", "enter")
        ended = {(e["comm"], e["seq_on_comm"]) for e in self.show_json("--rank", "0", "--kind", "results")}
        issued = {(e["comm"], e["seq_on_comm"]) for e in calls if e["call"] == "c10d_allreduce"}
        self.assertGreater(len(issued), 20)
        self.assertLess(len(issued - ended), 5)  # of the pass that fails

    def test_objects_of_unequal_sizes(self):
        """What pads them is the same in both runs."""
        self.assertJobReplays("unequal_objects", 2)

    def test_one_rank_raises(self):
        run = self.record_job("train", 2, code=1, MODE="raise")
        self.assertRanksReplay(run, 2)
        notes = self.checked(self.deja("show", self.trace_path(), "--rank", "1", "--kind", "note")).stdout
        self.assertRegex(notes, r"exception ValueError: the labels of step \d+ make no sense; train.py:\d+ in main")
        told = self.deja("replay", self.trace_path(), "--rank", "1")
        self.assertRegex(told.stderr, r"ValueError: the labels of step \d+ make no sense")

    def test_same_as_without_deja(self):
        env = {"JOB_SEED": "5"}
        plain = self.launch(PYTHON, [APPS / "operations.py"], n=2, env=env)
        recorded = self.record(PYTHON, [APPS / "operations.py"], n=2, env=env)
        self.assertEqual((plain.code, recorded.code), (0, 0), f"\n{plain}\n{recorded}")
        for rank in range(2):
            self.assertEqual(of_rank(rank, plain.stdout), of_rank(rank, recorded.stdout))

    def test_another_input_is_named(self):
        """A program that has changed diverges where it first computes something else."""
        self.record_job("train", 2, JOB_SEED="7")
        changed = self.dir / "changed"
        changed.mkdir()
        for script in APPS.glob("*.py"):
            text = script.read_text()
            (changed / script.name).write_text(text.replace("Dropout(0.2)", "Dropout(0.3)"))
        replayed = self.deja("replay", self.trace_path(), "--rank", "0", "--", PYTHON, changed / "train.py")
        self.assertEqual(replayed.code, harness.EXIT_DIVERGED, f"\n{replayed}")
        self.assertIn("allreduce #", replayed.stdout)


if __name__ == "__main__":
    harness.main()
