#!/usr/bin/env python3
"""Builds the wheel, has auditwheel check it, and names its platform.

usage: tools/build_wheel.py [FOLDER]

FOLDER (default: build-packages) gets deja_debugger-VERSION-py3-none-manylinux_2_31_x86_64.whl. Objects are kept in
build-wheel, and in the compiler's cache. The tools (build, its backend, auditwheel, wheel) are installed from PyPI into
a virtual environment in build-packages/tools, once: a later wheel needs no network. Exits 77 and says why where there
is no venv module, or PyPI cannot be reached.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build-packages"
GLIBC = (2, 31)  # DEJA_OLDEST_GLIBC in cmake/Portable.cmake
PLATFORM = "manylinux_2_31_x86_64"
TOOLS = ("build>=1", "scikit-build-core>=0.10", "auditwheel>=6", "wheel>=0.40")
# As the presets: the compiler's cache has their objects.
WARNINGS = ("-C", "cmake.define.DEJA_WERROR=ON")
CANNOT = 77


def cannot(why):
    print(f"build_wheel: {why}", file=sys.stderr)
    sys.exit(CANNOT)


def tools():
    """The folder of the tools' programs; installs them the first time."""
    folder = WORK / "tools"
    done = folder / "installed"
    if done.exists() and done.read_text() == "\n".join(TOOLS):
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        cannot(f"making a virtual environment in {folder}: {(made.stdout + made.stderr).strip()}; install python3-venv")
    got = subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS],
                         capture_output=True, text=True, check=False)
    if got.returncode != 0:
        cannot(f"installing {', '.join(TOOLS)}: {got.stderr.strip().splitlines()[-1]}")
    done.write_text("\n".join(TOOLS))
    return folder / "bin"


def check(programs, wheel):
    """auditwheel finds the oldest platform. It repairs nothing: what the command needs is in the wheel already."""
    said = subprocess.run([programs / "auditwheel", "show", wheel], capture_output=True, text=True, check=False)
    print(said.stdout + said.stderr)
    tag = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_x86_64"', said.stdout)
    if said.returncode != 0 or not tag or (int(tag[1]), int(tag[2])) > GLIBC:
        sys.exit(f"build_wheel: {wheel}: auditwheel does not find it to be {PLATFORM}")


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    out = Path(sys.argv[1] if len(sys.argv) == 2 else WORK).resolve()
    programs = tools()
    env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    # CMake's own choice, as in the presets: the backend's default has another name, which the cache looks at.
    env.setdefault("CC", "cc")
    env.setdefault("CXX", "c++")
    if shutil.which("ccache"):
        env.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    raw = WORK / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    subprocess.run([programs / "python", "-m", "build", "--no-isolation", "--wheel", "--outdir", raw, *WARNINGS, ROOT],
                   env=env, check=True)
    wheel, = raw.glob("*.whl")
    check(programs, wheel)
    subprocess.run([programs / "wheel", "tags", "--platform-tag", PLATFORM, "--remove", wheel], check=True)
    named, = raw.glob("*.whl")
    out.mkdir(parents=True, exist_ok=True)
    print(f"build_wheel: {shutil.move(named, out / named.name)}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"build_wheel: {error}")
