"""What cannot be replayed is refused with a clear message and the right exit code, before anything runs."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Refuse(harness.DejaTest):
    def refused(self, *arguments, code=harness.EXIT_FAILURE):
        run = self.checked(self.deja("replay", *arguments), code)
        self.assertEqual(run.stdout, "")
        self.assertTrue(run.deja_lines(), f"\n{run}")
        return run.stderr

    def test_a_rank_that_is_not_there_names_those_that_are(self):
        self.checked(self.record("replay_trainer"))
        self.assertRegex(self.refused(self.trace_path(), "--rank", 9), r"rank 9")
        self.assertRegex(self.refused(self.trace_path(), "--ranks", "2-5"), r"rank 4")

    def test_usage(self):
        self.checked(self.record("replay_trainer"))
        self.assertIn("--rank", self.refused(self.trace_path(), code=harness.EXIT_USAGE))
        self.assertIn("--ranks 3-1: not a range", self.refused(self.trace_path(), "--ranks", "3-1", code=harness.EXIT_USAGE))
        self.assertIn("--gdb", self.refused(self.trace_path(), "--all", "--gdb", code=harness.EXIT_USAGE))

    def test_levels_without_results(self):
        for level in ("order", "digest"):
            trace = f"{level}.deja"
            self.checked(self.record("replay_trainer", level=level, trace=trace))
            message = self.refused(self.trace_path(trace), "--rank", 0)
            self.assertIn(f"level {level}", message)
            self.assertIn("--level full", message)

    def test_another_program(self):
        self.checked(self.record("replay_trainer"))
        message = self.refused(self.trace_path(), "--rank", 0, "--", "/bin/true")
        self.assertIn("build id", message)
        self.assertIn("--force", message)
        forced = self.deja("replay", self.trace_path(), "--rank", 0, "--force", "--", "/bin/true")
        self.assertEqual(forced.code, harness.EXIT_DIVERGED, f"\n{forced}")
        self.assertIn("build id", forced.stderr)

    def test_a_program_that_is_gone_and_found_again(self):
        program = self.dir / "trainer"
        shutil.copy(harness.app("replay_trainer"), program)
        self.checked(self.record(str(program)))
        moved = self.dir / "elsewhere"
        program.rename(moved)
        self.assertIn("is not here", self.refused(self.trace_path(), "--rank", 1))
        self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--", moved))

    def test_a_working_directory_that_is_gone(self):
        folder = self.dir / "work"
        folder.mkdir()
        self.checked(self.record("replay_trainer", cwd=folder))
        folder.rmdir()
        run = self.checked(self.replay(1))
        self.assertIn("working directory", run.stderr)

    def test_files_that_are_no_traces(self):
        empty, text = self.dir / "empty.deja", self.dir / "text.deja.zip"
        empty.mkdir()
        text.write_text("no zip at all\n")
        for path in (self.dir / "missing.deja", empty, text, "/etc"):
            self.assertIn(Path(path).name, self.refused(path, "--rank", 0))

    def test_damaged_traces_never_crash_it(self):
        self.checked(self.record("replay_trainer"))
        good = {p: p.read_bytes() for p in (self.trace_path() / "rank-00001").iterdir()}
        for path, data in good.items():
            for keep in (0, 1, 10, 100, len(data) // 2, len(data) - 1):
                path.write_bytes(data[:keep])
                run = self.replay(1)
                self.assertNotEqual(run.code, harness.EXIT_OK, f"\n{path.name} cut at {keep}\n{run}")
                self.assertIn(run.code, (harness.EXIT_FAILURE, harness.EXIT_DATA_LOSS, harness.EXIT_DIVERGED), f"\n{path.name} cut at {keep}\n{run}")
                self.assertNotIn("ended by SIG", run.stdout, f"\n{path.name} cut at {keep}\n{run}")
            path.write_bytes(data)
        self.checked(self.replay(1))


if __name__ == "__main__":
    harness.main()
