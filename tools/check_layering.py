#!/usr/bin/env python3
"""Who may include whom: checks the #include lines of the product's C++ against the layers of docs/ARCHITECTURE.md.

usage: tools/check_layering.py [ROOT]

Each folder may use itself and what is listed for it. Code that runs inside the user's process may include neither
libraries that export symbols or throw, nor iostreams, nor the reading side of format/ (the sources of
deja_format_read that are not in deja_format_core). Prints each violation; exits 1 if there is one.
"""
import re
import sys
from pathlib import Path

# Folder -> prefixes of what it may include with quotes, besides itself.
MAY_USE = {
    "common": [],
    "format": ["common/"],
    "preload": ["format/", "common/", "include/deja.h", "include/compat/cuda.h", "include/compat/curand.h"],
    "recorder": ["preload/", "format/", "common/", "include/compat/nccl.h", "include/compat/curand.h"],
    "replayer": ["preload/", "format/", "common/", "include/compat/nccl.h", "include/compat/cuda.h",
                 "include/compat/curand.h"],
    "loopback": ["common/", "compat/nccl.h"],
    # What numbers mean and what digests are; never the hooks, which would then act inside the command line.
    "cli": ["format/", "common/", "preload/api/", "digest/digest.h", "digest/elements.h", "include/compat/cuda.h", "check/", "cli/"],
    # What recordings show together: the tables and digests, but nothing that runs, prints or asks.
    "check": ["format/", "common/", "preload/api/", "digest/digest.h"],
    "examples": ["include/deja.h", "deja.h"],
}
# deja_library(… INPROCESS …) and deja_preload_library; format/ is split by its targets.
IN_PROCESS = ["common", "preload", "recorder", "replayer", "loopback"]

FORBIDDEN_IN_PROCESS = {
    "libraries that export symbols or need exceptions": re.compile(
        r"^(google/|fmt/|spdlog/|nlohmann/|CLI/|zip\.h|elfutils/|boost/)"),
    "iostreams and locales": re.compile(r"^(iostream|fstream|sstream|ostream|istream|iomanip|locale|regex|format)$"),
    "exceptions": re.compile(r"^(exception|stdexcept)$"),
    "the C++ run-time's threads": re.compile(r"^(future)$"),
}
# Declarations of NCCL, the driver and cuRAND come from include/compat; CUDA's headers from nowhere. Programs that a user
# could have written have <cuda.h>, as <nccl.h>, which is found in include/compat.
FORBIDDEN_IN_PRODUCT = {"CUDA's headers": re.compile(r"^(cuda|cublas|curand)[\w]*\.h$")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def sources_of(cmake, target):
    """Stems of the .cc files in deja_library(TARGET …) of a CMakeLists.txt."""
    match = re.search(r"deja_library\(" + target + r"\b(.*?)\)", cmake, re.S)
    return {Path(name).stem for name in re.findall(r"[\w/]+\.cc\b", match.group(1))} if match else set()


def check(root):
    cmake = (root / "format" / "CMakeLists.txt").read_text()
    core = sources_of(cmake, "deja_format_core")
    read_only = sources_of(cmake, "deja_format_read") - core
    violations = []

    def complain(path, text, position, what):
        line = text.count("\n", 0, position) + 1
        violations.append(f"{path.relative_to(root)}:{line}: {what}")

    for folder, allowed in MAY_USE.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cc", ".h", ".c", ".def"):
                continue
            text = path.read_text()
            inside = folder in IN_PROCESS or (folder == "format" and path.stem in core)
            for match in INCLUDE.finditer(text):
                own, system = match.groups()
                name = own or system
                beside = own and (path.parent / own).resolve()
                inside_folder = beside and beside.is_file() and beside.is_relative_to(root / folder)
                if own and "/" in own and not inside_folder and not any(own.startswith(p) for p in [folder + "/", *allowed]):
                    complain(path, text, match.start(), f"{folder}/ may not include {own}")
                if inside and own and own.startswith("format/") and Path(own).stem in read_only:
                    complain(path, text, match.start(), f"{own} is for the reading side, not for the user's process")
                rules = {**(FORBIDDEN_IN_PROCESS if inside else {}), **({} if folder == "examples" else FORBIDDEN_IN_PRODUCT)}
                for reason, pattern in rules.items():
                    if system and pattern.match(name):
                        complain(path, text, match.start(), f"<{name}>: {reason} are kept out")
    return violations


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]).resolve()
    violations = check(root)
    for line in violations:
        print(line)
    if not violations:
        print("every include respects the layers")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
