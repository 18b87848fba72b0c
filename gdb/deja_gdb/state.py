"""deja_replay_state, the memory in which the replay library keeps where it is (replayer/report/position.h)."""
import struct

import gdb

from . import tensors

MAGIC = 0x315453504A4544
VERSION = 4
NO_REASON, READY, OPERATION, STEP, NAN, DIVERGENCE, END = 0, 1, 2, 3, 4, 5, 6

# replayer/report/position.h
HEADER = struct.Struct("<QII IIII QQ IIII IIQ QQQ IIII 1024s256s")
TENSOR = struct.Struct("<64sIIQQQQII")
FRAME = struct.Struct("<QQ")
THREAD = struct.Struct("<32s40siIQII Q8Q")
PLACES = struct.Struct("<Q8Q")
PLACES_AT = THREAD.size - PLACES.size
TRAVEL = struct.Struct("<Q32sIIQ")
IMAGES = struct.Struct("<II QQQQQQ 160s II")
PINNED = struct.Struct("<iIQQ")  # an entry of the table of images
REGISTERED = struct.Struct("<64sQQII")
TENSORS, FRAMES, THREADS, MAX_IMAGES, MAX_REGISTERED = 32, 64, 64, 24, 64
OFFSET_IMAGES = HEADER.size + TENSORS * TENSOR.size + 3 * FRAMES * FRAME.size + THREADS * THREAD.size + 8 + TRAVEL.size
OFFSET_KEEP_IMAGES, OFFSET_WANTED, OFFSET_IMAGE_TABLE = OFFSET_IMAGES, OFFSET_IMAGES + 4, OFFSET_IMAGES + IMAGES.size
OFFSET_WATCHED, OFFSET_NEXT, OFFSET_NAN, OFFSET_COMM, OFFSET_SEQ, OFFSET_STEP, OFFSET_EXIT = 16, 20, 24, 28, 32, 40, 64
OFFSET_HAS_STEP = 60


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def address_of_symbol(name):
    """Address of one of the library's exported names; works without debug information."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)&" + name))
    except gdb.error:
        return None


def state_address():
    """Where deja_replay_state is; `known` keeps it for later, when the program is not there."""
    address = address_of_symbol("deja_replay_state")
    if address is not None:
        state_address.known = address
    return address


state_address.known = 0


def is_running():
    return gdb.selected_inferior().pid != 0


class State:
    """One reading of deja_replay_state."""

    def __init__(self):
        self.address = state_address() if is_running() else None
        if self.address is None:
            raise gdb.GdbError("the replay is not running: `run`, or `deja until …`, starts it")
        raw = read(self.address, HEADER.size)
        (magic, version, size, self.watched, self.stop_next, self.stop_nan, self.stop_comm, self.stop_seq,
         self.stop_step, self.reason, self.stopped_thread, self.rank, self.has_step, self.stop_exit, _, self.step, self.operations,
         self.compared, self.different, tensor_count, frame_count, thread_count, end_frame_count, message,
         end_text) = HEADER.unpack(raw)
        if magic != MAGIC or version != VERSION:
            raise gdb.GdbError(f"the replay library speaks another version ({version}) than these commands ({VERSION})")
        self.message, self.end_text = text_of(message), text_of(end_text)
        at = self.address + HEADER.size
        self.tensors = [tensors.Tensor(*TENSOR.unpack(read(at + i * TENSOR.size, TENSOR.size)))
                        for i in range(min(tensor_count, TENSORS))]
        at += TENSORS * TENSOR.size
        self.frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size)) for i in range(min(frame_count, FRAMES))]
        at += FRAMES * FRAME.size
        self.end_frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size))
                           for i in range(min(end_frame_count, FRAMES))]
        at += FRAMES * FRAME.size
        self.threads_at = at
        self.threads = [Thread(*THREAD.unpack(read(at + i * THREAD.size, THREAD.size)))
                        for i in range(min(thread_count, THREADS))]
        at += THREADS * THREAD.size
        count = min(int.from_bytes(read(at, 4), "little"), FRAMES)
        at += 8
        self.python_frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size)) for i in range(count)]
        at += FRAMES * FRAME.size
        self.offset_place = at - self.address
        *_, self.start_step = TRAVEL.unpack(read(at, TRAVEL.size))
        raw = read(self.address + OFFSET_IMAGES, IMAGES.size)
        *_, no_images, image_count, _ = IMAGES.unpack(raw)
        self.no_images = text_of(no_images)
        at = self.address + OFFSET_IMAGE_TABLE
        self.images = [PINNED.unpack(read(at + i * PINNED.size, PINNED.size)) for i in range(min(image_count, MAX_IMAGES))]
        at = self.address + OFFSET_IMAGE_TABLE + MAX_IMAGES * PINNED.size
        count = min(int.from_bytes(read(at, 4), "little"), MAX_REGISTERED)
        self.registered = [Registered(*REGISTERED.unpack(read(at + 8 + i * REGISTERED.size, REGISTERED.size))) for i in range(count)]
        if at + 8 + MAX_REGISTERED * REGISTERED.size - self.address != size:
            raise gdb.GdbError("the replay library's state has another size than these commands expect")

    def write(self, offset, fmt, *values):
        gdb.selected_inferior().write_memory(self.address + offset, struct.pack("<" + fmt, *values))

    def current(self):
        """What the replay knows about gdb's current thread; None: it has made no call yet."""
        thread = gdb.selected_thread()
        tid = thread.ptid[1] if thread is not None else 0
        return next((t for t in self.threads if t.tid == tid), None)

    def places_of_current(self):
        """A function that reads the last place of gdb's current thread, and nothing else."""
        thread = self.current()
        if thread is None:
            return lambda: 0
        at = self.threads_at + self.threads.index(thread) * THREAD.size + PLACES_AT

        def last():
            count, *recent = PLACES.unpack(read(at, PLACES.size))
            return recent[(count - 1) % len(recent)] if count else 0
        return last

    def stop_at_place(self, thread, place):
        self.write(self.offset_place, "Q32s", place, thread.encode())

    def mute(self, on=True):
        self.write(self.offset_place + 40, "I", int(on))


class Registered:
    """A tensor or state that the program has registered for checkpoints."""

    def __init__(self, name, address, size, dtype, _):
        self.name, self.address, self.size, self.dtype = text_of(name), address, size, dtype


class Thread:
    def __init__(self, name, api, tid, comm, seq, parked, stack, count, *recent):
        self.name, self.api, self.tid, self.comm, self.seq = text_of(name), text_of(api), tid, comm, seq
        self.parked, self.stack = parked, stack
        # The places that it has reached last, the newest first.
        self.places = [recent[(count - 1 - i) % len(recent)] for i in range(min(count, len(recent)))]

    def describe(self):
        if not self.api:
            return "no call yet"
        text = self.api
        if self.seq:
            text += f" #{self.seq}"
        if self.comm:
            text += f" of comm {self.comm - 1}"
        return text + {1: ", which the recorded run entered and never left",
                       2: ", after the end of its recording"}.get(self.parked, "")
