"""Starting the replay, each time in a fresh folder, from the beginning or from a checkpoint
(cli/replay/debugger/gdb_session.h)."""
import json
import os
import shutil
import subprocess

import gdb

from .text import say

SCRATCH = "DEJA_SCRATCH"
STOP_SIGNAL = "SIG33"  # by which the library stops threads for a moment (replayer/forks/bystanders.h)
START_FILE = "start"  # what the program is started with (cli/replay/start/fenced_start.h)


class Checkpoint:
    def __init__(self, number, step, size, last_operations):
        self.number, self.step, self.size = number, step, size
        self.last_operations = {int(comm): seq for comm, seq in last_operations.items()}


START = Checkpoint(0, -1, 0, {})


class Session:
    def __init__(self):
        self.scratch = os.environ[SCRATCH]
        with open(os.path.join(self.scratch, "session.json"), encoding="utf-8") as file:
            told = json.load(file)
        self.deja = told["deja"]
        self.notes = told["notes"]
        self.rank = told["rank"]
        self.child = told["child"]  # of the rank, which is gdb's program; empty: the rank itself is
        self.checkpoints = [Checkpoint(c["number"], c["step"], c["bytes"], c["last_operations"])
                            for c in told["checkpoints"]]
        self.verify = told["verify"]
        self.last_step = told["last_step"]  # of the recording; None: it has none
        self.last_operations = {int(comm): seq for comm, seq in told["last_operations"].items()}
        self.sound = {START.number}  # numbers of those whose bytes have been looked at
        given = told["from_checkpoint"]
        self.default = next((c for c in self.checkpoints if c.number == given), START)
        self.sound.add(self.default.number)
        self.next = None  # from where the next run starts
        self.start = self.default  # of this run
        self.runs = 0
        self.folder = self.scratch  # of this run
        self.run_listeners = []  # called before each

    def before_step(self, step):
        """The latest checkpoint from which a replay reaches the beginning of `step`."""
        return max((c for c in self.checkpoints if c.step <= step), key=lambda c: c.step, default=START)

    def before_operation(self, seq, comm):
        """The same for an operation; comm None: for the communicator that is the first to reach that number."""
        def is_before(checkpoint):
            last = checkpoint.last_operations
            return max(last.values(), default=0) < seq if comm is None else last.get(comm, 0) < seq
        return max((c for c in self.checkpoints if is_before(c)), key=lambda c: c.step, default=START)

    def check_step(self, step):
        """Refuses a step that the replay cannot come to, before it loses the place where it is."""
        if self.last_step is None:
            raise gdb.GdbError(f"there is no step {step}: the recording names no steps")
        if step > self.last_step:
            raise gdb.GdbError(f"there is no step {step}: the recording ends in step {self.last_step}; `deja goto end` goes there")

    def check_operation(self, seq, comm):
        """The same of an operation; comm None: of any communicator."""
        if comm is not None and comm not in self.last_operations:
            known = ", ".join(str(c) for c in sorted(self.last_operations)) or "none"
            raise gdb.GdbError(f"there is no communicator {comm} in the recording (it has {known})")
        last = max(self.last_operations.values(), default=0) if comm is None else self.last_operations[comm]
        if seq > last:
            where = "" if comm is None else f" of comm {comm}"
            raise gdb.GdbError(f"there is no operation {seq}{where}: the last in the recording is {last}; `deja goto end` goes to "
                               "its end")

    def earlier(self, start):
        """The starts from `start` back to the beginning, damaged ones left out."""
        before = sorted((c for c in self.checkpoints if c.step < start.step), key=lambda c: -c.step)
        for checkpoint in [start] + before + ([] if start is START else [START]):
            if self.is_sound(checkpoint):
                yield checkpoint

    def is_sound(self, checkpoint):
        """Whether its bytes can be read. One that is damaged is named, and is none of the checkpoints any more."""
        if checkpoint.number in self.sound:
            return True
        if checkpoint not in self.checkpoints:
            return False
        done = subprocess.run([*self.verify, str(checkpoint.step)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        try:
            problem = json.loads(done.stdout).get("problem")
        except ValueError:
            problem = done.stderr.strip().removeprefix("deja: ")
        if not problem:
            self.sound.add(checkpoint.number)
            return True
        self.checkpoints.remove(checkpoint)
        say(f"deja: the checkpoint at step {checkpoint.step} is damaged and is not used: {problem}")
        return False

    def nearest_sound(self, start):
        """`start`, or the next older one that a replay can start at."""
        return next(self.earlier(start))

    def prepare_run(self):
        """Before each `run`: a folder of its own, since a run finds there what it has written. Everything that a run
        is given has the same length, so that the program's stack is where it was."""
        for listener in self.run_listeners:
            listener()
        self.start, self.next = self.next or self.default, None
        self.runs += 1
        folder = self.folder = os.path.join(self.scratch, f"run-{self.runs:06}")
        shutil.rmtree(os.path.join(self.scratch, f"run-{self.runs - 2:06}"), ignore_errors=True)
        os.makedirs(folder)
        for name in "children", "companions":
            shutil.copy(os.path.join(self.scratch, name), folder)
        words = (self.deja, "run-fenced", os.path.join(self.scratch, START_FILE), folder, f"{self.start.number:020}")
        gdb.execute(f"set exec-wrapper {' '.join(quoted(word) for word in words)}", to_string=True)


def quoted(text):
    """For the shell by which gdb starts programs. Only paths of Deja's own come here, nothing of a trace."""
    return "'" + text.replace("'", "'\\''") + "'"


the = None  # the only Session


def install():
    global the
    the = Session()
    for setting in "confirm off", "startup-with-shell on", "disable-randomization on", "breakpoint pending on":
        gdb.execute(f"set {setting}")
    gdb.execute(f"handle {STOP_SIGNAL} nostop noprint pass", to_string=True)
    if the.child:
        return
    for command in "run", "start", "starti":
        gdb.execute(f"define hook-{command}\npython deja_gdb.session.the.prepare_run()\nend")
