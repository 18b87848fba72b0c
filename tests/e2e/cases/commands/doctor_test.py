"""`deja doctor`: what it finds in a machine, a program and a script, and that it runs none of them."""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness

PYTHON = "/usr/bin/python3"


class Doctor(harness.DejaTest):
    def examine(self, *command, code=0, options=(), **kwargs):
        """Findings by id; of several with one id the list."""
        run = self.checked(self.deja("doctor", "--json", *options, *(["--", *command] if command else []), **kwargs),
                           code)
        found = {}
        for one in run.json()["findings"]:
            found.setdefault(one["id"], []).append(one)
        return found

    def script(self, text, name="train.py"):
        path = self.dir / name
        path.write_text(text)
        return path

    def assertFound(self, found, id, severity, what, fix=""):
        matching = [one for one in found.get(id, ()) if one["severity"] == severity and what in one["what"]]
        self.assertTrue(matching, f"no {severity} {id} with '{what}': {found}")
        self.assertIn(fix, matching[0]["fix"])

    def test_the_machine(self):
        found = self.examine()
        self.assertEqual(set(found), {"addresses", "gdb", "ptrace", "disk", "shared-memory", "cuda"})
        text = self.checked(self.deja("doctor")).stdout
        self.assertRegex(text, r"(?m)^\w+ +disk: .* free in /")
        self.assertRegex(text, r"(?m)^0 problems, \d+ warnings$")

    def test_no_gdb_and_no_place(self):
        found = self.examine(code=1, options=["--out", "/proc/nowhere"], env={"PATH": self.dir})
        self.assertFound(found, "gdb", "warning", "not in PATH", "install gdb")
        self.assertFound(found, "disk", "problem", "cannot be written", "--out")

    def test_a_program_that_is_not_there(self):
        self.assertFound(self.examine("./nothing", code=1), "program", "problem", "./nothing is not there")

    def test_settings_in_a_script_and_the_modules_beside_it(self):
        self.script("import torch\ntorch.backends.cudnn.benchmark = True\n"
                    "torch.backends.cuda.matmul.allow_tf32 = True\n", "settings.py")
        train = self.script("import settings\nimport torch\nopen('ran', 'w')\n"
                            "torch.use_deterministic_algorithms(False)\n"
                            "torch.set_float32_matmul_precision('high')\n")
        found = self.examine("env", "A=1", PYTHON, train)
        self.assertFound(found, "cudnn-benchmark", "warning", "settings.py:2", "benchmark = False")
        self.assertFound(found, "tf32", "note", "settings.py:3", "allow_tf32 = False")
        self.assertFound(found, "tf32", "note", "train.py:5", "highest")
        self.assertFound(found, "deterministic-algorithms", "warning", "train.py:4",
                         "use_deterministic_algorithms(True)")
        self.assertFound(found, "python", "ok", "loads Deja's sitecustomize")
        self.assertFalse((self.dir / "ran").exists(), "the script was run")

    def test_a_script_without_a_flaw(self):
        train = self.script("import torch\ntorch.use_deterministic_algorithms(True)\n")
        found = self.examine(PYTHON, train)
        self.assertEqual([id for id in found if id in ("cudnn-benchmark", "tf32", "deterministic-algorithms",
                                                       "library", "backend")], [])

    def test_backends_and_libraries_that_are_not_recorded(self):
        train = self.script("import horovod.torch as hvd\nimport torch.distributed as dist\n"
                            "dist.init_process_group('xccl')\n"
                            "dist.new_group(backend='mpi')\n")
        found = self.examine(PYTHON, train, "--dist-backend", "hccl", code=1)
        self.assertFound(found, "library", "problem", "train.py:1: Horovod")
        self.assertFound(found, "backend", "problem", "train.py:3 asks for the backend xccl", "gloo")
        self.assertFound(found, "backend", "problem", "the command asks for the backend hccl")
        self.assertNotIn("mpi", str(found["backend"]))

    def test_a_python_that_does_not_load_deja(self):
        train = self.script("pass\n")
        for option, named in (("-I", "-I"), ("-E", "-E"), ("-S", "-S")):
            found = self.examine(PYTHON, option, train, code=1)
            self.assertFound(found, "python", "problem", named, "deja.run")
        (self.dir / "sitecustomize.py").write_text("")
        found = self.examine(PYTHON, train, env={"PYTHONPATH": self.dir})
        self.assertFound(found, "python", "ok", "loads Deja's sitecustomize")

    def test_the_python_of_a_launcher(self):
        launcher = self.script(f"#!{PYTHON}\n", "launch")
        launcher.chmod(0o755)
        found = self.examine(launcher, "--nproc-per-node", "2",
                             self.script("import torch\ntorch.backends.cudnn.benchmark = True\n"))
        self.assertFound(found, "cudnn-benchmark", "warning", "train.py:2")

    def test_rights_that_keep_libraries_out(self):
        copy = shutil.copy("/bin/true", self.dir / "copy")
        os.chmod(copy, 0o4755)
        self.assertFound(self.examine(copy, code=1), "set-user-id", "problem", "LD_PRELOAD")

    def test_nccl_inside_a_program(self):
        source = self.dir / "own.c"
        source.write_text("int ncclAllReduce(void) { return 0; }\nint main(void) { return ncclAllReduce(); }\n")
        subprocess.run(["cc", "-rdynamic", "-o", self.dir / "own", source], check=True)
        self.assertFound(self.examine(self.dir / "own", code=1), "nccl-static", "problem", "own", "libnccl.so.2")
        found = self.examine(harness.app("replay_trainer"))
        self.assertFound(found, "nccl-static", "ok", "replay_trainer")

    def test_nccl_inside_a_library_of_a_program(self):
        (self.dir / "own.c").write_text("int ncclAllReduce(void) { return 0; }\n")
        (self.dir / "main.c").write_text("int ncclAllReduce(void);\nint main(void) { return ncclAllReduce(); }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.dir / "libown.so", self.dir / "own.c"], check=True)
        subprocess.run(["cc", "-o", self.dir / "main", self.dir / "main.c", "-L", self.dir, "-lown",
                        f"-Wl,-rpath,{self.dir}"], check=True)
        self.assertFound(self.examine(self.dir / "main", code=1), "nccl-static", "problem", "libown.so")

    def test_nccl_inside_a_stripped_program_is_reported_by_record_too(self):
        """Only the names of NCCL's variables are left."""
        (self.dir / "own.c").write_text('#include <stdio.h>\nstatic int ncclAllReduce(void) { return printf("%s\\n", "NCCL_DEBUG_SUBSYS"); }\n'
                                        "int main(void) { return ncclAllReduce() < 0; }\n")
        own = self.dir / "own"
        subprocess.run(["cc", "-O0", "-s", "-o", own, self.dir / "own.c"], check=True)
        self.assertFound(self.examine("env", own, code=1), "nccl-static", "problem", "own has NCCL linked into it")
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", "env", own))
        self.assertIn("deja: nothing was recorded", run.stderr)
        self.assertIn(f"deja: {own} has NCCL linked into it: its collectives cannot be seen; link it with libnccl.so.2", run.stderr)
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", "true"))
        self.assertIn("deja: nothing was recorded", run.stderr)
        self.assertNotIn("NCCL linked into it", run.stderr)

    def test_a_static_program(self):
        (self.dir / "main.c").write_text("int main(void) { return 0; }\n")
        built = subprocess.run(["cc", "-static", "-o", self.dir / "main", self.dir / "main.c"], check=False,
                               stderr=subprocess.DEVNULL)
        if built.returncode != 0:
            self.skipTest("no static C library here")
        self.assertFound(self.examine(self.dir / "main", code=1), "static", "problem", "statically linked")


if __name__ == "__main__":
    harness.main()
