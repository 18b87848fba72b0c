#!/usr/bin/env python3
"""What gdb's side reads of a replayed program's memory, damaged: it ends in values within their limits, or in an error
of gdb's.

A changed or foreign program may write what it likes where the replay library keeps its position. DEJA_FUZZ_SECONDS=N
goes on for N seconds; else a fixed number of inputs.
"""
import os
import random
import sys
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AT = 0x10000
FEW = 1500
EDGES = (0, 1, 0x7F, 0x80, 0xFF)


class FakeError(Exception):
    pass


class Inferior:
    """A process with one piece of memory."""

    pid = 1

    def __init__(self):
        self.memory = bytearray()

    def read_memory(self, address, size):
        if size > 1 << 20:
            raise AssertionError(f"{size} bytes are read at once")
        if not AT <= address <= AT + len(self.memory) - size:
            raise sys.modules["gdb"].MemoryError(f"{address:#x}")
        return bytes(self.memory[address - AT:address - AT + size])


def fake_gdb(inferior):
    gdb = types.ModuleType("gdb")
    gdb.error = FakeError
    gdb.GdbError = type("GdbError", (Exception,), {})
    gdb.MemoryError = type("MemoryError", (FakeError,), {})
    gdb.Breakpoint = object
    gdb.Command = object
    gdb.Parameter = object
    gdb.selected_inferior = lambda: inferior
    gdb.parse_and_eval = lambda text: AT
    gdb.selected_thread = lambda: types.SimpleNamespace(ptid=(1, 7, 0), num=1)
    return gdb


class GdbState(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inferior = Inferior()
        sys.modules["gdb"] = cls.gdb = fake_gdb(cls.inferior)
        sys.path.insert(0, str(ROOT / "gdb"))
        from deja_gdb import positions, state, text
        cls.state, cls.text, cls.positions = state, text, positions

    @classmethod
    def tearDownClass(cls):
        del sys.modules["gdb"]

    def sound(self, source):
        """A state as the library writes it, with texts, counts and a thread that is gdb's current one."""
        state = self.state
        registered = state.OFFSET_IMAGE_TABLE + state.MAX_IMAGES * state.PINNED.size
        size = registered + 8 + state.MAX_REGISTERED * state.REGISTERED.size
        memory = bytearray(size)
        numbers = [source.randrange(4) for _ in range(22)]
        header = state.HEADER.pack(state.MAGIC, state.VERSION, size, *numbers[:16], 3, 5, 2, 1, b"stopped", b"exit 0")
        memory[:len(header)] = header
        at = state.HEADER.size + state.TENSORS * state.TENSOR.size + 2 * state.FRAMES * state.FRAME.size
        thread = state.THREAD.pack(b"0", b"ncclAllReduce", 7, 1, 9, 1, 2, 9, *range(1, 9))
        memory[at:at + len(thread)] = thread
        memory[registered] = 4
        return memory

    def damaged(self, memory, source):
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(12, len(memory))  # magic and version are checked first
            if source.random() < 0.5:  # where the counts and texts are
                at = source.randrange(12, self.state.HEADER.size)
            size = source.choice((1, 4, 8))
            value = source.choice(EDGES) if source.random() < 0.5 else source.randrange(256)
            memory[at:at + size] = bytes([value]) * min(size, len(memory) - at)
        return memory

    def look(self):
        state = self.state.State()
        for parts, most in ((state.tensors, self.state.TENSORS), (state.frames, self.state.FRAMES),
                            (state.end_frames, self.state.FRAMES), (state.threads, self.state.THREADS),
                            (state.python_frames, self.state.FRAMES), (state.images, self.state.MAX_IMAGES),
                            (state.registered, self.state.MAX_REGISTERED)):
            self.assertLessEqual(len(parts), most)
        texts = [state.message, state.end_text, state.no_images]
        for thread in state.threads:
            texts += [thread.name, thread.describe()]
            self.assertLessEqual(len(thread.places), 8)
        for text in texts:
            self.assertFalse(set(self.text.plain(text)) & set("\x1b\r\n\x07\u202e"))
        current = state.current()
        if current is not None:
            self.assertIsInstance(state.places_of_current()(), int)

    def test_damaged_states(self):
        source = random.Random(23)
        seconds = float(os.environ.get("DEJA_FUZZ_SECONDS", 0))
        end = time.monotonic() + seconds
        done = 0
        while done < FEW or time.monotonic() < end:
            self.inferior.memory = self.damaged(self.sound(source), source)
            before = bytes(self.inferior.memory)
            try:
                self.look()
            except (self.gdb.GdbError, self.gdb.error):
                pass
            except Exception:
                print(f"input {done}: {before[:self.state.HEADER.size].hex()}", file=sys.stderr)
                raise
            done += 1
        print(f"{done} states", file=sys.stderr)

    def test_a_sound_state_is_read(self):
        self.inferior.memory = self.sound(random.Random(1))
        state = self.state.State()
        self.assertEqual((len(state.tensors), len(state.frames), len(state.threads)), (3, 5, 2))
        self.assertEqual(len(state.registered), 4)
        self.assertEqual(state.current().places, [1, 8, 7, 6, 5, 4, 3, 2])
        with self.assertRaises(self.gdb.GdbError):
            self.inferior.memory[0] ^= 1
            self.state.State()


if __name__ == "__main__":
    unittest.main()
