"""When the machine refuses what recording needs, the job goes on as if Deja were not there, and one line says so."""
import resource
import shlex
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

ARGS = ["--calls=200", "--count=50000"]


def can_mount():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class Degraded(harness.DejaTest):
    def compare(self, run, lines_a_rank=1, n=2):
        """Exit code and output of a run without Deja; at most this many lines of Deja's for each rank."""
        plain = self.launch("reduces", ARGS, n=n)
        self.assertSameBehaviour(plain, run)
        complaints = [x for x in run.deja_lines() if "not recorded" in x or "dropped" in x or "missing" in x
                      or "refus" in x or "no longer" in x or "lost" in x or "No space" in x]
        self.assertTrue(complaints, f"nothing was said\n{run}")
        self.assertLessEqual(len(complaints), lines_a_rank * n + 1, str(run))

    def in_namespace(self, setup, n=2, out=None):
        """`deja record` in a mount namespace of its own, after the shell commands `setup`."""
        argv = self.record_argv("reduces", ARGS, n=n, trace=out or "run.deja")
        return self.command(["unshare", "-m", "bash", "-c", f"{setup} && exec {shlex.join(map(str, argv))}"])

    @unittest.skipUnless(can_mount(), "needs mount namespaces")
    def test_full_disk(self):
        (self.dir / "small").mkdir()
        run = self.in_namespace(f"mount -t tmpfs -o size=256k none {self.dir}/small", out="small/run.deja")
        self.compare(run, lines_a_rank=2)

    @unittest.skipUnless(can_mount(), "needs mount namespaces")
    def test_read_only_directory(self):
        (self.dir / "ro").mkdir()
        run = self.in_namespace(f"mount -t tmpfs -o ro none {self.dir}/ro", out="ro/run.deja")
        self.compare(run)

    @unittest.skipUnless(can_mount(), "needs mount namespaces")
    def test_disk_becomes_read_only(self):
        trace = self.dir / "disk" / "run.deja"
        (self.dir / "disk").mkdir()
        app = harness.app("reduces")
        argv = [harness.DEJA, "record", "--loopback", "-n", "2", "--out", trace, "--", "bash", "-c",
                # As often as it takes: the other rank's wrapper may just be writing down how its own mount ended.
                f"until mount -o remount,ro {self.dir}/disk 2> /dev/null; do sleep 0.05; done; "
                f"exec {app} {' '.join(ARGS)}"]
        run = self.command(["unshare", "-m", "bash", "-c",
                            f"mount -t tmpfs none {self.dir}/disk && exec {shlex.join(map(str, argv))}"])
        self.compare(run)

    @unittest.skipUnless(can_mount(), "needs mount namespaces")
    def test_without_dev_shm(self):
        # The trace's own folder takes the tail: everything is recorded.
        run = self.in_namespace("mount -t tmpfs -o ro none /dev/shm", n=1)
        plain = self.launch("reduces", ARGS, n=1)
        if run.code == plain.code:
            self.assertSameBehaviour(plain, run)
            self.assertVerifies()
        else:  # loopback itself needs /dev/shm; then so does the job without Deja
            bare = self.command(["unshare", "-m", "bash", "-c",
                                 f"mount -t tmpfs -o ro none /dev/shm && {harness.DEJA} launch -n 1 -- "
                                 f"{harness.app('reduces')} {' '.join(ARGS)}"])
            self.assertSameBehaviour(bare, run)

    @unittest.skipUnless(can_mount(), "needs mount namespaces")
    def test_shared_memory_that_is_full(self):
        # A page of a mapping that tmpfs cannot back would be a SIGBUS in the middle of the program.
        for size in ("16k", "300k", "3m"):
            with self.subTest(size=size):
                tails = self.dir / f"tails{size}"
                tails.mkdir()
                argv = self.record_argv("reduces", ARGS, n=2, trace=f"run{size}.deja")
                run = self.command(["unshare", "-m", "bash", "-c",
                                    f"mount -t tmpfs -o size={size} none {tails} && "
                                    f"DEJA_TAIL_DIR={tails} exec {shlex.join(map(str, argv))}"])
                self.assertSameBehaviour(self.launch("reduces", ARGS, n=2), run)

    def test_tail_directory_that_is_missing(self):
        run = self.record("reduces", ARGS, n=2, env={"DEJA_TAIL_DIR": "/nowhere/at/all"})
        self.assertSameBehaviour(self.launch("reduces", ARGS, n=2), run)
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertVerifies()

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        run = self.finish(self.start(self.record_argv("reduces", ARGS, n=2), preexec_fn=limit))
        plain = self.finish(self.start(self.launch_argv("reduces", ARGS, n=2), preexec_fn=limit))
        self.assertSameBehaviour(plain, run)

    def test_no_file_may_grow(self):
        run = self.command(["sh", "-c", f"ulimit -f 0; exec {shlex.join(map(str, [harness.DEJA, 'record', '--single', '--out', self.trace_path()]))}"
                                        " -- sh -c 'echo hi; head -c 9 /dev/zero > big; echo $?; exit 3'"])
        self.assertEqual((run.code, run.stdout), (3, f"hi\n{128 + signal.SIGXFSZ}\n"), str(run))
        self.assertRegex(run.stderr, r"deja: the job is not recorded: writing: .*: File too large")

    def test_a_folder_that_is_removed_meanwhile(self):
        run = self.record_single("sh", "-c", f"rm -r {self.trace_path()}; echo on; exit 4")
        self.assertEqual((run.code, run.stdout), (4, "on\n"), str(run))
        self.assertIn(f"nothing is left of the recording: {self.trace_path().name} was removed while the job ran", run.stderr)

    def test_few_file_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (11, 11))
        run = self.finish(self.start(self.record_argv("reduces", ARGS, n=2), preexec_fn=limit))
        plain = self.finish(self.start(self.launch_argv("reduces", ARGS, n=2), preexec_fn=limit))
        if plain.code == 0:
            self.assertSameBehaviour(plain, run)

    def test_program_that_uses_up_its_descriptors(self):
        app = harness.app("reduces")
        script = f"ulimit -n 12; exec {app} {' '.join(ARGS)}"
        plain = self.deja("launch", "-n", "1", "--", "bash", "-c", script)
        run = self.deja("record", "--loopback", "-n", "1", "--out", self.trace_path(), "--", "bash", "-c", script)
        self.assertSameBehaviour(plain, run)

    def test_dropped_payloads_are_counted(self):
        run = self.record("reduces", ["--calls=40", "--count=400000"], n=1,
                          options=["--buffer", "1MB", "--on-pressure", "drop-payload"])
        self.checked(run)
        results = [e for e in self.show_json("--rank", "0") if e["kind"] == "results"]
        self.assertEqual(len(results), 40)  # order is never dropped
        lost = sum(not e["outputs"][0]["kept"] for e in results)
        info = self.checked(self.deja("info", self.trace_path(), "--json"), harness.EXIT_DATA_LOSS)
        self.assertEqual(info.json()["ranks"][0]["payloads_lost"], lost)
        self.assertGreater(lost, 0)

    def test_blocking_loses_nothing(self):
        run = self.record("reduces", ["--calls=20", "--count=400000"], n=2, options=["--buffer", "1MB"])
        self.assertSameBehaviour(self.launch("reduces", ["--calls=20", "--count=400000"], n=2), run)
        self.assertVerifies()


if __name__ == "__main__":
    harness.main()
