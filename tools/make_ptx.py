#!/usr/bin/env python3
"""Makes the GPU code that this project carries of its source: PTX, as a string in a file beside that.

    tools/make_ptx.py NAME            prints it
    tools/make_ptx.py NAME --write    writes it to its place

NAME: digest (digest/digest_kernel.cu, which Deja loads) or digits (examples/digits/cuda/kernels.cu).
It needs clang 14 with the NVPTX target (Debian's clang-14) and nothing of CUDA's. Exits 77 without it.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"digest": "digest/digest_kernel.cu", "digits": "examples/digits/cuda/kernels.cu"}
COMPILER = "clang++-14"
# The oldest GPUs that Deja's kernels are for, and the oldest PTX that has what they use: drivers since CUDA 10.0.
FLAGS = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_70", "-Xclang",
         "-target-feature", "-Xclang", "+ptx63", "-std=c++20", "-O3", "-ffp-contract=off", "-I.", "-S", "-o", "-",
         "-Wall", "-Wextra", "-Werror", "-Wno-unknown-cuda-version"]
HEADER = "// Made by tools/make_ptx.py of {source} with {compiler}.\nR\"ptx(\n"


def output_of(name: str) -> Path:
    return (ROOT / SOURCES[name]).with_suffix(".ptx.inc")


def compiler_version() -> str | None:
    try:
        done = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True)
        targets = subprocess.run([COMPILER, "--print-targets"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    if "nvptx64" not in targets.stdout:
        return None
    found = re.search(r"clang version (\d+\.\d+\.\d+)", done.stdout)
    return f"clang {found.group(1)}" if found else None


def make(source: str, version: str) -> str:
    done = subprocess.run([COMPILER, *FLAGS, source], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = (line.strip() for line in done.stdout.splitlines())
    # Comments are for whoever reads the compiler's own output; a quarter of the text is white space.
    code = [re.sub(r"\s+", " ", line) for line in lines if line and not line.startswith("//")]
    return HEADER.format(source=source, compiler=version) + "\n".join(code) + "\n)ptx\"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    version = compiler_version()
    if version is None:
        print(f"{COMPILER} is not here, or has no NVPTX target")
        return 77
    text = make(SOURCES[options.name], version)
    if options.write:
        output_of(options.name).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
