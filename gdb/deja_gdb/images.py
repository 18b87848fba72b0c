"""Images: sleeping copies of the program that the library has made on the way (replayer/forks/forks.h).

They are gdb's children and have a name of their own. To go back to one, the replay's folder is made what it was
then, gdb attaches to the copy, and says where to go; it leaves another copy behind.
"""
import contextlib
import dataclasses
import os
import shutil
import signal
import time

import gdb

from . import session
from .state import (IMAGES, OFFSET_IMAGES, OFFSET_IMAGE_TABLE, OFFSET_WANTED, PINNED, State, is_running, state_address)
from .text import say

NAME = "deja-image"
KEPT_FOLDERS = "images"  # replayer/forks/fork_folder.h
PIPES_FILE = "pipes.table"  # replayer/forks/fork_files.h
TRAP = 0xCC
PAGE = 4096
ENTRY = 8  # of /proc/PID/pagemap
END_S = 10  # a killed process is gone long before, on a machine that has anything else to do, too
PRESENT, SWAPPED, OF_FILE = 1 << 63, 1 << 62, 1 << 61  # in one


@dataclasses.dataclass
class Image:
    pid: int
    number: int
    places: int  # that its thread had come to
    place: int
    operation: int  # the last place that is one
    seq: int  # the largest on any communicator
    step: int  # -1: before the first

    def is_before_step(self, step):
        """Or stands where it begins."""
        return self.step < step or self.place == step * 2 + 1

    def is_before_operation(self, seq):
        return self.seq < seq

    def is_before_place(self, place):
        return self.is_before_step(place >> 1) if place & 1 else self.operation < place or self.place == place

    def describe(self):
        return f"the image of step {self.step}" if self.step >= 0 else "an image before the first step"


def sleeping():
    """Process ids of all images of this session."""
    for name in os.listdir("/proc"):
        if name.isdigit() and is_asleep(int(name)):
            yield int(name)


def is_asleep(pid):
    """The process is an image of this session, and has not ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return False
    state, parent = rest.split()[:2]
    return comm == NAME and int(parent) == os.getpid() and state not in "ZX"


def read_image(pid):
    """None: it is not there any more."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(state_address.known + OFFSET_IMAGES)
            _, _, number, places, place, operation, seq, step, *_ = IMAGES.unpack(memory.read(IMAGES.size))
    except OSError:
        return None
    return Image(pid, number, places, place, operation, seq, step - 1)


def kept():
    """The images, the earliest first."""
    found = [image for image in map(read_image, sleeping()) if image is not None]
    return sorted(found, key=lambda image: image.places)


def latest(is_before, start=session.START):
    """The last image before a place, if it is not before `start`, from which the program can be started, too."""
    found = [image for image in kept() if is_before(image) and image.step >= start.step]
    return found[-1] if found else None


def end(images):
    """Returns when they have ended: one that is about to would be taken for an image of the next run."""
    images = list(images)
    for pid in images:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    last = time.monotonic() + END_S
    while any(map(is_asleep, images)) and time.monotonic() < last:
        time.sleep(0.001)


def wake(image):
    """gdb has the image as its program, which is stopped in it. The images after it end."""
    end(other.pid for other in kept() if other.places > image.places)
    put_folder_back(image)
    remove_traps(image.pid)
    with no_notifications():
        gdb.execute(f"attach {image.pid}", to_string=True)


@contextlib.contextmanager
def no_notifications():
    """`attach` and `inferior` show where a process is, which no user asked for. Before gdb 12 they do."""
    try:
        gdb.execute("set suppress-cli-notifications on")
    except gdb.error:
        yield
        return
    try:
        yield
    finally:
        gdb.execute("set suppress-cli-notifications off")


def go_on_in_image():
    """It learns that it is the program from now on; goes on with the next `continue`."""
    State().write(OFFSET_WANTED, "I", 1)


def put_folder_back(image):
    folder = session.the.folder
    kept_folder = os.path.join(folder, KEPT_FOLDERS, str(image.number))
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name == KEPT_FOLDERS:
            continue
        if name == PIPES_FILE and os.path.exists(os.path.join(kept_folder, name)):
            continue  # the program has it in its memory
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    shutil.copytree(kept_folder, folder, symlinks=True, dirs_exist_ok=True)


def remove_traps(pid):
    """The copy was made while gdb's breakpoints were in the code, and gdb does not know: it would take them for the
    program's. Code is in pages of files; those that have been written to are compared with the file."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        maps = [line.rstrip("\n").split(None, 5) for line in file]
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for fields in maps:
            if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
                continue
            low, high = (int(part, 16) for part in fields[0].split("-"))
            offset = int(fields[2], 16)
            for page in written_pages(pagemap, low, high):
                restore_page(memory, page, fields[5], offset + page - low)


def written_pages(pagemap, low, high):
    pagemap.seek(low // PAGE * ENTRY)
    entries = pagemap.read((high - low) // PAGE * ENTRY)
    for i in range(0, len(entries), ENTRY):
        entry = int.from_bytes(entries[i:i + ENTRY], "little")
        if entry & (PRESENT | SWAPPED) and not entry & OF_FILE:
            yield low + i // ENTRY * PAGE


def restore_page(memory, page, path, offset):
    with open(path, "rb") as file:
        file.seek(offset)
        original = file.read(PAGE)
    memory.seek(page)
    now = memory.read(len(original))
    for i, (is_, was) in enumerate(zip(now, original)):
        if is_ == TRAP and was != TRAP:
            memory.seek(page + i)
            memory.write(bytes([was]))


def pin_nearest(is_before):
    """The last image before a place stays, however many come."""
    if not is_running():
        return
    image = latest(is_before)
    table = State().images
    for i, (pid, *_) in enumerate(table):
        if image is not None and pid == image.pid:
            State().write(OFFSET_IMAGE_TABLE + i * PINNED.size, "iI", pid, 1)


_told = set()


def say_why_not(reason):
    """Once for each reason."""
    if reason and reason not in _told:
        _told.add(reason)
        say(f"deja: no images of the program are kept: {reason}; backwards it is started again")


def on_exit(_):
    """What gdb has attached to it would let go, and the program would run on."""
    if is_running():
        gdb.execute("kill", to_string=True)
    end(sleeping())


def install():
    session.the.run_listeners.append(lambda: end(sleeping()))  # they are of the run before
    if hasattr(gdb.events, "gdb_exiting"):  # since gdb 12; before, the images die of gdb's death
        gdb.events.gdb_exiting.connect(on_exit)
