"""A child of the rank as gdb's program (`deja replay --child`): `run` has the whole rank started
(cli/replay/debugger/child_debugging.h) and attaches to the child when that begins. The rank's other processes run on
while the child stands."""
import json
import os

import gdb

from . import images, session
from .state import is_running


class Run(gdb.Command):
    """Start the replay of the rank; its child stops where it begins, and goes on to the first breakpoint."""

    def __init__(self):
        super().__init__("run", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        attach()
        gdb.execute("continue")


class Start(gdb.Command):
    """Start the replay of the rank; its child stops where it begins."""

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        attach()


def attach():
    if is_running():
        gdb.execute("kill", to_string=True)
    session.the.prepare_run()
    answer = ask(session.the.folder)
    if "error" in answer:
        raise gdb.GdbError(answer["error"])
    with images.no_notifications():
        gdb.execute(f"attach {answer['pid']}", to_string=True)


def ask(folder):
    with open(os.path.join(session.the.scratch, "requests"), "w", encoding="utf-8") as requests:
        print(folder, file=requests)
    with open(os.path.join(session.the.scratch, "answers"), encoding="utf-8") as answers:
        return json.loads(answers.readline())


def install():
    Run()
    for name in "start", "starti":
        Start(name)
