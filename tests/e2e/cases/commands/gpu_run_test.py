"""The folder that tests/gpu/pack.sh makes: complete, small enough, and its run.sh tells what holds."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so")


class GpuRun(harness.DejaTest):
    def setUp(self):
        packed = self.dir / "packed"
        self.said = self.checked(self.command([harness.ROOT / "tests" / "gpu" / "pack.sh", packed],
                                              env={"DEJA_BUILD_DIR": harness.BUILD})).stdout
        self.folder = packed.rename(self.dir / "moved")

    def run_checks(self, *args, **kwargs):
        return self.command([self.folder / "run.sh", "--out", self.dir / "out", *args], **kwargs)

    def test_everything_is_in_the_folder(self):
        needed = int(re.search(r"KiB; needs GLIBC_2\.(\d+)\n", self.said)[1])
        here = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
        # Ubuntu 22.04, which many machines with GPUs have, is at 2.35. Headers from 2.38 on name functions that are as
        # new.
        self.assertLessEqual(needed, 35 if here < 38 else here)
        for program in [self.folder / "bin" / "deja", *(self.folder / "lib" / "deja").glob("*.so")]:
            listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            for line in listed.splitlines():
                outside = "=>" in line and str(self.folder) not in line
                self.assertTrue(not outside or any(name in line for name in GLIBC + ("libgcc_s", "libstdc++")), f"{program}: {line}")
        for program in filter(Path.is_file, (self.folder / "tests" / "apps").iterdir()):
            dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
            self.assertNotRegex(dynamic, "R(UN)?PATH", program)

    def test_checks_that_hold(self):
        run = self.checked(self.run_checks("--simulated", "--only", "streams_2|graphs_several|fold|digits_ddp_2|nccl_tests", "--json"))
        self.assertRegex(run.stdout, r"ok +streams_2_ranks .*\n"
                                     r"ok +fold_turns_2_ranks .*swapped out \d+ times\nok +graphs_several .*\n"
                                     r"ok +fold_served_4_ranks .*\nok +fold_computed_2_ranks .*\n"
                                     r"ok +digits_ddp_2_ranks .*\nskipped nccl_tests ")
        self.assertIn("6 ok, 0 failed, 1 skipped of 7", run.stdout)
        results = json.loads(run.stdout.splitlines()[-1])
        self.assertEqual(results, json.loads((self.dir / "out" / "results.json").read_text()))
        self.assertEqual([r["outcome"] for r in results["results"]], ["ok", "ok", "ok", "ok", "ok", "ok", "skipped"])

    def test_checks_that_fail(self):
        # A program that computes something else each time.
        program = self.folder / "tests" / "apps" / "cuda_steps"
        real = program.rename(program.with_name("real_steps"))
        program.write_text(f"#!/bin/bash\n'{real}' \"$@\" | sed \"s/result.*/result $(date +%N)$$/\"\n")
        program.chmod(0o755)
        run = self.checked(self.run_checks("--simulated", "--only", "streams_2|legacy"), harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"FAILED +streams_2_ranks \(.* s\): .* \| LD_LIBRARY_PATH=.*deja (replay|record|info) .*"
                                     r" \| kept: .*/out/deja-e2e-")
        self.assertIn("0 ok, 2 failed, 0 skipped of 2", run.stdout)
        self.assertTrue(list((self.dir / "out").glob("deja-e2e-*/why.txt")))

    def test_how_ranks_meet(self):
        """PyTorch's store listens at the port at which NCCL would, and each of its groups has an id of its own."""
        ranks = self.folder / "tests" / "gpu" / "ranks.sh"
        for store, expected in (("", "127.0.0.1:29400"), ("1", "")):
            run = self.checked(self.command([ranks, 2, "bash", "-c", "echo $RANK $MASTER_PORT $NCCL_HOSTID $NCCL_COMM_ID"],
                                            env={"RANKS_STORE": store, "NCCL_COMM_ID": "127.0.0.1:1"}))
            self.assertEqual(sorted(run.stdout.splitlines()),
                             [f"{rank} 29400 rank{rank} {expected}".rstrip() for rank in (0, 1)])

    def test_a_machine_without_a_gpu(self):
        env = {"CUDA_VISIBLE_DEVICES": "none"}
        run = self.checked(self.run_checks("--only", "streams", env=env), harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"skipped streams_2_ranks .*: no GPU: ")
        self.assertIn("0 ok, 0 failed, 2 skipped of 2", run.stdout)

    def test_no_such_check(self):
        run = self.checked(self.run_checks("--simulated", "--only", "nothing_of_that_name"), harness.EXIT_FAILURE)
        self.assertIn("--list shows them", run.stderr)


if __name__ == "__main__":
    harness.main()
