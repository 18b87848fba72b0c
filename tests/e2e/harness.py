"""Verbs for end-to-end tests of Deja: launch, record, replay, show, compare.

A case is a subclass of DejaTest with one folder of its own (`self.dir`). When a test fails, its folder is kept, and
its commands are printed in a form that can be pasted into a shell. Standard library only. DEJA_BUILD_DIR names the
build tree (default: build/ of the checkout). With DEJA_CHECK_LOG=FILE `deja check` looks at each new recording. What
it finds is appended to FILE as a line of JSON (tests/e2e/check_log.py counts them).

    import harness

    class Ring(harness.DejaTest):
        def test_replays(self):
            run = self.record("ring", ["--steps", "3"], n=4)
            self.assertEqual(run.code, 0)
            self.assertSameLines(self.launch("ring", ["--steps", "3"], n=4).stdout, run.stdout)
            self.assertEqual(self.replay(2).code, 0)

    if __name__ == "__main__":
        harness.main()
"""
import atexit
import dataclasses
import json
import os
import re
import shlex
import shutil
import socket
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_log
import stuck

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build")).resolve()
DEJA = BUILD / "bin" / "deja"
DEFAULT_TIMEOUT = 120

def own_folder(prefix):
    """A folder of this process, removed at its end; those of test processes that were killed go now."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        pid = left.name[len(prefix):].split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    made = tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


# Where Deja remembers which traces are the user's own.
STATE = own_folder("deja-state-")

EXIT_OK, EXIT_FAILURE, EXIT_USAGE, EXIT_DATA_LOSS, EXIT_DIVERGED = range(5)


@dataclasses.dataclass
class Run:
    """One finished command. `code` is as a shell gives it: 128 + signal for a signal."""
    argv: list
    code: int
    stdout: str
    stderr: str

    def json(self):
        """The JSON documents of stdout: one object or array, or the last line of mixed output."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            return json.loads(self.stdout.strip().splitlines()[-1])

    def json_lines(self):
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]

    def deja_lines(self):
        """What Deja itself said on stderr."""
        return [line for line in self.stderr.splitlines() if line.startswith("deja")]

    def __str__(self):
        return (f"$ {shlex.join(map(str, self.argv))}\nexit code {self.code}\n"
                f"--- stdout\n{self.stdout}--- stderr\n{self.stderr}---")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def app(name):
    """Path of a test program, an example, or any path as it is."""
    if os.sep in str(name):
        return str(name)
    for folder in (BUILD / "tests" / "apps", BUILD / "examples" / name, BUILD / "examples" / "digits",
                   BUILD / "tests" / "zoo", BUILD / "bin"):
        if (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(str(name))
    if found:
        return found
    raise FileNotFoundError(f"no test program '{name}' in {BUILD}/tests/apps; build it first")


def app_names():
    """All programs of tests/e2e/apps that are built."""
    folder = BUILD / "tests" / "apps"
    return sorted(p.name for p in folder.iterdir()
                  if p.is_file() and os.access(p, os.X_OK) and ".so" not in p.name)


def shm_names():
    """What is in /dev/shm, for tests that nothing stays there."""
    try:
        return set(os.listdir("/dev/shm"))
    except FileNotFoundError:
        return set()


def runs(pid):
    """The process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def comparable(text):
    """Output without what differs between two good runs: addresses, times, ports; ranks' lines sorted."""
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"\b\d+\.\d+ m?s\b", "… s", text)
    text = re.sub(r"\b127\.0\.0\.1:\d+", "127.0.0.1:…", text)
    return sorted(text.splitlines())


def without_report(stdout):
    """What a replayed program printed, without the line that `deja replay` adds."""
    return "".join(stdout.splitlines(True)[:-1])


class DejaTest(unittest.TestCase):
    maxDiff = None

    def run(self, result=None):
        self._commands = []
        self.dir = Path(tempfile.mkdtemp(prefix="deja-e2e-"))
        before = len(result.failures) + len(result.errors) if result else 0
        try:
            return super().run(result)
        finally:
            failed = result is not None and len(result.failures) + len(result.errors) > before
            if failed and self._commands:
                print(f"\n{self.id()} failed; its folder is kept. To reproduce:", file=sys.stderr)
                for line in self._commands:
                    print(f"  {line}", file=sys.stderr)
            if not failed:
                subprocess.run(["chmod", "-R", "u+rwx", str(self.dir)], check=False)
                shutil.rmtree(self.dir, ignore_errors=True)

    # ---- running things

    def environment(self, env):
        full = {k: v for k, v in os.environ.items() if not k.startswith("DEJA_")}
        full["XDG_STATE_HOME"] = STATE
        full.update({k: str(v) for k, v in (env or {}).items()})
        return full

    def start(self, argv, env=None, cwd=None, **kwargs):
        """Starts a command in a process group of its own, without waiting; for tests that kill it."""
        argv = [str(a) for a in argv]
        cwd = str(cwd or self.dir)
        assigned = "".join(f"{k}={shlex.quote(str(v))} " for k, v in (env or {}).items())
        self._commands.append(f"cd {shlex.quote(cwd)} && {assigned}{shlex.join(argv)}")
        kwargs.setdefault("bufsize", 0)  # a test may read lines and communicate() the rest
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(argv, env=self.environment(env), cwd=cwd, start_new_session=True, **kwargs)
        process.folder = cwd
        return process

    def finish(self, process, timeout=DEFAULT_TIMEOUT):
        """Waits for what start() started; kills its whole group when the time is over."""
        doing = None
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            doing = stuck.describe(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        if doing is not None:
            self.fail(f"no end after {timeout} s: {shlex.join(process.args)}\n"
                      f"{(out or b'').decode(errors='replace')}\n{(err or b'').decode(errors='replace')}\n{doing}")
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        check_log.look_at(self, DEJA, process.args, process.folder)
        return Run(process.args, code, (out or b"").decode(errors="replace"),
                   (err or b"").decode(errors="replace"))

    def command(self, argv, env=None, cwd=None, timeout=DEFAULT_TIMEOUT, **kwargs):
        """Runs any command to its end."""
        return self.finish(self.start(argv, env=env, cwd=cwd, **kwargs), timeout=timeout)

    def deja(self, *args, **kwargs):
        return self.command([DEJA, *args], **kwargs)

    # ---- verbs

    def trace_path(self, trace="run.deja"):
        return self.dir / trace

    def launch_argv(self, program, args=(), n=4, options=()):
        return [DEJA, "launch", "-n", n, *options, "--", app(program), *args]

    def record_argv(self, program, args=(), n=4, level="full", trace="run.deja", options=()):
        return [DEJA, "record", "--loopback", "-n", n, "--level", level, "--out", self.trace_path(trace),
                *options, "--", app(program), *args]

    def launch(self, program, args=(), n=4, options=(), **kwargs):
        """The job without Deja."""
        return self.command(self.launch_argv(program, args, n, options), **kwargs)

    def record(self, program, args=(), n=4, level="full", trace="run.deja", options=(), **kwargs):
        """The job under `deja record --loopback`."""
        return self.command(self.record_argv(program, args, n, level, trace, options), **kwargs)

    def record_single(self, *command, options=(), trace="run.deja", **kwargs):
        """One command, whether it makes a communicator or not."""
        return self.deja("record", "--single", "--out", self.trace_path(trace), *options, "--", *command, **kwargs)

    def replay(self, rank, trace="run.deja", options=(), **kwargs):
        return self.deja("replay", self.trace_path(trace), "--rank", rank, *options, **kwargs)

    def info_json(self, trace="run.deja"):
        return self.checked(self.deja("info", self.trace_path(trace), "--json")).json()

    def show_json(self, *options, trace="run.deja"):
        """Events as a list of dictionaries."""
        return self.checked(self.deja("show", self.trace_path(trace), "--json", *options)).json_lines()

    def damage_checkpoint(self, step, name="weights", trace="run.deja", rank=0):
        """Changes a byte of what the rank's checkpoint of that step has under that name, whichever rank keeps it."""
        number = next(e["checkpoint"] for e in self.show_json("--rank", rank, "--kind", "checkpoint", trace=trace) if e["step"] == step)
        wanted = next(bytes.fromhex(e["tensor"]["hash"]) for e in self.show_json("--rank", rank, "--kind", "snapshot", trace=trace)
                      if e.get("checkpoint") == number and e["name"] == name)
        found = 0
        for path in self.trace_path(trace).glob("rank-*/payloads*.deja"):
            file = bytearray(path.read_bytes())
            at = file.find(wanted)
            while at >= 0:
                found += 1
                file[at + len(wanted) + 40] ^= 1
                at = file.find(wanted, at + 1)
            path.write_bytes(file)
        self.assertGreater(found, 0)

    def rank_folders(self, trace="run.deja"):
        path = self.trace_path(trace)
        return sorted(p.name for p in path.glob("rank-*")) if path.is_dir() else []

    # ---- assertions

    def checked(self, run, code=0):
        self.assertEqual(run.code, code, f"\n{run}")
        return run

    def assertPrintsTheSameAgain(self, *command, replays, options=()):
        """Recorded once; each replay prints the same."""
        run = self.checked(self.record_single(*command, options=options))
        for _ in range(replays):
            again = self.checked(self.replay(0))
            self.assertEqual(without_report(again.stdout), run.stdout, str(again))
        return run

    def assertReplaysThoughRandom(self, *command, replays):
        run = self.assertPrintsTheSameAgain(*command, replays=replays)
        self.assertNotEqual(run.stdout, self.checked(self.command(command)).stdout, "the program does the same by itself")

    def assertSameLines(self, first, second, message=None):
        """The same lines in any order: ranks write to one pipe."""
        self.assertEqual(comparable(first), comparable(second), message)

    def assertSameBehaviour(self, plain, deja_run):
        """Same exit code, same stdout; stderr differs by Deja's own lines only."""
        self.assertEqual(plain.code, deja_run.code, f"\n{plain}\n{deja_run}")
        self.assertSameLines(plain.stdout, deja_run.stdout, f"\n{plain}\n{deja_run}")

        def others(run):
            return comparable("\n".join(x for x in run.stderr.splitlines() if not x.startswith("deja")))
        self.assertEqual(others(plain), others(deja_run), f"\n{plain}\n{deja_run}")

    def assertVerifies(self, trace="run.deja"):
        self.checked(self.deja("verify", self.trace_path(trace)))


def main():
    if not DEJA.is_file():
        print(f"{DEJA} is not there: build the project first, or set DEJA_BUILD_DIR", file=sys.stderr)
        sys.exit(1)
    # A shell starts what runs in its background with Ctrl-C ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
