"""Programs of Python without torch: states of generators, stacks of Python, and how a program ends."""
import json
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APPS = harness.ROOT / "tests" / "e2e" / "apps" / "python"


class Python(harness.DejaTest):
    def record_app(self, name, level="full"):
        return self.checked(self.record_single(sys.executable, APPS / name, options=("--level", level)))

    def test_generators_are_the_same_in_a_replay(self):
        run = self.record_app("draws.py")
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)
        self.assertIn("5 digests compared, all equal", again.stdout)

    def test_seeds_of_hashes(self):
        """Each process draws its own, as without Deja, and a replay is given it; a seed of the user's stays."""
        script = ("import subprocess, sys\nprint(list(set('abcdefgh')), hash('text'), flush=True)\n"
                  "subprocess.run([sys.executable, '-c', 'print(hash(\"text\"))'])\n")
        seen = set()
        for number, env in enumerate(({}, {}, {"PYTHONHASHSEED": "7"}, {"PYTHONHASHSEED": "7"})):
            trace = f"{number}.deja"
            run = self.checked(self.record_single(sys.executable, "-c", script, trace=trace, env=env))
            again = self.checked(self.replay(0, trace=trace))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)
            seen.add(run.stdout)
            first, child = run.stdout.splitlines()
            self.assertEqual(first.endswith(f" {child}"), bool(env))
        self.assertEqual(len(seen), 3)

    def test_unseen_messages_of_a_library_are_reported(self):
        """A module of that name stands for XGBoost's."""
        module = self.dir / "xgboost" / "collective.py"
        module.parent.mkdir()
        module.write_text("def init(**kwargs):\n    print('begins', kwargs)\n")
        script = "from xgboost import collective\ncollective.init(rank=0)\n"
        run = self.checked(self.record_single(sys.executable, "-c", script, env={"PYTHONPATH": self.dir}))
        self.assertEqual(run.stdout, "begins {'rank': 0}\n")
        what = "collective of XGBoost (sockets): what its workers send each other is not recorded, and a replay ends at init"
        self.assertIn(f"deja: not recorded: rank 0: {what}", run.stderr)
        replayed = self.replay(0)
        self.assertEqual(replayed.code, harness.EXIT_FAILURE, str(replayed))
        self.assertIn(what, replayed.stdout)
        self.assertNotIn("begins", replayed.stdout)

    def test_horovod_of_several_processes_is_reported(self):
        """A module of that name stands for Horovod's. One process sends nothing."""
        script = self.make_horovod(is_over_mpi=False)
        sizes = ({"HOROVOD_SIZE": "2"}, 2), ({"OMPI_COMM_WORLD_SIZE": "2"}, 2), ({"HOROVOD_SIZE": "1"}, 1), ({}, 1)
        for number, (env, size) in enumerate(sizes):
            with self.subTest(env):
                trace = f"{number}.deja"
                run = self.checked(self.record_single(sys.executable, "-c", script, trace=trace,
                                                      env=env | {"PYTHONPATH": self.dir}))
                self.assertEqual(run.stdout, "begins\ngoes on\n")
                self.assertEqual("deja: not recorded: rank 0: Horovod" in run.stderr, size > 1, run.stderr)
                again = self.replay(0, trace=trace)
                if size > 1:
                    self.assertEqual(again.code, harness.EXIT_FAILURE, str(again))
                    self.assertIn("rank 0: Horovod: ", again.stdout)
                    self.assertNotIn("begins", again.stdout)
                else:
                    self.assertEqual(harness.without_report(self.checked(again).stdout), run.stdout)

    def make_horovod(self, is_over_mpi):
        """Returns a script that begins to use the module."""
        module = self.dir / "horovod" / "common" / "basics.py"
        module.parent.mkdir(parents=True)
        module.write_text("class HorovodBasics:\n    def init(self):\n        print('begins')\n"
                          f"    def mpi_enabled(self):\n        return {is_over_mpi}\n")
        return "from horovod.common.basics import HorovodBasics\nHorovodBasics().init()\nprint('goes on')\n"

    def test_horovod_of_one_process_over_mpi_is_reported(self):
        script = self.make_horovod(is_over_mpi=True)
        run = self.checked(self.record_single(sys.executable, "-c", script, env={"PYTHONPATH": self.dir}))
        self.assertEqual(run.stdout, "begins\ngoes on\n")
        self.assertIn("deja: not recorded: rank 0: Horovod over MPI: ", run.stderr)
        again = self.replay(0)
        self.assertEqual(again.code, harness.EXIT_FAILURE, str(again))
        self.assertIn("rank 0: Horovod over MPI: ", again.stdout)
        self.assertNotIn("goes on", again.stdout)

    def test_shared_memory_of_several_ranks_is_reported(self):
        """With one rank a machine all that shares it is in the replay."""
        module = self.dir / "streaming" / "base" / "dataset.py"
        module.parent.mkdir(parents=True)
        module.write_text("class StreamingDataset:\n    def __init__(self):\n        print('made')\n")
        script = "from streaming.base.dataset import StreamingDataset\nStreamingDataset()\n"
        for ranks in "2", "1":
            with self.subTest(ranks):
                run = self.checked(self.record_single(sys.executable, "-c", script, options=["--force"],
                                                      env={"LOCAL_WORLD_SIZE": ranks, "PYTHONPATH": self.dir}))
                self.assertEqual(run.stdout, "made\n")
                self.assertEqual("not recorded: streaming of MosaicML" in run.stderr, ranks == "2", run.stderr)
                if ranks == "1":
                    again = self.checked(self.replay(0))
                    self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_states_have_their_hash_at_every_level(self):
        for level in ("order", "digest", "full"):
            with self.subTest(level):
                self.record_app("draws.py", level=level)
                shown = self.show_json("--rank", "0", "--kind", "snapshot")
                self.assertEqual([e["name"] for e in shown], ["rng/python"] * 5)
                self.assertEqual(len({e["tensor"]["hash"] for e in shown}), 5)
                shutil.rmtree(self.trace_path())

    def test_one_number_more_is_named(self):
        self.record_app("draws.py")
        changed = self.dir / "draws.py"
        changed.write_text((APPS / "draws.py").read_text().replace(
            "return random.random()", "return [random.random() for _ in range(2 if step == 2 else 1)][-1]"))
        replayed = self.replay(0, options=("--", sys.executable, changed))
        self.assertEqual(replayed.code, harness.EXIT_DIVERGED, str(replayed))
        self.assertIn("RNG state of python diverges at step 3", replayed.stdout)

    def test_a_divergence_is_reported_with_the_lines_of_python(self):
        number = self.dir / "number.txt"
        number.write_text("5")
        self.checked(self.record_single(sys.executable, APPS / "reads.py", number))
        number.write_text("6")
        told = self.replay(0)
        self.assertEqual(told.code, harness.EXIT_DIVERGED, str(told))
        stack = ["  live stack:", "    reads.py:9 in load: with open(path) as file:",
                 "    reads.py:15 in main: print(load(sys.argv[1]) + random.random())", "    reads.py:18 in <module>: main()"]
        lines = told.stdout.splitlines()
        self.assertEqual(lines[-len(stack):], stack, str(told))
        self.assertIn("none different", lines[0])  # the digest of the generator's state, before the step
        whole = self.replay(0, options=["--stacks"]).stdout.splitlines()
        self.assertGreater(len(whole), len(lines) + 3)

    def test_changed_parts_are_named(self):
        packages = self.dir / "site-packages"
        (packages / "scales-1.0.dist-info").mkdir(parents=True)
        module = packages / "scales.py"
        module.write_text("def scale(x):\n    return x\n")
        number = self.dir / "number.txt"
        number.write_text("5")
        script = self.dir / "scaled.py"
        script.write_text("import scales\n" + (APPS / "reads.py").read_text().replace("print(", "print(scales.scale(1) * "))
        self.checked(self.record_single(sys.executable, script, number, env={"PYTHONPATH": packages}))
        self.checked(self.replay(0))
        doctor = self.checked(self.deja("doctor", self.trace_path())).stdout
        self.assertRegex(doctor, r"(?m)^ok       program: all that the recorded program consisted of is here as it was; ")
        info = json.loads(self.checked(self.deja("info", self.trace_path(), "--packages", "--json")).stdout)
        self.assertEqual(info["packages"][str(packages)], {"scales": "1.0"})
        number.write_text("6")
        module.write_text("def scale(x):\n    return 2 * x\n")
        (packages / "scales-1.0.dist-info").rename(packages / "scales-2.0.dist-info")
        told = self.replay(0)
        self.assertEqual(told.code, harness.EXIT_DIVERGED, str(told))
        changes = ["  not as recorded: package: scales 1.0 recorded, 2.0 here",
                   f"  not as recorded: module: {module}: 27 bytes recorded, 31 here"]
        self.assertEqual(told.stdout.splitlines()[1:3], changes, str(told))
        doctor = self.checked(self.deja("doctor", self.trace_path())).stdout
        self.assertRegex(doctor, r"(?m)^warning  changed-package: scales 1\.0 recorded, 2\.0 here$")
        self.assertRegex(doctor, r"(?m)^ok       program: the recorded program differs in 2 of its parts; ")

    def test_states_are_those_that_the_generators_say(self):
        run = self.record_app("generator_states.py")
        shown = self.show_json("--rank", "0", "--kind", "snapshot")
        said = [line.split() for line in run.stdout.splitlines()]
        self.assertGreaterEqual(len(said), 7)
        self.assertEqual([[e["name"], e["tensor"]["hash"][:16]] for e in shown], said)
        self.assertIn("all equal", self.checked(self.replay(0)).stdout)

    def test_functions_that_the_library_makes(self):
        run = self.record_app("builtins_of_deja.py")
        self.assertEqual(run.stdout.splitlines(), [
            "none 7 0 None True 0 [] 255",
            "one 7 0 None True 1 [4096, 8] 7",
            "lists 7 0 None True 3 [4096, 8, 8192, 12, 4096, 8] 7",
            "unknown 7 0 None True 1 [16384, 15] 255",
            "mixed 7 0 None True 2 [4096, 8, 16384, 15] 255",
            "elsewhere None",
            "many None",
            "1 1 [8192, 12] 7",
            "1 0 [] 7",
            "0 1 [8192, 12] 7",
            "0 0 [] 255",
            "1 1 [16384, 15] 255",
            "None None",
            *["ValueError: no storage"] * 3,
            *["TypeError: 'int' object is not iterable"] * 3,
            "ValueError: invalid literal for int() with base 10: 'seven'",
            "TypeError: deja: another number of arguments",
            "(3, 1) ValueError: invalid literal for int() with base 10: 'seven'",
            "TypeError: expected bytes, str found",
            "TypeError",
            "IndexError: tuple index out of range",
            "TypeError: 'int' object is not iterable",
            "looks",
            "(3, 1) None ValueError: invalid literal for int() with base 10: 'seven'",
            "ValueError: invalid literal for int() with base 10: 'seven'",
            "returned 0",
            "TypeError: deja: another number of arguments",
            "ValueError: invalid literal for int() with base 10: 'seven'",
            "returned 0",
            "7 True TypeError",
            "True False",
            "references left: [False, False, False]",
        ])

    def test_files_that_are_written_past_the_c_library(self):
        for name in ("plain", "recorded"):
            (self.dir / name).mkdir()
        plain = self.checked(self.command([sys.executable, APPS / "saves.py", self.dir / "plain"]))
        run = self.checked(self.record_single(sys.executable, APPS / "saves.py", self.dir / "recorded"))
        self.assertEqual(run.stdout, plain.stdout)
        self.assertIn("0 by syscall()", run.stdout)
        shutil.rmtree(self.dir / "recorded")
        (self.dir / "recorded").mkdir()
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)
        self.assertEqual(list((self.dir / "recorded").iterdir()), [])

    def test_snapshots_have_the_stack_of_python(self):
        self.record_app("draws.py")
        shown = self.checked(self.deja("show", self.trace_path(), "--kind", "snapshot", "--stacks")).stdout
        self.assertRegex(shown, r"draws\.py:\d+ in <module>")
        self.assertNotIn("rng.py", shown)

    def test_calls_of_nccl_have_the_stack_of_python(self):
        """They are made without the interpreter's lock, by whatever binds to NCCL."""
        run = self.checked(self.deja("record", "--loopback", "-n", "1", "--out", self.trace_path(), "--", sys.executable,
                                     APPS / "nccl_calls.py"))
        plain = self.checked(self.deja("launch", "-n", "1", "--", sys.executable, APPS / "nccl_calls.py",
                                       env={"PYTHONPATH": harness.ROOT / "python"}))
        self.assertEqual(run.stdout, plain.stdout)
        shown = self.checked(self.deja("show", self.trace_path(), "--kind", "enter", "--stacks")).stdout
        stacks = [re.findall(r"nccl_calls\.py:(\d+) in (\S+)", part) for part in shown.split(" enter ") if part.startswith("AllReduce ")]
        in_step = ("11", "train_step")
        self.assertEqual(stacks, [[in_step, ("16", "warm_up"), ("25", "main"), ("32", "<module>")]]
                         + 3 * [[in_step, ("27", "main"), ("32", "<module>")]], shown)
        self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_shows_the_stack_of_python(self):
        self.record_app("draws.py")
        run = self.deja("replay", self.trace_path(), "--rank", "0", "--gdb", "--gdb-command", "deja until step 2",
                        "--gdb-command", "deja py-stack", "--gdb-command", "continue", timeout=300)
        self.assertRegex(run.stdout, r"live:\n  #0 draws\.py:\d+ in <module>", str(run))

    def assertEnds(self, how, code, ended):
        plain = self.command([sys.executable, APPS / "ends.py", how],
                             env={"PYTHONPATH": harness.ROOT / "python"})
        run = self.record_single(sys.executable, APPS / "ends.py", how)
        self.assertEqual(run.code, code, str(run))
        self.assertEqual(plain.stdout, run.stdout)
        self.assertRegex(self.info_json()["ranks"][0]["ended"], ended)
        again = self.replay(0)
        self.assertEqual(again.code, 0, str(again))
        self.assertIn("same as recorded", again.stdout)
        return again

    def test_an_exception(self):
        again = self.assertEnds("raise", 1, r"exit 1, ValueError: the labels of step 2; they make no sense "
                                            r"at ends\.py:15 in train_step, in step 2")
        self.assertIn("ValueError: the labels of step 2; they make no sense", again.stderr)

    def test_an_abort(self):
        self.assertEnds("abort", 128 + 6, r"SIGABRT at ends\.py:17 in train_step")

    def test_a_fault(self):
        self.assertEnds("fault", 128 + 11, r"SIGSEGV at ends\.py:19 in train_step")

    def test_a_kill_of_its_own(self):
        self.assertEnds("kill", 128 + 9, "SIGKILL")


if __name__ == "__main__":
    harness.main()
