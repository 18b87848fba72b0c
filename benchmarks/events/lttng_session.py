"""Programs in a recording session of LTTng-UST, with a daemon of our own."""
import argparse
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

SESSION = f"deja-bench-{os.getpid()}"


def lttng(*words):
    subprocess.run(["lttng", "--no-sessiond", *words], check=True, capture_output=True)


def run_lttng(program, folder, *arguments):
    """The program in a session of its own; its output."""
    lttng("create", SESSION, f"--output={folder}")
    try:
        lttng("enable-channel", "--userspace", f"--session={SESSION}", "--subbuf-size=1M", "--num-subbuf=8", "bench")
        lttng("enable-event", "--userspace", f"--session={SESSION}", "--channel=bench", "deja_bench:*")
        lttng("start", SESSION)
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    finally:
        lttng("destroy", SESSION)


@contextlib.contextmanager
def daemon(program):
    """True while one runs; False if `program` was not built or LTTng is not installed."""
    if not program.is_file() or shutil.which("lttng") is None:
        yield False
        return
    process = subprocess.Popen(["lttng-sessiond", "--quiet", "--no-kernel"])
    subprocess.run(["sleep", "2"], check=True)
    try:
        yield True
    finally:
        process.terminate()
        process.wait()


def options(description):
    """--runs and --build, with the folder of the programs as `bin`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build-release")
    found = parser.parse_args()
    found.bin = found.build.resolve() / "bin"
    return found
