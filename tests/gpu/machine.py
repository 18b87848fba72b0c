"""What is there on this machine to check Deja with: a driver, an NCCL, a torch, tools; or the simulated ones."""
import ctypes
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A folder that pack.sh made has the programs in place; in a source tree they are in the build tree.
PACKED = (ROOT / "bin" / "deja").is_file()
BUILD = ROOT if PACKED else Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build")).resolve()

ASK_TORCH = """
import json, torch, torch.distributed as d
print(json.dumps({"version": torch.__version__, "nccl": d.is_nccl_available(), "gpu": torch.cuda.is_available()}))
"""


@dataclasses.dataclass
class Machine:
    simulated: bool
    device: str = ""  # its name; empty: there is none
    no_device: str = ""  # why
    driver: str = ""
    nccl: str = ""  # version
    nccl_folder: str = ""
    no_nccl: str = ""
    no_curand: str = ""
    python: str = ""  # that has torch
    torch: str = ""  # version
    no_torch: str = ""
    sanitizer: str = ""  # path
    nccl_tests: str = ""  # folder
    libraries: tuple = ()  # folders of NCCL and cuRAND (and the simulated driver), first in the library path of ranks
    last_libraries: tuple = ()  # last in it

    def environment(self, own_libraries=False):
        """What every rank gets besides. PyTorch has libraries of its own, which others must not come before."""
        env = {}
        path = [*(() if own_libraries else self.libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")]),
                *self.last_libraries]
        if path:
            env["LD_LIBRARY_PATH"] = ":".join(path)
        if self.simulated:
            env["CUDA_SIM_DEVICES"] = "1"
        return env

    def torch_release(self):
        """(2, 6) of "2.6.0+cu126"."""
        return tuple(int(part) for part in re.findall(r"\d+", self.torch)[:2])

    def describe(self):
        if self.simulated:
            return "simulated driver and NCCL of tests/fakes/cuda; nothing below is about hardware"
        return (f"{self.device or self.no_device}; CUDA driver {self.driver or 'none'}; NCCL {self.nccl or self.no_nccl}"
                f"{' in ' + self.nccl_folder if self.nccl_folder else ''}; torch {self.torch or self.no_torch}")


def ask(code, argument=""):
    """In a process of its own: libraries that are loaded here stay."""
    run = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, timeout=120, check=False)
    return run.stdout.strip(), (run.stderr.strip().splitlines() or ["no message"])[-1]


ASK_DRIVER = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
code = cuda.cuInit(0)
assert code == 0, f"cuInit returned {code}"
number, device, name, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_int(), ctypes.c_int()
cuda.cuDriverGetVersion(ctypes.byref(number))
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0, "it has no device"
cuda.cuDeviceGetName(name, 100, device)
cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
print(f"{name.value.decode()} (sm_{major.value}{minor.value})|{number.value // 1000}.{number.value % 1000 // 10}")
"""

ASK_NCCL = """
import ctypes, os, sys
nccl = ctypes.CDLL(sys.argv[1])
number = ctypes.c_int()
nccl.ncclGetVersion(ctypes.byref(number))
n = number.value
path = next(line.split()[-1] for line in open("/proc/self/maps") if "/libnccl.so" in line)
print(f"{n // 10000}.{n // 100 % 100}.{n % 100}|{os.path.dirname(path)}")
"""


def find_nccl(machine, given, python):
    """The one that is given, else what the loader finds, else CUDA's, else the one that came with torch."""
    folders = [given] if given else ["", "/usr/local/cuda/lib64"]
    if not given and python:
        where, _ = ask_python(python, "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + '/lib')")
        folders.append(where)
    for folder in folders:
        out, error = ask(ASK_NCCL, os.path.join(folder, "libnccl.so.2"))
        if out:
            machine.nccl, found = out.split("|")
            machine.nccl_folder = found
            return
        machine.no_nccl = f"no libnccl.so.2 could be loaded ({error})"


ASK_CURAND = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
print(os.path.dirname(next(line.split()[-1] for line in open("/proc/self/maps") if "/libcurand.so" in line)))
"""


def find_curand(machine, python):
    """What the loader finds, else CUDA's, else the one that came with torch."""
    folders = ["", "/usr/local/cuda/lib64"]
    if python:
        folders.append(ask_python(python, "import nvidia.curand; print(list(nvidia.curand.__path__)[0] + '/lib')")[0])
    for folder in folders:
        found, error = ask(ASK_CURAND, os.path.join(folder, "libcurand.so.10"))
        if found:
            machine.libraries = (*machine.libraries, found)
            machine.no_curand = ""
            return
        machine.no_curand = f"no libcurand.so.10 could be loaded ({error})"


def ask_python(python, code):
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return run.stdout.strip(), (run.stderr.strip().splitlines() or ["no message"])[-1]


def find_torch(machine, python, needs_gpu):
    if not python:
        machine.no_torch = "no --python was given"
        return
    out, error = ask_python(python, ASK_TORCH)
    if not out:
        machine.no_torch = f"{python} has no torch ({error})"
        return
    torch = json.loads(out)
    if needs_gpu and not (torch["nccl"] and torch["gpu"]):
        machine.no_torch = f"torch {torch['version']} of {python} has no NCCL, or sees no GPU"
        return
    machine.python = python
    machine.torch = torch["version"]


def library_folder_of_gcc():
    """What Deja (libgcc_s.so.1) and the digits example need in a rank beside glibc: for machines that lack it."""
    try:
        ctypes.CDLL("libgcc_s.so.1")
        ctypes.CDLL("libstdc++.so.6")
        return ()
    except OSError:
        return (str(ROOT / "lib" / "carried" / "gcc"),)


def look(simulated, nccl="", python="", nccl_tests=""):
    machine = Machine(simulated, last_libraries=library_folder_of_gcc())
    machine.nccl_tests = nccl_tests
    find_torch(machine, python, needs_gpu=not simulated)
    if simulated:
        machine.device = "simulated"
        machine.libraries = (str(BUILD / "tests" / "cuda"),)
    else:
        out, error = ask(ASK_DRIVER)
        if out:
            machine.device, machine.driver = out.split("|")
        else:
            machine.no_device = re.sub(r"^\w+Error: ", "", error)
        find_nccl(machine, nccl, machine.python)
        if machine.nccl_folder:
            machine.libraries = (machine.nccl_folder,)
        find_curand(machine, machine.python)
        machine.sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer") or ""
    return machine
