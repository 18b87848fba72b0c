"""`deja replay --pdb`: Python's debugger at the exception that ended the rank, and at lines."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

SCRIPT = """\
import os, random, subprocess, sys

def check(step, value):
    if value > 100:
        raise ValueError(f"step {step} is bad")
    return value

def main():
    seen = random.random()
    print(seen, flush=True)
    if os.fork() == 0:
        check(-1, 1)
        os._exit(0)
    os.wait()
    subprocess.run([sys.executable, "-c", "print('other')"], check=True)
    for step in range(4):
        check(step, step if step < 3 else 1000)

main()
"""


class Pdb(harness.DejaTest):
    def record_script(self, text=SCRIPT):
        self.script = self.dir / "train.py"
        self.script.write_text(text)
        return self.record_single(sys.executable, self.script, cwd=self.dir)

    def pdb(self, *commands, options=()):
        typed = self.dir / "typed.txt"
        typed.write_text("".join(f"{line}\n" for line in commands))
        with open(typed, encoding="utf-8") as stdin:
            return self.replay(0, options=("--pdb", *options), stdin=stdin)

    def test_it_stops_at_the_exception_with_all_frames(self):
        run = self.checked(self.record_script(), code=1)
        seen = run.stdout.split()[0]
        self.assertIn("deja: rank 0: exit 1, ValueError: step 3 is bad at train.py:5 in check", run.stderr)
        self.assertRegex(run.stderr, r"deja: +deja replay \S+ --rank 0 --pdb +it failed first")
        page = self.dir / "report.html"
        self.checked(self.deja("report", self.trace_path(), "-o", page))
        self.assertIn("deja replay RUN --rank 0 --pdb", page.read_text())
        again = self.checked(self.pdb("p step, value", "up", "p seen", "q"))
        self.assertIn("train.py(5)check()", again.stdout)
        self.assertIn("(Pdb) (3, 1000)", again.stdout)
        self.assertIn(f"(Pdb) {seen}", again.stdout)
        self.assertIn("rank 0: exit 1, the same as recorded", again.stdout)
        self.assertIn("ValueError: step 3 is bad", again.stderr)

    def test_a_hook_of_the_program_and_a_program_that_ends_itself(self):
        script = self.dir / "train.py"
        for text, said in (("import sys\nbefore = sys.excepthook\n"
                            "sys.excepthook = lambda *error: (print('mine', flush=True), before(*error))\n1 / 0\n",
                            "exit 1, ZeroDivisionError: division by zero at train.py:4 in <module>\n"),
                           ("import sys\nsys.exit(3)\n", "exit 3\n")):
            script.write_text(text)
            run = self.record_single(sys.executable, script, cwd=self.dir, trace=f"{len(text)}.deja")
            self.assertIn(f"deja: rank 0: {said}", run.stderr)
            again = self.checked(self.replay(0, trace=f"{len(text)}.deja"))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_a_frame_of_a_package_is_not_the_first_to_be_shown(self):
        run = self.record_script('import json\ntext = "{"\njson.loads(text)\n')
        self.assertEqual(run.code, 1, str(run))
        again = self.checked(self.pdb("p text", "down", "q"))
        self.assertIn("train.py(3)<module>()", again.stdout)
        self.assertIn("(Pdb) '{'", again.stdout)
        self.assertIn("json/__init__.py", again.stdout)

    def test_it_stops_at_lines_in_the_rank_alone(self):
        """Not in what it has forked, which reaches the line first."""
        self.checked(self.record_script(), code=1)
        again = self.checked(self.pdb("p step", "c", "p step", "q", options=("--break", "train.py:4")))
        shown = [line for line in again.stdout.splitlines() if line.startswith("(Pdb) ") and line[6:].isdigit()]
        self.assertEqual(shown, ["(Pdb) 0", "(Pdb) 1"], str(again))
        self.assertIn("left in Python's debugger; nothing was compared to its end", again.stderr)
        self.assertNotIn("the same as recorded", again.stdout)

    def test_after_the_last_line_comes_the_exception(self):
        self.checked(self.record_script(), code=1)
        again = self.checked(self.pdb("c", "p value", "q", options=("--break", f"{self.script}:5")))
        self.assertEqual(again.stdout.count("train.py(5)check()"), 2, str(again))
        self.assertIn("(Pdb) 1000", again.stdout)
        self.assertIn("the same as recorded", again.stdout)

    def test_leaving_pdb_under_json_prints_json(self):
        self.checked(self.record_script(), code=1)
        again = self.checked(self.pdb("q", options=("--break", "train.py:4", "--json")))
        self.assertEqual(again.json()["left"], "pdb")

    def test_no_stop_is_reported(self):
        self.checked(self.record_script("print('well')\n"))
        again = self.checked(self.pdb(options=("--break", "model.py:4")))
        self.assertIn("deja: pdb: --break model.py:4: no such file", again.stderr)
        self.assertIn("the program ended without an exception, and reached none of the --break lines", again.stderr)
        self.assertIn("well", again.stdout)

    def test_unusable_options_are_refused(self):
        self.checked(self.record_script("print('well')\n"))
        for options, text in ((("--break", "train.py"), "not a file and a line; write it as train.py:88"),
                              (("--gdb",), "--pdb: it does not go with --gdb")):
            refused = self.pdb(options=options)
            self.assertEqual(refused.code, harness.EXIT_USAGE, str(refused))
            self.assertIn(text, refused.stderr)
        self.checked(self.record_single("/bin/true", trace="true.deja"))
        refused = self.replay(0, trace="true.deja", options=("--pdb",))
        self.assertEqual(refused.code, harness.EXIT_USAGE, str(refused))
        self.assertRegex(refused.stderr, "replaying: rank 0: --pdb: .*true is not Python; use --gdb")


if __name__ == "__main__":
    harness.main()
