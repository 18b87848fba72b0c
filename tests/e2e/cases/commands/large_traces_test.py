"""What commands need of memory for each operation of a long recording."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

FEW, MANY = 1000, 21000  # steps, of two operations
VERY_MANY = 61000


class LargeTraces(harness.DejaTest):
    def setUp(self):
        for steps in (FEW, MANY):
            self.checked(self.record("stepper", [f"--steps={steps}", "--count=4"], n=2, trace=f"{steps}.deja"))

    def memory(self, *argv, code=0):
        """Bytes of memory that the command, or a process that it starts, has at most."""
        process = subprocess.Popen([str(a) for a in argv], env=self.environment({}), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        text = process.stderr.read().decode(errors="replace")
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, code, text)
        return usage.ru_maxrss * 1024

    def for_each_operation(self, *argv):
        """Bytes, of both ranks."""
        few, many = (self.memory(harness.DEJA, *(str(a).replace("TRACE", str(self.trace_path(f"{steps}.deja"))) for a in argv))
                     for steps in (FEW, MANY))
        return (many - few) / (2 * (MANY - FEW))

    def test_memory_for_each_operation(self):
        # A million operations shall need 256 MB at most, and a process has some by itself.
        for argv in (["info", "TRACE"], ["show", "TRACE", "--last", "3"], ["verify", "TRACE"],
                     ["diff", "TRACE", "TRACE", "--rank", "0"], ["pack", "TRACE", "--out", "TRACE.zip"],
                     ["replay", "TRACE", "--rank", "1"], ["recover", "TRACE"]):
            with self.subTest(command=argv[0]):
                self.assertLess(self.for_each_operation(*argv), 256)

    def test_memory_for_each_operation_without_an_index(self):
        self.checked(self.record("stepper", [f"--steps={VERY_MANY}", "--count=4"], n=2, trace=f"{VERY_MANY}.deja", timeout=600))
        for steps in MANY, VERY_MANY:  # as processes leave it that were killed
            for file in self.trace_path(f"{steps}.deja").glob("rank-*/events.deja"):
                os.truncate(file, file.stat().st_size * 9 // 10)
        for command, code in ("verify", harness.EXIT_DATA_LOSS), ("recover", 0):
            with self.subTest(command=command):
                few, many = (self.memory(harness.DEJA, command, self.trace_path(f"{steps}.deja"), code=code)
                             for steps in (MANY, VERY_MANY))
                self.assertLess((many - few) / (2 * (VERY_MANY - MANY)), 128)


if __name__ == "__main__":
    harness.main()
