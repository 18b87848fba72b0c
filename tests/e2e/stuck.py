"""What the processes of a command that does not end are doing: for the message of a test that gave up waiting."""
import os
import shutil
import subprocess
from pathlib import Path

MOST_PROCESSES = 12
FRAMES = 12


def text(path):
    try:
        return path.read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""


def of_session(leader):
    """The processes that a session's leader has started, itself first."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if os.getsid(int(folder.name)) == leader:
                    found.append(folder)
            except OSError:
                pass
    return sorted(found, key=lambda folder: int(folder.name))


def frames(folder):
    """Native frames of all threads, by gdb."""
    if shutil.which("gdb") is None:
        return ""
    try:
        run = subprocess.run(["gdb", "-batch", "-nx", "-p", folder.name, "-ex", f"thread apply all backtrace {FRAMES}"],
                             capture_output=True, timeout=30, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return ""
    lines = run.stdout.decode(errors="replace").splitlines()
    return "\n".join(f"    {line}" for line in lines if line.startswith(("#", "Thread")))


def describe(leader):
    """Lines about each process: its command, state, what its threads wait for, and its frames."""
    said = []
    for folder in of_session(leader)[:MOST_PROCESSES]:
        state = next((line for line in text(folder / "status").splitlines() if line.startswith("State:")), "")
        waits = sorted({text(task / "wchan") for task in (folder / "task").glob("*")})
        said.append(f"process {folder.name}: {text(folder / 'cmdline')[:200]}\n  {state}; waits in {', '.join(waits)}")
        said.append(frames(folder))
    return "\n".join(line for line in said if line)
