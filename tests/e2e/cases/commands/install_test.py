"""`cmake --install` gives a Deja that works from any place: everything it needs is in its own folder."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from installed import InstalledDeja  # noqa: E402

STEPS = 6


class Installed(InstalledDeja):
    def setUp(self):
        staged = self.dir / "staged"
        self.checked(self.command(["cmake", "--install", harness.BUILD, "--prefix", staged]))
        # Moved afterwards: nothing may know the prefix, nor the build tree.
        self.prefix = staged
        self.move("moved")

    def move(self, name):
        self.use(self.prefix.rename(self.dir / name))

    def test_a_recording_is_made_and_replayed(self):
        self.checked(self.launch("replay_trainer", ["--steps", STEPS], n=2))
        recorded = self.checked(self.record("replay_trainer", ["--steps", STEPS], n=2))
        info = self.info_json()
        self.assertEqual([(r["rank"], r["steps"]) for r in info["ranks"]], [(0, STEPS), (1, STEPS)])
        replay = self.checked(self.replay(1))
        weights, = [line for line in recorded.stdout.splitlines() if line.startswith("rank 1 ")]
        self.assertIn(weights, replay.stdout.splitlines())

    def test_its_own_libraries_are_used(self):
        listing = ["sh", "-c", f"LD_TRACE_LOADED_OBJECTS=1 '{harness.app('replay_trainer')}'"]
        libraries = str(self.prefix / "lib")
        for argv in ([harness.DEJA, "launch", "-n", 1, "--", *listing],
                     self.record_argv("sh", listing[1:], n=1)):
            run = self.checked(self.command(argv))
            loaded = re.findall(r"(?m)(\S*libnccl\S*) => (.*) \(0x", run.stdout)
            self.assertEqual([name for name, _ in loaded], ["libnccl.so.2"], run)
            self.assertTrue(os.path.realpath(loaded[0][1]).startswith(libraries), run)
        self.assertRegex(run.stdout, re.escape(libraries) + r".*/libdeja_record\.so")

    def test_gdb_has_the_commands(self):
        self.checked(self.record("replay_trainer", ["--steps", STEPS], n=2))
        commands = self.dir / "commands"
        commands.write_text("help deja\nquit\n")
        with commands.open() as stdin:
            run = self.replay(0, options=["--gdb"], stdin=stdin)
        self.assertIn("deja where", run.stdout, run)

    def test_a_place_that_the_loader_cannot_name(self):
        self.move("a place")
        run = self.checked(self.record("replay_trainer", n=2), harness.EXIT_FAILURE)
        self.assertRegex(run.stderr, r"deja: .*a place/.*space or a colon")
        self.assertEqual(run.stdout, "")

    def test_nothing_names_the_build_tree(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and (path.suffix == ".so" or path.parent.name == "bin"):
                dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
                self.assertNotRegex(dynamic, "R(UN)?PATH", path)

    def test_headers_and_documents(self):
        for name in ("deja.h", "deja.hpp", "deja/nccl/nccl.h"):
            self.assertTrue((self.prefix / "include" / name).is_file(), name)
        self.assertTrue(list(self.prefix.rglob("LICENSE")))

    def test_manual_pages_and_completions(self):
        share = self.prefix / "share"
        pages = {path.name for path in (share / "man" / "man1").iterdir()}
        commands = [command["name"] for command in self.checked(self.deja("help", "--json")).json()["commands"]]
        self.assertEqual(pages, {"deja.1", *(f"deja-{name}.1" for name in commands)})
        for path, shell in (("bash-completion/completions/deja", "bash"), ("zsh/site-functions/_deja", "zsh"),
                            ("fish/vendor_completions.d/deja.fish", "fish")):
            self.assertEqual((share / path).read_text(), self.checked(self.deja("completion", shell)).stdout)
    def test_a_users_program_is_built_in_a_line(self):
        program = self.built_by_pkg_config()
        self.assertLoadsItsOwnLoopback(program)
        self.assertRecordsAndReplays(program)

    def test_a_users_program_is_built_by_the_cmake_package(self):
        program = self.built_by_cmake()
        self.assertLoadsItsOwnLoopback(program)
        self.assertRecordsAndReplays(program)

    def test_one_version(self):
        self.assertOneVersion()

    def test_nothing_is_left_when_it_is_removed(self):
        mine = self.prefix / "share" / "mine"
        mine.write_text("")
        self.checked(self.record_single("python3", "-c", "import deja; deja.step(1)"))  # Python compiles Deja's side
        self.checked(self.command(["cmake", "-P", self.prefix / "share" / "deja" / "uninstall.cmake"]))
        self.assertEqual(sorted(self.prefix.rglob("*")), [mine.parent, mine])
        mine.unlink()
        mine.parent.rmdir()
        self.prefix.rmdir()


if __name__ == "__main__":
    harness.main()
