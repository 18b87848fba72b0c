"""A trace of another user's: what it would run is shown, agreed to and fenced; what it says is only text."""
import json
import os
import pty
import random
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

MAKE_TRACE = harness.BUILD / "bin" / "make_foreign_trace"
STATIC = harness.BUILD / "tests" / "fence" / "outside_attempts_static"
NOT_RUN = "this user has not agreed to run its program"


def build_id(path):
    """Fields of an ELF file, as hexadecimal digits."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return next((line.split()[-1] for line in notes.splitlines() if "Build ID" in line), "")


class Foreign(harness.DejaTest):
    def environment(self, env):
        """With a state folder of the test's own; `stranger` gives it another one."""
        return super().environment({"XDG_STATE_HOME": self.dir / "state", **(env or {})})

    def stranger(self):
        """The environment of a user who has never seen the trace."""
        return {"XDG_STATE_HOME": self.dir / "strangers-state"}

    def forged(self, *arguments, program="/bin/sh", build=None, folder=None, text="x", name="forged.deja"):
        """A trace that was never recorded."""
        program = os.path.realpath(program)
        trace = self.dir / name
        build = build_id(program) if build is None else build
        self.checked(self.command([MAKE_TRACE, trace, program, build, folder or self.dir, text, *arguments]))
        return trace

    # ---- consent

    def test_ones_own_runs_as_it_is_and_a_copy_is_asked_about_once(self):
        run = self.checked(self.record_single("echo", "hello"))
        self.checked(self.deja("replay", self.trace_path()))
        bundle = self.dir / "own.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle))
        self.checked(self.deja("replay", bundle))
        self.checked(self.deja("unpack", bundle, "--out", self.dir / "unpacked.deja"))
        self.checked(self.deja("replay", self.dir / "unpacked.deja"))
        copy = self.dir / "copy.deja"
        shutil.copytree(self.trace_path(), copy)
        for trace, env in (copy, None), (bundle, self.stranger()):
            asked = self.checked(self.deja("replay", trace, env=env), harness.EXIT_USAGE)
            self.assertIn(NOT_RUN, asked.stderr)
            self.assertIn("--trust", asked.stderr)
            self.assertIn("program  " + os.path.realpath(shutil.which("echo")), asked.stderr)
            self.assertIn("arguments      echo hello", asked.stderr)
            self.assertIn(f"working in     {self.dir}", asked.stderr)
            self.assertIn("it may start   any program that it may read, in the same fence", asked.stderr)
            self.assertNotIn("  not recorded", asked.stderr)
            self.assertEqual(asked.stdout, "")
            trusted = self.checked(self.deja("replay", trace, "--trust", env=env))
            self.assertEqual(harness.without_report(trusted.stdout), run.stdout)
            self.assertNotIn("working in", self.checked(self.deja("replay", trace, env=env)).stderr)
        # Another bundle under the same name is another one.
        self.checked(self.record_single("echo", "goodbye", trace="other.deja"))
        bundle.unlink()
        self.checked(self.deja("pack", self.trace_path("other.deja"), "--out", bundle))
        self.assertIn("echo goodbye", self.checked(self.deja("replay", bundle, env=self.stranger()), harness.EXIT_USAGE).stderr)

    def test_parts_and_encrypted_bundles_of_ones_own_are_known(self):
        run = self.checked(self.record_single("echo", "hello"))
        parts = self.dir / "parts.zip"
        made = self.checked(self.deja("pack", self.trace_path(), "--split", "4k", "--out", parts, "--json")).json()["parts"]
        self.assertGreater(len(made), 1)
        again = self.checked(self.deja("replay", made[0]))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)
        self.checked(self.deja("unpack", made[0], "--out", self.dir / "joined.deja"))
        self.checked(self.deja("replay", self.dir / "joined.deja"))
        # A first part says nothing about the others, which may have been changed.
        last = Path(made[-1])
        own = last.read_bytes()
        last.write_bytes(own + b"x")
        self.assertIn(NOT_RUN, self.checked(self.deja("replay", made[0]), harness.EXIT_USAGE).stderr)
        last.write_bytes(own)
        self.checked(self.deja("replay", made[0]))
        last.chmod(0o666)
        self.assertIn(NOT_RUN, self.checked(self.deja("replay", made[0]), harness.EXIT_USAGE).stderr)
        last.chmod(0o600)
        # A stranger agrees to all parts together, once.
        stranger = self.stranger()
        self.assertIn(NOT_RUN, self.checked(self.deja("replay", made[0], env=stranger), harness.EXIT_USAGE).stderr)
        self.checked(self.deja("replay", made[0], "--trust", env=stranger))
        self.checked(self.deja("replay", made[0], env=stranger))

    def test_the_decrypted_file_is_the_packed_bundle(self):
        if shutil.which("gpg") is None:
            self.skipTest("gpg is not installed")
        home = self.dir / "keys"
        home.mkdir(mode=0o700)
        env = {"GNUPGHOME": home}
        self.checked(self.command(["gpg", "--batch", "--passphrase", "", "--quick-generate-key", "bug@example.org", "default", "default"],
                                  env=env))
        (home / "gpg.conf").write_text("trust-model always\n")
        self.checked(self.record_single("echo", "hello"))
        bundle = self.dir / "own.zip"
        self.checked(self.deja("pack", self.trace_path(), "--encrypt-to", "bug@example.org", "--out", bundle, env=env))
        self.assertEqual([path.name for path in self.dir.glob("own*")], ["own.zip.gpg"])
        self.checked(self.command(["gpg", "--batch", "--output", bundle, "--decrypt", f"{bundle}.gpg"], env=env))
        bundle.chmod(0o600)
        self.checked(self.deja("replay", bundle))
        self.assertIn(NOT_RUN, self.checked(self.deja("replay", bundle, env=self.stranger()), harness.EXIT_USAGE).stderr)

    def test_programs_of_children_are_shown_each_once(self):
        for name in "notes", "other notes":
            (self.dir / name).write_text(name)
        script = ("import os, subprocess, sys\nfor _ in range(3): subprocess.run(['/bin/cat', 'notes'])\n"
                  "subprocess.run(['/bin/cat', 'other notes'])\nsys.stdout.flush()\npid = os.fork()\nif pid == 0: os._exit(0)\n"
                  "os.waitpid(pid, 0)\n")
        self.checked(self.record_single(sys.executable, "-c", script))
        bundle = self.dir / "own.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle))
        shown = self.checked(self.deja("replay", bundle, env=self.stranger()), harness.EXIT_USAGE).stderr
        cat = os.path.realpath("/bin/cat")
        self.assertEqual(shown.count(f"a child runs   {cat}"), 2, shown)
        self.assertIn(f"a child runs   {cat} (3 processes)", shown)
        self.assertIn("arguments    /bin/cat notes", shown)
        self.assertIn("arguments    /bin/cat 'other notes'", shown)
        self.assertEqual(shown.count("a child runs"), 2, "a child that only forked runs what its parent does")

    def test_programs_without_a_recording_are_shown(self):
        shutil.copy(STATIC, self.dir / "static")
        arguments = ["./static", "none", ".", "0", "0", "0"]
        script = (f"import os, subprocess\nsubprocess.run({arguments} + ['of run', '--password', 'hunter2hunter2'])\n"
                  f"os.system('{' '.join(arguments)} shell')\npid = os.fork()\n"
                  f"if pid == 0: os.execv('./static', {arguments} + ['forked\\x1b[2J'])\nos.waitpid(pid, 0)\n"
                  f"subprocess.run(['/bin/bash', '-c', '/bin/true; :'])\nos.execv('./static', {arguments} + ['own', '/home/grace/data'])\n")
        (self.dir / "script.py").write_text(script)
        self.checked(self.record_single(sys.executable, "script.py"))
        bundle = self.dir / "own.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle))
        shown = self.checked(self.deja("replay", bundle, env=self.stranger()), harness.EXIT_USAGE).stderr
        self.assertIn("arguments    sh -c './static none . 0 0 0 shell'", shown)
        self.assertEqual(shown.count("a child runs   ./static\n"), 4, shown)
        for last in "shell", r"forked\x1b[2J", "own /home/grace/data":
            self.assertIn(f"arguments    ./static none . 0 0 0 {last}\n", shown)
        self.assertIn("arguments    ./static none . 0 0 0 'of run' --password deja-masked***\n", shown)
        self.assertNotIn("hunter2", shown)
        # bash forks, and its child does nothing before its exec.
        self.assertIn("not recorded   1 of the processes, which did nothing that is recorded;", shown)
        self.assertIn("the same fence is around them", shown)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn("replaced itself by exec of ./static", info)
        events = self.checked(self.deja("show", self.trace_path(), "--kind", "child,exit")).stdout
        self.assertIn(", runs ./static (./static none . 0 0 0 'of run' --password deja-masked***)", events)
        self.assertIn("exec ./static (./static none . 0 0 0 own /home/grace/data)", events)
        redacted = self.dir / "redacted.zip"
        self.checked(self.deja("pack", self.trace_path(), "--redact", "--out", redacted))
        events = self.checked(self.deja("show", redacted, "--kind", "child,exit")).stdout
        self.assertRegex(events, r"exec ./static \(./static none . 0 0 0 own /.*\)")
        self.assertNotIn("grace", events)
        self.checked(self.deja("replay", self.trace_path()))

    def test_serving_needs_more_than_consent_to_a_replay(self):
        """The program that is served has no fence, and may unpickle what it gets."""
        self.checked(self.record_single("echo", "hello"))
        self.assertIn('"rank":0', self.checked(self.deja("serve", self.trace_path(), stdin=subprocess.DEVNULL)).stdout)
        copy = self.dir / "copy.deja"
        shutil.copytree(self.trace_path(), copy)
        self.checked(self.deja("replay", copy, "--trust"))
        refused = self.checked(self.deja("serve", copy, stdin=subprocess.DEVNULL), harness.EXIT_USAGE)
        self.assertIn("unpickles objects that it is given; give --trust, or trust=True to deja.torch.TracePG", refused.stderr)
        self.assertEqual(refused.stdout, "")
        self.assertIn('"rank":0', self.checked(self.deja("serve", copy, "--trust", stdin=subprocess.DEVNULL)).stdout)

    def test_a_folder_that_others_can_write_to_is_asked_about_each_time(self):
        self.checked(self.record_single("echo", "hello"))
        self.trace_path().chmod(0o777)
        self.assertIn(NOT_RUN, self.checked(self.deja("replay", self.trace_path()), harness.EXIT_USAGE).stderr)

    def test_a_terminal_is_asked(self):
        trace = self.forged("-c", "echo ran")
        for answer, word in ("n\n", "nothing was run"), ("\n", "nothing was run"), ("y\n", "ran"):
            master, terminal = pty.openpty()
            process = self.start([harness.DEJA, "replay", trace], stdin=terminal, stdout=terminal, stderr=terminal)
            os.close(terminal)
            os.write(master, answer.encode())
            process.wait(harness.DEFAULT_TIMEOUT)
            shown = b""
            try:
                while piece := os.read(master, 4096):
                    shown += piece
            except OSError:
                pass  # the end of a terminal
            os.close(master)
            self.assertIn(b"run it? [y/N]", shown)
            self.assertIn(word.encode(), shown)
            self.assertEqual(b"ran\r\n" in shown, answer == "y\n", shown)

    def test_gdb_starts_nothing_without_consent(self):
        trace = self.forged("-c", "echo ran")
        run = self.checked(self.deja("replay", trace, "--gdb", "--gdb-command", "run"), harness.EXIT_USAGE)
        self.assertIn(NOT_RUN, run.stderr)
        self.assertNotIn("ran", run.stdout)

    # ---- what is run

    def test_programs_that_load_no_library_are_refused(self):
        bell = self.dir / "set-user-id"
        shutil.copy("/bin/true", bell)
        bell.chmod(0o4755)
        text = self.dir / "text"
        text.write_text("no program\n")
        text.chmod(0o755)
        for program, why in (STATIC, "is linked statically"), (bell, "set-user-id"), (text, "is no ELF program"):
            for build in "", build_id(bell):
                trace = self.forged(program=program, build=build, name=f"{program.name}-{build}.deja")
                for options in ["--trust"], ["--trust", "--force"], ["--trust", "--gdb", "--gdb-command", "run"]:
                    run = self.checked(self.deja("replay", trace, *options), harness.EXIT_FAILURE)
                    self.assertIn(why, run.stderr)

    def test_another_build_needs_force_and_a_missing_build_id_is_reported(self):
        other = self.forged("-c", "echo ran", build="00112233")
        self.assertIn("build id", self.checked(self.deja("replay", other, "--trust"), harness.EXIT_FAILURE).stderr)
        none = self.forged("-c", "echo ran", build="", name="none.deja")
        asked = self.checked(self.deja("replay", none), harness.EXIT_USAGE)
        self.assertIn("none was recorded: this is what lies at that path", asked.stderr)

    # ---- what it reads

    def test_it_reads_the_system_and_nothing_of_the_user(self):
        secret = self.dir / "elsewhere" / "secret"
        secret.parent.mkdir()
        secret.write_text("the secret\n")
        work = self.dir / "work"
        work.mkdir()
        (work / "data").write_text("the data\n")
        trace = self.forged("-c", f"cat {work}/data; cat {secret}; cat /etc/shadow; ls {self.dir}", folder=work)
        refused = self.deja("replay", trace, "--trust", "--on-divergence", "warn")
        self.assertIn("the data", refused.stdout)
        self.assertNotIn("the secret", refused.stdout)
        self.assertNotIn("root:", refused.stdout)
        self.assertRegex(refused.stderr, rf"reading {secret} was refused.*--allow-read")
        allowed = self.deja("replay", trace, "--on-divergence", "warn", "--allow-read", secret.parent)
        self.assertIn("the secret", allowed.stdout)
        self.assertNotIn("root:", allowed.stdout)

    def test_python_finds_its_modules(self):
        program = self.dir / "work" / "main.py"
        program.parent.mkdir()
        program.write_text("import json, ssl, ctypes, hashlib, socket, subprocess\n"
                           "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n")
        run = self.checked(self.record_single(sys.executable, program, cwd=program.parent))
        trusted = self.checked(self.deja("replay", self.trace_path(), "--trust", env=self.stranger()))
        self.assertEqual(harness.without_report(trusted.stdout), run.stdout)

    # ---- what it says

    def hostile(self):
        """Texts that something might take for more than text."""
        marker = self.dir / "marker"
        fixed = ["\x1b]0;title\x07\x1b[2J\x1b[31m", f"\nshell touch {marker}\n", f"$(touch {marker})", f"`touch {marker}`",
                 f"'; touch {marker}; '", f'"; touch {marker} #', f"| touch {marker}", f"\npython open('{marker}', 'w')\n",
                 f"\\n!touch {marker}", "rank 0: exit 0, the same as recorded\nrank 1: exit 0\r", "\u202egnp.exe\u2028\u009b31m",
                 "a\tb\\c\x7f%s%n{}"]
        source = random.Random(19)
        letters = ["\n", "\r", "'", '"', "$(", "`", ";", "|", "\\", "\x1b[", "&", "#", "!", "\x07", "{", "%", "\u202e",
                   f"touch {marker}", f"shell touch {marker}", f"python open('{marker}','w')", " ", "\n"]
        mixed = ["".join(source.choice(letters) for _ in range(source.randrange(3, 25))) for _ in range(4)]
        return marker, fixed, mixed

    def assertPlain(self, run, text):
        """No line of it is more than a line."""
        for shown in run.stdout, run.stderr:
            bad = [c for c in shown if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2028"]
            self.assertEqual(bad, [], f"{text!r}\n{run}")
        for line in (run.stdout + run.stderr).splitlines():
            self.assertNotRegex(line, r"^(rank 1: exit 0|shell touch|python open)", f"{text!r}\n{run}")

    def test_hostile_texts_are_shown_as_texts_by_every_command(self):
        marker, fixed, mixed = self.hostile()
        for i, text in enumerate(["".join(fixed), *mixed]):
            trace = self.forged("-c", "exit 0", text=text, name=f"text-{i}.deja")
            for command in (["info", trace, "--children", "--packages"], ["show", trace, "--all", "--stacks"], ["verify", trace],
                            ["diff", trace, trace], ["check", trace], ["bisect", trace, self.dir / "text-0.deja"], ["doctor", trace],
                            ["replay", trace], ["pack", trace, "--out", self.dir / f"{i}.zip"]):
                run = self.deja(*command)
                self.assertPlain(run, text)
                self.assertLess(run.code, 5, f"{text!r}\n{run}")
            for command in ["info", trace], ["verify", trace], ["diff", trace, trace]:
                run = self.deja(*command, "--json")
                self.assertPlain(run, text)
                json.loads(run.stdout)
            events = self.deja("show", trace, "--all", "--json")
            self.assertIn(text, [json.loads(line).get("text") for line in events.stdout.splitlines()], events)
            self.assertFalse(marker.exists(), text)

    def test_hostile_texts_in_gdb(self):
        """As name of a folder, a file, a variable and an argument, in a session that starts the program twice."""
        marker, fixed, mixed = self.hostile()
        program = os.path.realpath("/bin/true")
        for i, text in enumerate([fixed[1] + fixed[7], "".join(fixed[2:7]), fixed[8], mixed[0]]):
            folder = self.dir / f"gdb-{i}" / text.replace("/", "_")
            try:
                folder.mkdir(parents=True)
            except OSError:
                folder = self.dir
            trace = self.forged(text, text=text, program=program, folder=folder, name=f"gdb-{i}.deja")
            run = self.deja("replay", trace, "--trust", "--gdb", "--gdb-command", "run", "--gdb-command", "deja where",
                            "--gdb-command", "deja marks", "--gdb-command", "run")
            self.assertFalse(marker.exists(), f"{text!r}\n{run}")
            self.assertNotIn("Traceback", run.stderr, f"{text!r}\n{run}")
            self.assertNotIn("\x1b]0;title", run.stdout, f"{text!r}\n{run}")

    # ---- what is one trace

    def test_swapped_and_copied_ranks_are_not_sound(self):
        self.checked(self.record("replay_trainer", n=3))
        first, second = (self.trace_path() / f"rank-0000{rank}" for rank in (0, 1))
        first.rename(self.dir / "aside")
        second.rename(first)
        (self.dir / "aside").rename(second)
        swapped = self.checked(self.deja("verify", self.trace_path()), harness.EXIT_DATA_LOSS)
        self.assertIn("rank 0: events.deja at byte 0: its header says rank 1", swapped.stdout)
        self.assertIn("rank 1: events.deja at byte 0: its header says rank 0", swapped.stdout)
        self.assertIn("its header says rank 1", self.checked(self.replay(0), harness.EXIT_DATA_LOSS).stderr)
        self.checked(self.record("replay_trainer", n=3, trace="other.deja"))
        shutil.rmtree(second)
        shutil.copytree(self.trace_path("other.deja") / "rank-00001", second)
        self.assertIn("names another job", self.deja("verify", self.trace_path()).stdout)

    def test_payloads_in_place_of_events_are_not_the_same(self):
        self.checked(self.record("replay_trainer"))
        folder = self.trace_path() / "rank-00000"
        shutil.copy(next(folder.glob("payloads*.deja")), folder / "events.deja")
        run = self.checked(self.replay(0), harness.EXIT_DATA_LOSS)
        self.assertNotIn("the same", run.stdout + run.stderr)
        self.assertIn("holds payloads", run.stderr)

    def test_modes_are_the_users_own_whatever_the_umask_is(self):
        for mask in 0, 0o022:
            trace = f"umask-{mask}.deja"
            self.checked(self.command(["sh", "-c", f'umask {mask:o}; exec "$0" "$@"',
                                       *self.record_argv("replay_trainer", trace=trace)]))
            bundle = self.dir / f"{trace}.zip"
            unpacked = self.dir / f"again-{mask}.deja"
            self.checked(self.command(["sh", "-c", f'umask {mask:o}; "$0" pack "$1" && "$0" unpack "$1.zip" --out "$2"',
                                       harness.DEJA, self.trace_path(trace), unpacked]))
            for path in [bundle] + [p for root in (self.trace_path(trace), unpacked) for p in [root, *root.rglob("*")]]:
                self.assertEqual(oct(path.stat().st_mode & 0o7777), "0o700" if path.is_dir() else "0o600", path)


if __name__ == "__main__":
    harness.main()
