"""Processes that a rank makes: each has a recording of its own, and does in a replay what it did."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))

SUBPROCESSES = r"""
import multiprocessing as mp, os, random, subprocess, sys, time

def draw():
    return os.urandom(4).hex(), random.random(), time.time(), os.getpid(), os.getppid()

def work(queue, seed):
    queue.put((seed, draw()))

def initial(_):
    return draw()

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        for seed in range(2):
            queue = context.Queue()
            process = context.Process(target=work, args=(queue, seed))
            process.start()
            print(method, queue.get(), process.pid)
            process.join()
            print(process.exitcode)
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(initial, range(3)))
        # Left to itself the pool kills its workers, which may or may not have ended by then.
        pool.close()
        pool.join()
    stuck = mp.get_context("fork").Process(target=time.sleep, args=(1000,))
    stuck.start()
    stuck.terminate()
    stuck.join()
    print(stuck.exitcode, stuck.pid)
    print(subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout)
    print(subprocess.run([sys.executable, "-c", "import os; print(os.urandom(4).hex(), hash('a'))"],
                         env={}, capture_output=True, text=True).stdout)
    print(os.popen("date +%N; echo $$").read())
    sys.stdout.flush()
    os.system("date +%N")
"""

SERVER = r"""
import os, socket, subprocess, sys, time
server = subprocess.Popen([sys.argv[1], "socket"], preexec_fn=(lambda: os.urandom(4)) if sys.argv[2:] else None)
client = socket.socket(socket.AF_UNIX)
while client.connect_ex("socket"):
    time.sleep(0.001)
client.send(b"what?")
print(client.recv(64), server.wait())
"""

NOBODY = "import os; [os.fork() or (os.getpid(), os.urandom(4), os._exit(0)) for _ in range(5)]"
LATE = "import time; " + NOBODY.replace("os._exit", "time.sleep(0.3), os._exit")


ASK_THE_KERNEL = """
import os
for _ in range(3):
    if os.fork() == 0:
        names = set()
        for _ in range(300):
            with open("/proc/self/status") as status:
                names.add(dict(line.split(":", 1) for line in status).get("Pid", "none").strip())
        os.write(1, (" ".join([str(os.getpid()), *sorted(names)]) + "\\n").encode())
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


class Children(harness.DejaTest):
    def replays(self, run, rank=0, trace="run.deja", times=REPLAYS):
        for _ in range(times):
            again = self.checked(self.replay(rank, trace=trace))
            self.assertEqual(again.stdout.splitlines()[:-1], run.stdout.splitlines(), str(again))
        return again

    def names(self, trace="run.deja"):
        return {child["name"]: child for child in self.info_json(trace)["ranks"][0]["children"]}

    def test_all_ways_to_make_one_and_to_end(self):
        run = self.checked(self.record("workers", n=1))
        self.assertVerifies()
        children = self.names()
        for name, end in {"0/1": "exit 3", "0/2": "exit 4", "0/3": "killed by SIGKILL", "0/4": "SIGTERM",
                          "0/5": "SIGSEGV at workers.cc", "0/6": "exit 6", "0/6/0/1": "exit 5",
                          "0/11+1": "exit 7", "0/12+1": "exit 7", "0/14+1": "exit 7", "0/15+1": "exit 7",
                          "0/16+1": "exit 7", "0/17+1": "exit 7", "0.1/1": "exit 9", "0/18": "exit 10"}.items():
            self.assertTrue(children[name]["ended"].startswith(end), (name, children[name]))
        self.assertNotIn("0/13", children)  # a vfork child that only ended
        again = self.replays(run)
        self.assertRegex(again.stdout, r"\d+ child processes replayed")

    def test_a_signal_in_the_middle_of_an_event_is_recorded(self):
        # The child's events are as many as make the thread that writes them start when the signal comes.
        for i in range(10):
            trace = f"run-{i}.deja"
            self.checked(self.record("workers", n=1, trace=trace))
            end = self.names(trace)["0/4"]["ended"]
            self.assertTrue(end.startswith("SIGTERM"), end)

    def test_everything_up_to_a_kill_is_there(self):
        run = self.checked(self.record("workers", n=1))
        said = re.findall(r"^killed: ([0-9a-f]{16})", run.stdout, re.M)
        self.assertEqual(len(said), 5)
        events = self.show_json("--child", "0/3", "--call", "getrandom")
        drawn = [bytes.fromhex(e["data"])[::-1].hex() for e in events]
        self.assertEqual(drawn[:5], said)

    def test_before_there_is_a_communicator(self):
        run = self.checked(self.record("workers", ["--before-comm"], n=1))
        self.assertIn("0/3", self.names())
        self.replays(run, times=1)

    def test_a_handler_in_the_middle_of_a_wait_knows_its_parent(self):
        """The wait is Deja's in a replay. The signal comes from the recorded parent there, as getppid() says."""
        run = self.checked(self.record_single(harness.BUILD / "tests" / "apps" / "workers", "--waits"))
        self.assertEqual(self.names()["0/1"]["ended"], "exit 10")
        again = self.replays(run, times=1)
        self.assertNotIn("ended with", again.stdout)

    def test_each_rank_has_its_own(self):
        self.checked(self.record("workers", n=2))
        ranks = self.info_json()["ranks"]
        self.assertEqual([c["name"] for c in ranks[0]["children"]], [c["name"] for c in ranks[1]["children"]])
        self.checked(self.replay(1))

    def test_a_lost_recording_is_named(self):
        script = "date +%N; od -An -N4 -tx1 /dev/urandom"
        self.checked(self.record_single("/bin/sh", "-c", script))
        names = sorted(self.names())
        held = self.dir / "held"
        lost = []
        for folder in sorted(self.trace_path().glob("child-*")):
            folder.rename(held)
            again = self.checked(self.replay(0))
            held.rename(folder)
            lost += re.findall(r"child (\S+) ran live: the trace has no recording of it", again.stdout)
        self.assertEqual(sorted(lost), names)

    def test_bundle(self):
        run = self.checked(self.record("workers", n=1))
        bundle = self.trace_path("run.deja.zip")
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle))
        self.assertEqual(self.names("run.deja.zip"), self.names())
        self.replays(run, trace="run.deja.zip", times=1)

    def test_show(self):
        self.checked(self.record("workers", n=1))
        made = [e for e in self.show_json("--kind", "child") if "number" in e]
        self.assertEqual([e["number"] for e in made if e["thread"] == "0"], list(range(1, 19)))
        unknown = self.deja("show", self.trace_path(), "--child", "0/99")
        self.assertEqual(unknown.code, harness.EXIT_FAILURE)
        self.assertIn("0/99", unknown.stderr)
        self.assertIn("0/2", unknown.stderr)

    def test_python(self):
        script = self.dir / "script.py"
        script.write_text(SUBPROCESSES)
        self.replays(self.checked(self.record_single(sys.executable, script)))

    def test_those_of_a_process_that_is_no_rank_leave_nothing(self):
        self.checked(self.deja("record", "--out", self.trace_path(), "--", sys.executable, "-c", NOBODY))
        self.assertFalse(self.trace_path().exists())

    def test_those_that_end_after_the_job_leave_nothing(self):
        self.checked(self.deja("record", "--out", self.trace_path(), "--", sys.executable, "-c", LATE))
        self.assertFalse(self.trace_path().exists())

    def test_a_child_without_inputs_leaves_no_folder(self):
        self.checked(self.record_single("sh", "-c", "sh -c 'echo $$; exit 0'; true"))
        self.assertEqual(list(self.trace_path().glob("child-*")), [])
        self.checked(self.replay(0))

    def test_nothing_stays_in_shared_memory(self):
        before = harness.shm_names()
        self.checked(self.record("workers", n=1))
        self.assertEqual({n for n in harness.shm_names() - before if n.startswith("deja-")
                          and self.info_json()["job"] in n}, set())

    def test_a_child_cannot_write_outside_the_replay(self):
        target = self.dir / "written"
        script = (f"import os, subprocess; subprocess.run(['sh', '-c', 'echo x > {target}'], env={{}}); "
                  f"print(os.path.exists('{target}'))")
        run = self.checked(self.record_single(sys.executable, "-c", script))
        self.assertEqual(run.stdout, "True\n")
        target.unlink()
        self.replays(run, times=1)
        self.assertFalse(target.exists())

    def test_a_server_that_is_not_recorded(self):
        """What it says is served. In a replay it runs live, and is refused its socket."""
        self.server_is_served()

    def test_a_forked_child_that_becomes_one(self):
        """With preexec_fn Python forks, and the child has a recording up to its exec."""
        self.server_is_served("forked")

    def server_is_served(self, *options):
        run = self.checked(self.record_single(sys.executable, "-u", "-c", SERVER, harness.app("connection_static_server"),
                                              *options, cwd=self.dir))
        self.assertRegex(run.stdout, r"b'[0-9a-f]{8}\\n' 0\n")
        (self.dir / "socket").unlink()
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertTrue(again.stdout.startswith(run.stdout + "rank 0: exit 0, the same as recorded; "), str(again))
            self.assertRegex(again.stdout, r"child process \d+ ended with exit 1; recorded: exit 0; its program is not recorded "
                                           r"\(static, or of Go\), and ran live\n")

    def test_a_child_that_goes_another_way_is_reported(self):
        switch = self.dir / "switch"
        switch.touch()
        script = (f"import os, sys\npid = os.fork()\nif pid == 0:\n"
                  f"    for i in range(2 if os.access('{switch}', os.F_OK) else 3): os.getrandom(4)\n"
                  f"    os._exit(0 if os.access('{switch}', os.F_OK) else 5)\nprint(os.waitpid(pid, 0)[1])\n")
        self.checked(self.record_single(sys.executable, "-c", script))
        switch.unlink()
        again = self.replay(0)
        self.assertEqual(again.code, harness.EXIT_DIVERGED, str(again))
        self.assertRegex(again.stdout, r"child process \d+ ended with exit 5; recorded: exit 0")

    def test_forks_amid_the_work_of_another_thread(self):
        """A lock of Deja's that the other thread has at the fork is free in the child."""
        (self.dir / "data").write_text("0123456789")
        for work in ("pipes", "polls", "handlers", "files"):
            with self.subTest(work=work):
                argv = [harness.app("fork_amid"), work, "100"]
                plain = subprocess.run(argv, cwd=self.dir, capture_output=True, text=True, check=True)
                run = self.checked(self.record_single(*argv, trace=f"{work}.deja", cwd=self.dir))
                self.assertEqual((plain.stdout, run.stdout), ("0 of 100 stuck\n",) * 2)

    def crashes_in_the_replay_alone(self, script, *lines):
        """Where it crashed is said: a crash that comes in one of many replays does not come again in gdb."""
        switch = self.dir / "switch"
        switch.touch()
        crash = f"os.access('{switch}', os.F_OK) or ctypes.string_at(0)"
        self.checked(self.record_single(sys.executable, "-c", f"import ctypes, os, threading\n{script.format(crash=crash)}"))
        switch.unlink()
        again = self.replay(0)
        self.assertEqual(again.code, harness.EXIT_DIVERGED, str(again))
        for line in lines:
            self.assertRegex(again.stdout, line)

    def test_a_child_that_crashes_in_the_replay_alone(self):
        self.crashes_in_the_replay_alone(
            "pid = os.fork()\nif pid == 0:\n    {crash}\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])\n",
            r"\n  child process \d+ ended with signal 11; recorded: exit 0\n  child 0/1: stack of the crash, thread 0:\n",
            r"\n  child 0/1:   <string>:4 in <module>\n",
            r"\n  child 0/1:   \S*( \()?libc\.so\.6\+0x")

    def test_a_rank_that_crashes_in_the_replay_alone(self):
        self.crashes_in_the_replay_alone(
            "{crash}\n",
            r"rank 0: SIGSEGV at .*; the recorded run: exit 0; .*\n  stack of the crash, thread 0:\n",
            r"\n    <string>:2 in <module>\n", r"\n    \S*( \()?libc\.so\.6\+0x")

    def test_what_the_kernel_says_of_each_is_its_own(self):
        run = self.checked(self.record_single(sys.executable, "-c", ASK_THE_KERNEL))
        lines = sorted(run.stdout.splitlines())
        self.assertEqual([line.split()[1:] for line in lines], [line.split()[:1] for line in lines])
        for _ in range(3):
            again = self.checked(self.replay(0))
            self.assertEqual(sorted(harness.without_report(again.stdout).splitlines()), lines, str(again))



class Threads(harness.DejaTest):
    def openmp(self, runtime):
        program = harness.BUILD / "tests" / "apps" / f"openmp_{runtime}"
        if not program.is_file():
            self.skipTest(f"lib{runtime} was not there when the tests were built")
        run = self.checked(self.record_single(program, env={"OMP_NUM_THREADS": 4}))
        self.assertEqual(len(set(run.stdout.splitlines())), 13)
        for replay in range(REPLAYS):
            with self.subTest(runtime=runtime, replay=replay):
                again = self.checked(self.replay(0))
                self.assertEqual(again.stdout.splitlines()[:-1], run.stdout.splitlines())

    def test_openmp_of_gcc(self):
        self.openmp("gomp")

    def test_openmp_of_clang(self):
        self.openmp("omp")

    def test_names_follow_the_tree_of_creation(self):
        run = self.checked(self.record_single(harness.app("thread_tree")))
        self.assertEqual(len(set(run.stdout.split())), 40)
        names = {e["thread"] for e in self.show_json("--call", "getrandom")}
        self.assertEqual(len(names), 40)
        self.assertTrue({"0", "0.1", "0.3.2.1"} <= names, names)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(again.stdout.splitlines()[:-1], run.stdout.splitlines())


if __name__ == "__main__":
    harness.main()
