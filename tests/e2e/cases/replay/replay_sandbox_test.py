"""A replay changes nothing outside its scratch folder and reaches no peer, and the program does not notice."""
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Sandbox(harness.DejaTest):
    def fill(self):
        """The folder as it is before the program runs."""
        folder = self.dir / "work"
        (folder / "old").mkdir(parents=True, exist_ok=True)
        (folder / "config").write_text("as it was\n")
        (folder / "log").write_text("first line\n")
        (folder / "old" / "1").write_text("one")
        (folder / "old" / "2").write_text("two")
        (folder / "config").chmod(0o644)
        return folder

    def empty(self):
        shutil.rmtree(self.dir / "work")

    def everything(self, folder):
        """Names, contents, modes and times below a folder."""
        found = {}
        for path in sorted(folder.rglob("*")):
            info = path.lstat()
            found[str(path.relative_to(folder))] = (info.st_mode, info.st_mtime_ns, info.st_ino,
                                                    path.read_bytes() if path.is_file() else None)
        return found

    def recorded(self, *arguments):
        folder = self.fill()
        run = self.checked(self.record("replay_files", [folder, *arguments], n=1))
        self.assertIn("rename folder: 0", run.stdout)
        self.assertTrue((folder / "older").is_dir())
        self.empty()
        return self.fill(), run

    def test_a_programs_own_file_is_there_for_it_alone(self):
        folder, run = self.recorded()
        before = self.everything(folder)
        names = set(os.listdir(self.dir))
        for _ in range(2):
            replayed = self.checked(self.replay(0))
            self.assertEqual(replayed.stdout.splitlines()[:-1], run.stdout.splitlines())
            self.assertEqual(self.everything(folder), before)
        self.assertEqual(set(os.listdir(self.dir)), names)

    def test_a_scratch_folder_is_kept_when_asked_for(self):
        folder, _ = self.recorded()
        scratch = self.dir / "scratch"
        self.checked(self.replay(0, options=["--scratch", scratch]))
        written = [p for p in scratch.rglob("log") if p.is_file()]
        self.assertTrue(any("replaced" in p.read_text() for p in written), written)
        again = self.replay(0, options=["--scratch", scratch])
        self.assertEqual(again.code, harness.EXIT_FAILURE)
        self.assertIn("not empty", again.stderr)
        self.assertIn("first line", (folder / "log").read_text())

    def test_nothing_is_left_in_the_temporary_folder(self):
        self.recorded()
        # A folder of its own: other tests replay at the same time.
        temporary = self.dir / "temporary"
        temporary.mkdir()
        self.checked(self.replay(0, env={"TMPDIR": temporary}))
        self.assertEqual(os.listdir(temporary), [])

    def test_recorded_connections_are_served_and_others_refused(self):
        with socket.socket() as listener, socket.socket() as other:
            for one in (listener, other):
                one.bind(("127.0.0.1", 0))
                one.listen()
                one.settimeout(0.2)
            port = listener.getsockname()[1]
            folder = self.fill()
            run = self.checked(self.record("replay_files", [folder, port], n=1))
            self.assertIn("connect: connected", run.stderr)
            listener.accept()[0].close()
            self.empty()
            self.fill()
            self.assertIn("connect: connected", self.checked(self.replay(0)).stderr)
            elsewhere = other.getsockname()[1]
            self.empty()
            self.fill()
            replayed = self.deja("replay", self.trace_path(), "--rank", 0, "--", harness.app("replay_files"), folder,
                                 elsewhere)
            self.assertIn("connect: Connection refused", replayed.stderr)
            self.assertRegex(replayed.stderr, rf"deja: connecting to 127\.0\.0\.1:{elsewhere} was refused")
            self.assertIn("--allow-network", replayed.stderr)
            for one in (listener, other):
                with self.assertRaises(TimeoutError):
                    one.accept()
            self.empty()
            self.fill()
            allowed = self.deja("replay", self.trace_path(), "--rank", 0, "--allow-network", "--",
                                harness.app("replay_files"), folder, elsewhere)
            self.assertIn("connect: connected", allowed.stderr)
            other.accept()[0].close()

    def test_files_are_changed_where_they_are_when_that_is_asked_for(self):
        folder, run = self.recorded()
        self.checked(self.replay(0, options=["--allow-writes"]))
        self.assertIn("replaced", (folder / "log").read_text())
        self.assertTrue((folder / "older").is_dir())

    def test_shared_memory_and_semaphores_are_its_own(self):
        name = f"{self.dir.name}-shared"
        memory = Path("/dev/shm") / name
        self.addCleanup(memory.unlink, missing_ok=True)
        run = self.checked(self.record("replay_shared_objects", [name], n=1))
        self.assertIn("memory: 1\n", run.stdout)
        self.assertIn("posted: 0\n", run.stdout)
        held = memory.read_bytes()
        memory.unlink()
        for _ in range(2):
            replayed = self.checked(self.replay(0))
            self.assertEqual(replayed.stdout.splitlines()[:-1], run.stdout.splitlines())
            self.assertFalse(memory.exists())
        # What the recorded run left there is not seen, and stays as it is.
        memory.write_bytes(held)
        replayed = self.replay(0)
        self.assertEqual(replayed.stdout.splitlines()[:-1], run.stdout.splitlines())
        self.assertEqual(memory.read_bytes(), held)

    def test_a_signal_goes_nowhere_else(self):
        victim = self.start(["sleep", "60"])
        try:
            self.record("replay_trainer", ["--fault", "kill-other", "--victim", victim.pid])
            self.assertEqual(self.finish(victim).code, 128 + signal.SIGTERM)
            victim = self.start(["sleep", "60"])
            # The same number as in the recording would be another process by now.
            run = self.deja("replay", self.trace_path(), "--rank", 2, "--", harness.app("replay_trainer"),
                            "--fault", "kill-other", "--victim", victim.pid)
            self.assertIn(f"a signal to process {victim.pid} was refused", run.stderr)
            self.assertIsNone(victim.poll())
        finally:
            victim.kill()
            self.finish(victim)


if __name__ == "__main__":
    harness.main()
