"""The ways in which programs reach NCCL, and that the hooks see each of them without changing anything.

Uses the hooks with an engine that only notes names and passes calls on, and a stub NCCL (tests/fakes).
"""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APPS = harness.BUILD / "tests" / "interpose"
PRELOAD = harness.BUILD / "lib" / "libdeja_passthrough.so"
STAND_IN = harness.BUILD / "lib" / "libdeja_passthrough_nccl.so"
STUB = harness.BUILD / "tests" / "stub" / "libnccl.so.2"
USED = ["ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce"]


class Interpose(harness.DejaTest):
    def both(self, argv, preload=(), after=(), env=None):
        """Runs it without and with Deja; returns the common output and what the hooks saw."""
        calls = self.dir / "calls"
        calls.unlink(missing_ok=True)
        others = [str(p) for p in (*preload, *after)]
        plain = self.command(argv, env={**(env or {}), "LD_PRELOAD": ":".join(others)})
        libraries = [str(p) for p in (*preload, PRELOAD, *after)]
        hooked = self.command(argv, env={**(env or {}), "LD_PRELOAD": ":".join(libraries),
                                         "DEJA_OUT": self.dir, "DEJA_TEST_CALLS": calls})
        self.checked(plain)
        self.assertEqual((plain.code, plain.stdout, plain.stderr), (hooked.code, hooked.stdout, hooked.stderr),
                         f"\n{plain}\n{hooked}")
        return plain.stdout, calls.read_text().split() if calls.exists() else []

    def seen(self, *argv, **kwargs):
        return self.both([APPS / f"interpose_{argv[0]}", *argv[1:]], **kwargs)[1]

    def test_linked(self):
        self.assertEqual(self.seen("linked"), USED)

    def test_linked_lazily_and_at_once(self):
        for bind in ({"LD_BIND_NOW": "1"}, {}):
            self.assertEqual(self.seen("linked", env=bind), USED)

    def test_dependency_of_a_library_that_is_opened_locally(self):
        self.assertEqual(self.seen("opens_middle", APPS / "libinterpose_middle.so"), USED)

    def test_opened_by_name(self):
        self.assertEqual(self.seen("opens_nccl", "libnccl.so.2", env={"LD_LIBRARY_PATH": STUB.parent}), USED)

    def test_opened_by_path(self):
        self.assertEqual(self.seen("opens_nccl", STUB), USED)

    def test_opened_under_another_file_name(self):
        other = self.dir / "libnccl-copy.so"
        other.symlink_to(STUB)
        self.assertEqual(self.seen("opens_nccl", other), USED)

    def test_opened_twice(self):
        self.assertEqual(self.seen("opens_nccl", STUB, STUB), USED + USED)

    def test_opened_by_ctypes(self):
        code = (f"import ctypes\nn = ctypes.CDLL({str(STUB)!r})\n"
                "print(n.ncclGroupStart(), n.ncclGroupEnd())\n"
                "try:\n    n.ncclNoSuchFunction\nexcept AttributeError as e:\n    print('no such function')\n")
        output, calls = self.both([sys.executable, "-c", code])
        self.assertEqual(output, "0 0\nno such function\n")
        self.assertEqual(calls, ["ncclGroupStart", "ncclGroupEnd"])

    def test_a_second_copy_is_left_alone(self):
        copy = self.dir / "libsecond.so"
        copy.write_bytes(STUB.read_bytes())
        calls = self.dir / "calls"
        run = self.command([APPS / "interpose_opens_nccl", STUB, copy],
                           env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir, "DEJA_TEST_CALLS": calls})
        self.checked(run)
        self.assertEqual(calls.read_text().split(), USED)
        self.assertEqual(run.stderr, f"deja: the program uses a second NCCL, whose calls are not seen: {copy}\n")

    def test_asking_for_functions_that_are_not_there(self):
        output, calls = self.both([APPS / "interpose_asks", "ncclAllReduce", "ncclCommGrow", "puts"])
        self.assertEqual(output, "ncclAllReduce: not there, not there, error\n"
                                 "ncclCommGrow: not there, not there, error\n"
                                 "puts: there, there, no error\n")
        self.assertEqual(calls, [])

    def test_asking_for_functions_that_are_there(self):
        output, _ = self.both([APPS / "interpose_asks", "ncclAllReduce"], after=[STUB])
        self.assertEqual(output, "ncclAllReduce: there, there, no error\n")

    def test_other_wrapper_before_and_after(self):
        wrapper = APPS / "libinterpose_wrapper.so"
        for order in ({"preload": [wrapper]}, {"after": [wrapper]}):
            output, calls = self.both([APPS / "interpose_linked"], **order)
            self.assertEqual(output, "wrapped ncclAllReduce\nused NCCL: 0\n")
            self.assertEqual(calls, USED, order)

    def test_other_wrapper_that_opens_nccl_by_itself(self):
        wrapper = APPS / "libinterpose_wrapper_by_handle.so"
        for order in ({"preload": [wrapper]}, {"after": [wrapper]}):
            output, calls = self.both([APPS / "interpose_linked"], env={"INTERPOSE_NCCL": STUB}, **order)
            self.assertEqual(output, "wrapped ncclAllReduce\nused NCCL: 0\n")
            self.assertEqual(calls, USED, order)

    def test_other_wrapper_does_not_come_in_the_way_of_a_handle(self):
        wrapper = APPS / "libinterpose_wrapper.so"
        for order in ({"preload": [wrapper]}, {"after": [wrapper]}):
            output, calls = self.both([APPS / "interpose_opens_nccl", STUB], **order)
            self.assertNotIn("wrapped", output)
            self.assertEqual(calls, USED, order)

    def test_another_preload_library_that_wraps_dlsym(self):
        wrapper = APPS / "libinterpose_dlsym_wrapper.so"
        # Loaded after us, it is asked by us; a name is looked up more than once then.
        calls = self.dir / "calls"
        run = self.checked(self.command(
            [APPS / "interpose_opens_nccl", STUB],
            env={"LD_PRELOAD": f"{PRELOAD}:{wrapper}", "DEJA_OUT": self.dir, "DEJA_TEST_CALLS": calls}))
        self.assertIn("looked up ncclAllReduce\n", run.stdout)
        self.assertIn("used NCCL: 0\n", run.stdout)
        self.assertEqual(calls.read_text().split(), USED)
        # Loaded before us it takes the C library's dlsym, which is not ours: the calls are not seen, and go on.
        output, calls = self.both([APPS / "interpose_opens_nccl", STUB], preload=[wrapper])
        self.assertIn("used NCCL: 0\n", output)
        self.assertEqual(calls, [])

    def test_program_that_wraps_dlsym(self):
        output, calls = self.both([APPS / "interpose_wraps_dlsym", STUB])
        self.assertIn("looked up ncclAllReduce\nused NCCL: 0\n", output)
        self.assertEqual(calls, [])

    def test_before_main_and_after_it(self):
        output, calls = self.both([APPS / "interpose_early_main"])
        used = "used NCCL: 0\n"
        self.assertEqual(output, f"before main\n{used}main\nexit handler\n{used}after main\n{used}")
        self.assertEqual(calls, USED * 3)

    def test_children_start_again_however_they_are_made(self):
        for how in ("fork", "clone"):
            self.assertEqual(self.seen("forks", how), USED + ["child"] + USED * 3, how)

    def test_without_any_nccl(self):
        run = self.command([APPS / "interpose_no_nccl"], env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir})
        self.checked(run)
        self.assertEqual(run.stdout, "2 2\ndeja: no NCCL library is loaded that has this function\n")

    def test_switched_off_by_the_environment(self):
        calls = self.dir / "calls"
        run = self.command([APPS / "interpose_linked"], env={"LD_PRELOAD": PRELOAD, "DEJA_TEST_CALLS": calls})
        self.assertEqual((run.code, run.stdout, run.stderr), (0, "used NCCL: 0\n", ""))
        self.assertFalse(calls.exists())

    def stand_in(self, *argv, env=None):
        """With the library that is NCCL for the program; returns the run and what the hooks saw."""
        calls = self.dir / "calls"
        calls.unlink(missing_ok=True)
        run = self.command([APPS / f"interpose_{argv[0]}", *argv[1:]],
                           env={"LD_PRELOAD": STAND_IN, "DEJA_OUT": self.dir, "DEJA_TEST_CALLS": calls, **(env or {})})
        return run, calls.read_text().split() if calls.exists() else []

    def test_second_names_are_not_the_hooks_while_recording(self):
        self.assertEqual(self.seen("second_names"), [])

    def test_second_names_of_a_stand_in(self):
        run, calls = self.stand_in("second_names")
        self.assertEqual(self.checked(run).stdout, "used NCCL: 2\nncclDevCommCreate: 5\n")
        self.assertEqual(calls, USED)

    def test_stand_in_takes_the_place_of_a_linked_nccl(self):
        # Nothing is behind it: ncclSystemError, as a bit mask over four calls.
        for argv in (["linked"], ["opens_middle", APPS / "libinterpose_middle.so"]):
            run, calls = self.stand_in(*argv)
            self.assertEqual((run.code, run.stdout), (2, "used NCCL: 2\n"))
            self.assertEqual(calls, USED)

    def test_stand_in_takes_the_place_of_an_opened_nccl(self):
        # By name, by a path that exists, and by paths that do not.
        for library in ("libnccl.so.2", STUB, "/nowhere/libnccl.so.2.28.9", "libnccl.so"):
            run, calls = self.stand_in("opens_nccl", library)
            self.assertIn("used NCCL: 2\n", run.stdout, library)
            self.assertEqual(calls, USED, library)

    def test_stand_in_opens_other_libraries_as_they_are(self):
        run, calls = self.stand_in("opens_nccl", "/nowhere/libnccl-net.so")
        self.assertEqual(run.code, 1)
        self.assertIn("/nowhere/libnccl-net.so: cannot open shared object file", run.stdout)
        # By the search path of the program that asks, not of ours.
        run, _ = self.stand_in("opens_middle", "libinterpose_middle.so")
        self.assertEqual(run.stdout, "used NCCL: 2\n")

    def test_stand_in_says_that_nccl_is_there(self):
        run, _ = self.stand_in("asks", "ncclAllReduce", "ncclCommGrow")
        self.assertEqual(run.stdout, "ncclAllReduce: there, there, no error\nncclCommGrow: there, there, no error\n")

    def test_real_nccl_where_it_is_installed(self):
        library = os.environ.get("DEJA_TEST_NCCL", "/usr/local/cuda/lib64/libnccl.so.2")
        if not os.path.exists(library):
            self.skipTest(f"no {library}; DEJA_TEST_NCCL may name another")
        code = (f"import ctypes\nn = ctypes.CDLL({library!r})\nv = ctypes.c_int()\n"
                "print(n.ncclGetVersion(ctypes.byref(v)) == 0, v.value > 20000)\n")
        output, calls = self.both([sys.executable, "-c", code])
        self.assertEqual((output, calls), ("True True\n", ["ncclGetVersion"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
