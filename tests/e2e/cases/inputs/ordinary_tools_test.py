"""Tools of every day in a recorded script: their replay prints the same, makes the same, and changes nothing."""
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Tools(harness.DejaTest):
    def replays(self, script, needs=()):
        """`script` runs in an empty folder; afterwards everything in it is listed."""
        for tool in needs:
            if shutil.which(tool) is None:
                self.skipTest(f"{tool} is not installed")
        work = self.dir / "work"
        work.mkdir()
        path = self.dir / "script.sh"
        path.write_text("set -e\n" + script + "\nfind . -type f | sort | while read f; do echo \"$f $(stat -c %a:%s \"$f\")\"; done\n")
        run = self.checked(self.record_single("sh", path, cwd=work))
        self.assertNotEqual(run.stdout, "")
        shutil.rmtree(work)
        work.mkdir()
        replay = self.checked(self.deja("replay", self.trace_path(), cwd=work))
        self.assertEqual(harness.without_report(replay.stdout), run.stdout)
        self.assertIn("the same as recorded", replay.stdout)
        self.assertEqual(os.listdir(work), [])

    def test_cp(self):
        self.replays("echo text > a; cp a b; cp b c; cat c")

    def test_cp_of_folders_with_everything(self):
        self.replays("mkdir from; echo 1 > from/one; ln -s one from/link; chmod 640 from/one; touch -d @1000 from/one; cp -a from to;"
                     " stat -c '%n %a %Y' to/one; readlink to/link")

    def test_rm_of_folders(self):
        self.replays("mkdir k; touch k/a; mkdir -p k/deep/er; touch k/deep/er/b; rm -r k; ls; echo gone")

    def test_tar_and_back(self):
        self.replays("mkdir t; echo 1 > t/one; echo 22 > t/two; tar cf t.tar t; rm -r t; tar tf t.tar; tar xf t.tar; cat t/one t/two",
                     ["tar"])

    def test_flock(self):
        self.replays("echo 1 > lock; flock lock echo held; (flock 9; echo again >> lock) 9< lock; cat lock", ["flock"])

    def test_git(self):
        self.replays("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=$PWD;"
                     " git init -q -b main .; echo text > file; git add file; git commit -q -m first; git log --format='%an %s';"
                     " git status --porcelain", ["git"])

    def test_standard_streams_by_name(self):
        self.replays("echo one > /dev/stdout; echo two > /dev/stderr; echo three > /dev/fd/1; sh -c 'echo four > /proc/self/fd/1'")

    def test_mv_ln_find_sort(self):
        self.replays("mkdir d; for i in 3 1 2; do echo $i > d/$i; done; mv d e; ln e/1 e/one; find e -type f | sort; cat e/* | sort -r;"
                     " sed -i s/2/two/ e/2; cat e/2; mktemp -p . x.XXXXXX > /dev/null; rmdir e 2>/dev/null || echo full")


if __name__ == "__main__":
    harness.main()
