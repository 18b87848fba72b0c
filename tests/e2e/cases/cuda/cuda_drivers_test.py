"""Drivers of several versions, drivers that do not work, none at all. Deja is loaded and stays out of the way, and a
replay says what it has found."""
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

DRIVERS = harness.BUILD / "tests"
NEWEST = "13.0"


def driver_of(version):
    """The library of a simulated driver: of a version of CUDA, or one whose cuInit returns that number."""
    return DRIVERS / ("cuda" if version == NEWEST else f"cuda-{version}") / "libcuda.so.1"


class DriverVersions(DeviceJobs):
    VERSIONS = ("11.8", "12.0", "12.8", NEWEST)

    def record(self, *args, env=None, **kwargs):
        return super().record(*args, env={**(env or {}), **self.env}, **kwargs)

    def for_each_version(self, check):
        for version in self.VERSIONS:
            with self.subTest(version):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                self.env = {} if version == NEWEST else {"LD_PRELOAD": driver_of(version)}
                check(version)

    def check_program(self, program, *args):
        self.PROGRAM = program
        self.for_each_version(lambda version: self.check_replays(args))

    def test_steps(self):
        self.check_program("cuda_steps", "--unseeded", "--steps=2")

    def test_collectives(self):
        self.check_program("cuda_collectives", "--unseeded", "--count=33")

    def test_graphs(self):
        self.check_program("cuda_graphs", "--launches=5")

    def test_the_runtime(self):
        self.check_program("cuda_runtime", "--unseeded")

    def devices(self, run):
        return set(re.findall(r"^rank (\d) ([\w ]+): device (\d), (\d) in all$", run.stdout, re.MULTILINE))

    def test_functions_by_all_ways(self):
        self.for_each_version(self.check_functions)

    def check_functions(self, version):
        older = {"linked", "by dlsym", "by dlsym for all", "by dlsym next", "by address", "by address of address"}
        newer = older | {"by address 2", "by address 2 of address", "by the runtime", "by the runtime and version"}
        ways = older if version == "11.8" else newer
        number = 1000 * int(version.split(".")[0]) + 10 * int(version.split(".")[1])
        recorded = self.checked(self.record("cuda_devices", ["--missing"], n=2, level="digest"))
        self.assertEqual(self.devices(recorded), {(str(r), way, str(r), "2") for r in range(2) for way in ways})
        plain = self.checked(self.launch("cuda_devices", ["--missing"], n=2, env=self.env))
        self.assertSameLines(plain.stdout, recorded.stdout)
        told = {"cuLibraryLoadData": version != "11.8", "cuCtxCreate_v4": number >= 12050, "cuNothing": False}
        same = self.checked(self.deja("replay", self.trace_path(), "--all"))
        one = self.checked(self.deja("replay", self.trace_path(), "--all", "--devices", "1"))
        self.assertEqual(self.devices(one), {(str(r), way, "0", "2") for r in range(2) for way in ways})
        for run in (recorded, same, one):
            for name, there in told.items():
                line = f"rank 1 driver {number}: {name} by dlsym {there:d}, for all {there:d}, next {there:d}"
                self.assertIn(line, run.stdout.splitlines())
            self.assertIn("rank 1 cuNothing by address: 500, versions of dlvsym: 0", run.stdout.splitlines())

    def test_turns_need_a_driver_of_12_8(self):
        self.PROGRAM = "cuda_turns"
        self.for_each_version(self.check_turns)

    def check_turns(self, version):
        count = 20000
        # The deja command finds the driver as programs do; these know theirs by a path of their own.
        self.env |= self.simulated_memory(6 * 4 * count * 3 // 2)
        recorded = self.checked(self.record(self.PROGRAM, ["--unseeded", f"--count={count}"], n=2, level="digest",
                                            env={"CUDA_SIM_DEVICES": 2}))
        env = {**self.env, "LD_LIBRARY_PATH": driver_of(version).parent}
        run = self.deja("replay", self.trace_path(), "--all", "--devices", "1", "--allow-file", self.board(), env=env)
        if version in ("11.8", "12.0"):
            self.checked(run, harness.EXIT_FAILURE)
            self.assertRegex(run.stdout, r"ranks cannot take turns: swapping device memory: libcuda\.so\.1: the driver has no "
                                         r"cuCheckpointProcess\w+; use driver 570 or later")
            return
        self.checked(run)
        for rank in range(2):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))


class OtherDrivers(DeviceJobs):
    """Recorded with a driver that works, replayed with another one: its search path is a folder of the case."""
    PROGRAM = "cuda_steps"

    def setUp(self):
        self.folder = self.dir / "t" / "d"
        self.folder.mkdir(parents=True)
        (self.dir / "lib").symlink_to(harness.BUILD / "lib")  # where that NCCL looks for another library
        (self.folder / "libnccl.so.2").symlink_to(DRIVERS / "cuda" / "libnccl.so.2")
        self.use(NEWEST)
        program = Path(harness.app(self.PROGRAM)).read_bytes()
        path = str(DRIVERS / "cuda").encode() + b":"
        self.assertEqual(program.count(path), 1, "the path in which the program looks for its libraries")
        self.program = self.dir / self.PROGRAM
        # Relative to where it runs.
        self.program.write_bytes(program.replace(path, b"t/d:".ljust(len(path), b":")))
        self.program.chmod(0o755)

    def use(self, version):
        library = self.folder / "libcuda.so.1"
        library.unlink(missing_ok=True)
        if version is not None:
            library.symlink_to(driver_of(version))

    def record_here(self, *args, env=None, n=2, code=0):
        return self.checked(self.record(self.program, args, n=n, env={"LD_LIBRARY_PATH": self.folder, **(env or {})}), code)

    def replay_with(self, version, *options, code=harness.EXIT_DIVERGED, **kwargs):
        self.use(version)
        env = {"LD_LIBRARY_PATH": self.folder}
        run = self.deja("replay", self.trace_path(), "--rank", "1", *options, env=env, **kwargs)
        return self.checked(run, code)

    def test_a_driver_that_does_not_come_up(self):
        recorded = self.record_here("--unseeded", "--steps=2")
        for number, said in (("100", r"the CUDA driver \(for 13\.0\) has no device"),
                             ("803", r"cuInit returned 803 \(the driver's library and its kernel module are of different versions\) "
                                     r"\(load the new kernel module"),
                             ("999", r"cuInit returned 999 \(unknown error\) \(see that nvidia-smi works")):
            with self.subTest(number):
                run = self.replay_with(number)
                self.assertIn(f"cuInit(0) returned {number}", run.stderr)
                self.assertRegex(run.stdout, r"rank 1: exit 1; the recorded run: exit 0")
                self.assertRegex(run.stdout, r"\n  the recorded rank used CUDA; here .*" + said)
                self.assertIn("here", self.replay_with(number, "--json").json()["ranks"][0]["details"][0])
        # And where it does, nothing is said, whatever its version.
        run = self.replay_with("11.8", code=0)
        self.assertEqual(self.rank_line(run, 1), self.rank_line(recorded, 1))
        self.assertNotIn("the recorded rank used CUDA", run.stdout)

    def test_no_driver_at_all(self):
        self.record_here("--steps=2")
        run = self.replay_with(None, code=harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"\n  the recorded rank used CUDA; here there is no CUDA driver: libcuda\.so\.1: cannot open")
        # A program that needs none is not told of any.
        self.use(None)
        host = self.record("replay_trainer", ["--fault", "crash"], n=4, trace="host.deja")
        self.assertNotIn("CUDA", host.stdout + host.stderr)
        run = self.deja("replay", self.trace_path("host.deja"), "--rank", "2", "--", harness.app("replay_trainer"))
        self.assertNotIn("CUDA", run.stdout + run.stderr)

    def test_recording_leaves_a_program_alone_whose_driver_does_not_come_up(self):
        for number in ("100", "803", "999"):
            with self.subTest(number):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                self.use(number)
                plain = self.launch(self.program, n=1)
                recorded = self.record_here(n=1, code=1)
                self.assertRegex(plain.stderr, rf"cuInit\(0\) returned {number}")
                self.assertRegex(recorded.stderr, rf"cuInit\(0\) returned {number}")
                self.assertEqual(plain.stdout, recorded.stdout)

    def test_no_device_is_to_be_seen(self):
        """CUDA_VISIBLE_DEVICES is empty, or names what is not there."""
        for visible in ("", "NoDevFiles", "7"):
            with self.subTest(visible):
                env = {"CUDA_VISIBLE_DEVICES": visible}
                run = self.record(self.PROGRAM, n=1, env=env)
                self.assertRegex(run.stderr, r"cuInit\(0\) returned 100")
                run = self.checked(self.deja("doctor", env={**env, "LD_LIBRARY_PATH": self.folder}))
                self.assertIn(f"note     cuda: the CUDA driver (for 13.0) has no device, with CUDA_VISIBLE_DEVICES={visible}\n",
                              run.stdout)

    def test_mig_devices(self):
        """A program has the first one that is named, and no other."""
        env = {"CUDA_VISIBLE_DEVICES": "MIG-61f5-1,MIG-61f5-0"}
        for options in ((), ("--devices", "1"), ("--devices", "2")):
            with self.subTest(options=options):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                recorded = self.record_here("--unseeded", "--steps=2", env=env)
                run = self.checked(self.deja("replay", self.trace_path(), "--all", *options))
                for rank in range(2):
                    self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))

    def test_how_many_mig_devices(self):
        env = {"CUDA_VISIBLE_DEVICES": "MIG-61f5-1,MIG-61f5-0"}
        recorded = self.record("cuda_devices", n=1, level="digest", env=env)
        seen = "rank 0 linked: device 0, 1 in all"
        self.assertIn(seen, self.checked(recorded).stdout)
        for options in ((), ("--devices", "1"), ("--devices", "2")):
            run = self.checked(self.deja("replay", self.trace_path(), "--all", "--compute", *options))
            self.assertIn(seen, run.stdout)


class Allocations(DeviceJobs):
    """What needs device memory otherwise than by cuMemAlloc takes turns, too."""
    BYTES = 1 << 20
    PROGRAM = "cuda_allocations"

    def check(self, kind, env=(), room=1.5):
        """Ranks that have a device of one and a half times what each needs, together on one."""
        settings = {"LD_LIBRARY_PATH": DRIVERS / "cuda", **dict(env), **self.simulated_memory(int(self.BYTES * room))}
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        recorded = self.record(self.PROGRAM, [f"--kind={kind}", f"--bytes={self.BYTES}"], n=3, level="digest",
                               env={**settings, "CUDA_SIM_DEVICES": 3})
        self.checked(recorded)
        run = self.checked(self.deja("replay", self.trace_path(), "--all", "--devices", "1", "--allow-file", self.board(),
                                     env=settings))
        self.assertIn("they take turns", run.stderr)
        for rank in range(3):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))

    def test_memory_of_other_kinds(self):
        for kind in ("plain", "pitch", "array", "array3d", "mipmap", "pool"):
            with self.subTest(kind):
                self.check(kind)

    def test_contexts(self):
        # The first one, which every rank has, is as large as the second one.
        for kind in ("context2", "context3", "context4"):
            with self.subTest(kind):
                self.check(kind, {"CUDA_SIM_CONTEXT": self.BYTES // 2})

    def test_modules_and_libraries(self):
        for kind in ("module", "modulex", "library"):
            with self.subTest(kind):
                # Two more are there from the start: the program's and Deja's.
                self.check(kind, {"CUDA_SIM_MODULE": self.BYTES // 2}, room=1.9)

    def test_kernels_that_are_loaded_late(self):
        self.check("kernels", {"CUDA_SIM_KERNEL": self.BYTES // 2})

    def test_a_program_that_asks_first(self):
        self.check("info")


if __name__ == "__main__":
    harness.main()
