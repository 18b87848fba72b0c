"""Every nondeterministic input: one small program each, unseeded by anything else, recorded once and replayed several
times where the machine looks different. What it prints must be equal byte for byte. docs/DETERMINISM.md has the table.

DEJA_REPLAYS says how often each row is replayed (default 20: a replay of most takes 50 ms).
"""
import dataclasses
import os
import re

import shutil
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
sys.path.insert(0, str(harness.ROOT / "tests" / "conformance" / "trace"))
import independent_reader  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "20"))
OTHER_HOST = "another-host"


def works(*argv):
    """Whether a command can change the view here: containers forbid some."""
    return subprocess.run([*argv, "true"], capture_output=True, check=False).returncode == 0


# Ways to look at the machine: what goes in front of the replay's command, if that works here.
VIEWS = {
    "as it was": [],
    "one CPU": ["taskset", "-c", "0"],
    "another host": ["unshare", "-u", "sh", "-c", f'hostname {OTHER_HOST}; exec "$@"', "sh"],
    "other process ids": ["unshare", "-pf", "--mount-proc"],
    "another umask": ["sh", "-c", 'umask 077; exec "$@"', "sh"],
    "another environment": ["env", "-i", "PATH=/usr/bin:/bin", "LANG=C", "USER=somebody", f"XDG_STATE_HOME={harness.STATE}"],
    "no network": ["unshare", "-n"],
}


@dataclasses.dataclass
class Row:
    """A program and how it is recorded. `command` gets the test's folder as {dir}."""
    command: list
    views: tuple = ("as it was",)
    removed: tuple = ()       # below the test's folder, before it is replayed
    moved: bool = False       # replayed from another working directory
    options: tuple = ()       # of deja record
    replay_options: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)


class Matrix(harness.DejaTest):
    """A row is a test method that calls check()."""

    def view(self, name):
        prefix = VIEWS[name]
        return prefix if not prefix or works(*prefix) else None

    def check(self, row):
        command = [part.replace("{dir}", str(self.dir)) for part in row.command]
        command[0] = harness.app(command[0])
        recorded = self.checked(self.deja("record", "--single", "--out", self.trace_path(), *row.options, "--",
                                          *command, env=row.env))
        for name in row.removed:
            path = self.dir / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in row.views:
            prefix = self.view(name)
            if prefix is None:
                continue
            for _ in range(REPLAYS):
                with self.subTest(view=name):
                    run = self.command([*prefix, harness.DEJA, "replay", self.trace_path(), "--rank", 0,
                                        *row.replay_options], cwd="/" if row.moved else None)
                    self.checked(run)
                    replayed = "".join(run.stdout.splitlines(True)[:-1])
                    self.assertEqual(replayed, recorded.stdout, f"\n{run}")
        return recorded

    def check_changes(self, row):
        """And without Deja the program prints something else each time, or the row would prove nothing."""
        recorded = self.check(row)
        command = [part.replace("{dir}", str(self.dir)) for part in row.command]
        self.assertNotEqual(self.command([harness.app(command[0]), *command[1:]], env=row.env).stdout, recorded.stdout)


def with_other_header(data, change):
    """A file of a trace with another header, and without the frames at its end that say where the others are."""
    def frame(kind, packed, payload, raw):
        head = independent_reader.SYNC + struct.pack("<BBHIIQ", kind, packed, 0, len(payload), raw,
                                                     independent_reader.xxh64(payload))
        return head + struct.pack("<Q", independent_reader.xxh64(head)) + payload

    out, at = data[:len(independent_reader.MAGIC)], len(independent_reader.MAGIC)
    while at < len(data):
        header = independent_reader.parse_header(data, at)
        end = at + independent_reader.HEADER_BYTES + header[2]
        if header[0] == 1:
            raw = change(independent_reader.parse_payload(data, at, header))
            out += frame(1, 0, raw, len(raw))
        elif header[0] in (2, 3):
            out += data[at:end]
        at = end
    return out


class Entropy(Matrix):
    def test_functions_and_devices(self):
        self.check_changes(Row(["determinism_entropy"], views=("as it was", "other process ids", "one CPU")))

    def test_descriptors_of_devices_that_are_inherited(self):
        script = ("import os, subprocess, sys\nprint(sys.stdin.buffer.raw.read(6), os.read(int(sys.argv[1]), 6))\n"
                  "file = open('/dev/urandom', 'rb', buffering=0)\n"
                  "for options in {'stdin': file}, {'pass_fds': (file.fileno(),)}:\n"
                  "    name = '-' if 'stdin' in options else f'/proc/self/fd/{file.fileno()}'\n"
                  "    print(subprocess.run(['head', '-c', '6', name], stdout=subprocess.PIPE, **options).stdout)\n"
                  "print(file.read(6))\n")
        with open("/dev/urandom", "rb") as one, open("/dev/random", "rb") as other:
            run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                                         script, other.fileno(), stdin=one, pass_fds=(other.fileno(),)))
        self.assertEqual(len(run.stdout.splitlines()), 4)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_static_libstdcxx(self):
        self.check_changes(Row(["determinism_entropy_static"]))

    def test_names_of_temporary_files(self):
        (self.dir / "files").mkdir()
        self.check_changes(Row(["determinism_temporary", "{dir}/files"], views=("as it was", "another umask")))

    def test_temporary_files_of_another_run_are_not_in_the_way(self):
        (self.dir / "files").mkdir()
        run = self.check(Row(["determinism_temporary", "{dir}/files"]))
        name = re.search(r"mkstemp (\S+)", run.stdout).group(1)
        self.assertTrue((self.dir / "files" / name).exists())  # of the recorded run
        self.assertEqual((self.dir / "files" / name).read_text(), name)

    def test_python(self):
        script = """
import os, random, secrets, tempfile, uuid
print(os.urandom(8).hex(), random.random(), secrets.token_hex(4), uuid.uuid4(), uuid.uuid1(), hash("text"))
print([str(x) for x in {"a", "b", "c", "d", "e"}])
with tempfile.NamedTemporaryFile() as file:
    print(file.name, os.path.realpath(file.name), tempfile.mkdtemp())
"""
        self.check_changes(Row([sys.executable, "-c", script], views=("as it was", "another environment")))


class Machine(Matrix):
    VIEWS = ("as it was", "one CPU", "another host", "other process ids", "another umask", "another environment")

    def test_every_question(self):
        run = self.check(Row(["determinism_machine", "an argument", "--flag"], views=self.VIEWS, moved=True,
                             env={"SOME_VARIABLE": "its value", "LC_ALL": "C"}))
        self.assertIn("env SOME_VARIABLE=its value\n", run.stdout)
        self.assertIn(f"cwd {self.dir}\n", run.stdout)
        self.assertIn("signals to itself 3\n", run.stdout)
        cpus = len(os.sched_getaffinity(0))
        self.assertIn(f"get_nprocs {os.cpu_count()} ", run.stdout)
        self.assertIn(f"sched_getaffinity 0 {cpus}\n", run.stdout)

    def test_numbers_of_descriptors(self):
        script = ("import os, socket, sys\nprint(os.open('/etc/passwd', 0), socket.socket().fileno(), os.dup(0), os.pipe())\n"
                  "sys.stdout.flush()\nif os.fork():\n    os.wait()\nprint(os.open('/etc/passwd', 0), os.pipe())\n")
        self.check(Row([sys.executable, "-c", script]))

    def test_its_own_folder_in_proc_by_its_number(self):
        script = """
import os
own = f"/proc/{os.getpid()}"
print(os.stat(own).st_mode, os.lstat(own).st_mode, open(own + "/oom_score_adj").read(), os.path.exists(own + "/fd/0"))
print("0" in os.listdir(own + "/fd"), os.access(own, os.R_OK))
"""
        self.check(Row([sys.executable, "-c", script], views=("as it was", "other process ids")))

    def test_a_recording_does_not_change_the_answers(self):
        def stable(text):
            return re.sub(r"(?m)^(pid|by number|sysinfo|pages|getloadavg|main is at|\S*: (Pid|PPid):|.*cpu MHz|"
                          r".*bogomips|env (_|PWD|OLDPWD)).*\n", "", text)
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--",
                                     harness.app("determinism_machine")))
        plain = self.command([harness.app("determinism_machine")])
        self.assertEqual(stable(run.stdout), stable(plain.stdout))

    def test_the_way_to_deja_s_python_side_does_not_show(self):
        """Whether PYTHONPATH is set or not: no process sees another one, and every Python finds what it would have
        found."""
        script = """
import ctypes, os, subprocess, sys
asked = ctypes.CDLL(None).getenv
asked.restype = ctypes.c_char_p
own = [entry for entry in sys.path[1:] if entry != OURS]
print(os.environ.get("PYTHONPATH"), asked(b"PYTHONPATH"), own)
sys.stdout.flush()
inner = "import sys; print([entry for entry in sys.path if entry != '" + OURS + "'])"
subprocess.run(["env", "-i", sys.executable, "-c", inner])
subprocess.run([sys.executable, "-I", "-c", inner])
subprocess.run(["sh", "-c", 'echo "${PYTHONPATH-unset}"; env | grep ^PYTHONPATH; "$0" -c "$1"', sys.executable, inner])
if hasattr(ctypes.CDLL(None), "deja_impl_mode"):
    for env in {}, None:
        subprocess.run([sys.executable, "-c", "import sys; assert 'deja' in sys.modules"], env=env, check=True)
""".replace("OURS", repr(str(harness.ROOT / "python")))
        for variables in {}, {"PYTHONPATH": "/one:/other"}:
            plain = self.command([sys.executable, "-c", script], env=variables)
            run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c", script,
                                         env=variables))
            self.assertEqual(run.stdout, plain.stdout)
            self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)
            shutil.rmtree(self.trace_path())

    def test_python(self):
        script = """
import getpass, locale, multiprocessing, os, platform, resource, socket, sys
print(os.cpu_count(), sorted(os.sched_getaffinity(0)), multiprocessing.cpu_count(), os.getpid(), os.getppid())
print(platform.platform(), platform.node(), platform.machine(), platform.uname(), platform.freedesktop_os_release())
print(socket.gethostname(), getpass.getuser(), os.path.expanduser("~"), os.getuid(), os.getgroups())
print(sys.argv, os.getcwd(), sorted(k for k in os.environ if not k.startswith(("DEJA_", "LD_"))))
print(os.sysconf("SC_PHYS_PAGES"), os.uname(), locale.setlocale(locale.LC_ALL, ""), sys.flags.hash_randomization)
print(resource.getrlimit(resource.RLIMIT_NOFILE), sys.stdout.isatty(), hash("text"))
print(open("/proc/cpuinfo").read().count("processor"), open("/proc/sys/kernel/hostname").read())
"""
        self.check(Row([sys.executable, "-c", script, "argument"], views=self.VIEWS, moved=True))

    def test_unwritten_memory(self):
        """It holds what was there before, which is not the same in a replay, unless it is filled."""
        self.assertRegex(self.checked(self.command([harness.app("determinism_unwritten")])).stdout, r"[1-9]\d* left")
        for tunables in {}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}:
            recorded = self.check(Row(["determinism_unwritten"], options=("--fill-memory",), env=tunables))
            self.assertNotRegex(recorded.stdout, r"[1-9]\d* left")
            shutil.rmtree(self.trace_path())

    def test_another_user(self):
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if os.geteuid() != 0 or not works(*prefix):
            self.skipTest("only the superuser can be somebody else")
        script = "import os, pwd; print(os.getuid(), os.geteuid(), os.getgid(), pwd.getpwuid(os.getuid()))"
        python = "/usr/bin/python3"  # where others may go
        if not os.path.exists(python):
            self.skipTest("there is no python3 of the system")
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", python, "-c", script))
        subprocess.run(["chmod", "-R", "a+rX", self.dir], check=True)
        state = self.dir / "others-state"
        state.mkdir()
        state.chmod(0o777)
        again = self.command([*prefix, harness.DEJA, "replay", self.trace_path(), "--rank", 0, "--trust"],
                             env={"HOME": "/", "TMPDIR": "/tmp", "XDG_STATE_HOME": state})
        if again.code == 126 or "Permission denied" in again.stderr:
            self.skipTest("somebody else may not run what is below here")
        self.checked(again)
        self.assertEqual("".join(again.stdout.splitlines(True)[:-1]), run.stdout)

    def test_a_cpu_that_can_less_is_named(self):
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", "true"))
        self.assertEqual(run.code, 0)
        info = self.info_json()
        self.assertTrue(info["cpu_model"])
        self.assertIn("sse4_2", info["cpu_features"].split())
        self.assertGreater(info["memory_bytes"], 1 << 20)
        self.assertNotIn("this CPU is not", self.replay(0).stderr)
        # The recording of a CPU that has sse9_9 and no sse4_2.
        rank = self.trace_path() / "rank-00000"
        for file in rank.iterdir():
            file.write_bytes(with_other_header(file.read_bytes(), lambda header: header
                                               .replace(b"sse4_2", b"sse9_9")
                                               .replace(info["cpu_model"].encode(), b"Z" * len(info["cpu_model"]))))
        said = self.replay(0).stderr
        self.assertRegex(said, r"this CPU is not the recorded one \(Z+; here: " + re.escape(info["cpu_model"]) + r";")
        self.assertIn("missing here: sse9_9; new here: sse4_2)", said)
        self.assertIn("OPENBLAS_CORETYPE", said)


class Writes(Matrix):
    """What a replay may change, and what it says when it may not."""

    def recorded(self, *command):
        self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", *command))

    def test_children_write_to_the_overlay_too(self):
        (self.dir / "kept").write_text("as it was\n")
        command = ["sh", "-c", "echo more >> kept; rm -f gone; mkdir made; echo new > made/file; cat kept made/file; "
                               "mv made/file moved; ls made; cat moved; truncate -s 3 kept; cat kept; pwd; "
                               "realpath moved; readlink -f made; cd made; pwd -P; ln -s ../moved link; realpath link"]
        (self.dir / "gone").write_text("x")
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", *command))
        self.assertIn(f"{self.dir}/moved\n{self.dir}/made\n{self.dir}/made\n{self.dir}/moved\n", run.stdout)
        shutil.rmtree(self.dir / "made")
        (self.dir / "moved").unlink()
        (self.dir / "kept").write_text("as it was\n")
        (self.dir / "gone").write_text("x")
        names = set(os.listdir(self.dir))
        again = self.checked(self.replay(0))
        self.assertEqual("".join(again.stdout.splitlines(True)[:-1]), run.stdout, str(again))
        self.assertEqual((self.dir / "kept").read_text(), "as it was\n")
        self.assertEqual(set(os.listdir(self.dir)), names)

    def test_writes_are_allowed_when_asked_for(self):
        self.recorded(sys.executable, "-c", "open('result', 'a').write('line\\n')")
        self.checked(self.replay(0))
        self.assertEqual((self.dir / "result").read_text(), "line\n")
        self.checked(self.replay(0, options=["--allow-writes"]))
        self.assertEqual((self.dir / "result").read_text(), "line\nline\n")


MPI_CALLS = harness.BUILD / "tests" / "mpi" / "mpi_calls"


@unittest.skipUnless(shutil.which("mpirun") and MPI_CALLS.is_file(), "needs mpirun and mpi.h")
class Mpi(Matrix):
    """One process that is a job by itself; jobs of several are in mpi_test.py."""

    def test_results_and_clock(self):
        self.check(Row([str(MPI_CALLS), "two", "requests", "types", "odds"],
                       views=("as it was", "one CPU", "another environment", "no network"), moved=True))


if __name__ == "__main__":
    harness.main()
