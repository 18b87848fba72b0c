"""Traces that are not what they should be: other things in place of files, holes, very many ranks or files, links."""
import os
import shutil
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

HOLE = 40 << 30


class OddTraces(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("stepper", ["--steps=3", "--count=16"], n=2))
        self.number = 0

    def copy(self):
        self.number += 1
        name = f"odd-{self.number}.deja"
        shutil.copytree(self.trace_path(), self.trace_path(name))
        return self.trace_path(name)

    def each_command(self, trace, **kwargs):
        """Each comes to an end, and says why where that is no good one."""
        runs = {}
        for argv in (["info", trace], ["show", trace, "--last", "3"], ["verify", trace],
                     ["diff", self.trace_path(), trace, "--rank", "0"],
                     ["pack", trace, "--out", self.dir / f"{trace.name}.zip"],
                     ["replay", trace, "--rank", "0", "--trust"], ["recover", trace]):
            run = self.deja(*argv, timeout=60, **kwargs)
            self.assertLess(run.code, 128, f"\n{run}")
            if run.code not in (0, harness.EXIT_DATA_LOSS, harness.EXIT_DIVERGED):
                self.assertTrue(run.deja_lines(), f"\n{run}")
            runs[argv[0]] = run
        return runs

    def test_other_things_in_place_of_a_file(self):
        def make_socket(path):
            with socket.socket(socket.AF_UNIX) as made:
                here = os.getcwd()
                os.chdir(path.parent)  # its name may be too long for an address
                made.bind(path.name)
                os.chdir(here)
        makers = {"a pipe": os.mkfifo, "a socket": make_socket, "a folder": os.mkdir,
                  "a link to a device": lambda path: path.symlink_to("/dev/zero"),
                  "a link out": lambda path: path.symlink_to("/etc/passwd")}
        for file in ("events.deja", "payloads.deja"):
            for what, make in makers.items():
                with self.subTest(file=file, what=what):
                    trace = self.copy()
                    path = trace / "rank-00000" / file
                    path.unlink(missing_ok=True)
                    make(path)
                    runs = self.each_command(trace)
                    if file == "events.deja":
                        self.assertNotEqual(runs["verify"].code, 0)
                        self.assertNotEqual(runs["replay"].code, 0)
                    for run in runs.values():
                        self.assertNotIn("root:", run.stdout)

    def test_a_trace_that_is_something_else(self):
        pipe = self.dir / "pipe.deja"
        os.mkfifo(pipe)
        empty = self.dir / "empty.deja"
        empty.touch()
        for path in (pipe, empty, Path("/dev/zero"), Path("/dev/null")):
            with self.subTest(path=path):
                for run in self.each_command(path).values():
                    self.assertNotEqual(run.code, 0, f"\n{run}")

    def test_a_hole_is_not_read(self):
        for file in ("events.deja", "payloads.deja"):
            with self.subTest(file=file):
                trace = self.copy()
                path = trace / "rank-00000" / file
                if not path.exists():
                    continue
                os.truncate(path, HOLE)
                runs = self.each_command(trace)
                self.assertNotEqual(runs["verify"].code, 0)
                self.checked(runs["recover"])
                if file == "events.deja":  # the footer is there: nobody has to complete it
                    self.assertLess(path.stat().st_size, HOLE)
                    self.assertVerifies(trace.name)

    def test_ranks_without_files(self):
        trace = self.dir / "ranks.deja"
        for rank in range(2000):
            os.makedirs(trace / f"rank-{rank:05}")
        for run in self.each_command(trace).values():
            self.assertNotEqual(run.code, 0)

    def test_a_folder_with_very_many_files_and_odd_names(self):
        trace = self.copy()
        folder = trace / "rank-00000"
        for number in range(20000):
            (folder / f"other-{number}").touch()
        for name in (b"a\nb", b"\xff\xfe", b"x" * 255, b"payloads-0.deja", b"payloads-99999999999.deja",
                     b"\x1b[31m"):
            with open(os.path.join(os.fsencode(folder), name), "wb"):
                pass
        deep = folder
        for _ in range(60):
            deep = deep / ("d" * 50)
        os.makedirs(deep)
        runs = self.each_command(trace)
        for name in ("info", "show", "verify", "diff", "pack", "replay", "recover"):
            self.checked(runs[name])

    def test_a_rank_that_is_a_link(self):
        trace = self.copy()
        shutil.rmtree(trace / "rank-00001")
        (trace / "rank-00001").symlink_to(self.trace_path() / "rank-00001")
        for run in self.each_command(trace).values():
            if "diff" not in run.argv:
                self.assertEqual(run.code, harness.EXIT_FAILURE, f"\n{run}")
            self.assertIn("symbolic link", run.stderr)


if __name__ == "__main__":
    harness.main()
