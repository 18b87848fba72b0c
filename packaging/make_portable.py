#!/usr/bin/env python3
"""Makes what `cmake --install` of a DEJA_PORTABLE build has installed run with an older glibc.

usage: packaging/make_portable.py PREFIX --libdir LIBDIR --glibc 2.31

Copies the libraries that the command line needs besides glibc's into LIBDIR/deja/carried, with the licences that
Debian has of them. Then removes versions of symbols that the older glibc lacks: the program, the libraries and what is
carried ask for the symbol alone (elf_versions.py). Whether the older glibc has it follows from the versions in which
this machine's glibc defines it, since glibc keeps each one. Prints what it did; exits 1 and changes no version when a
symbol is in no older glibc and nothing that is installed defines it.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import elf_versions

# From glibc, and from libgcc_s, which is the process's own in the libraries.
OF_THE_SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libresolv|libgcc_s)\.so\.\d+")


def libraries_of(path):
    """{name: path} of what the loader finds for a file."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    missing = re.findall(r"(\S+) => not found", said)
    if missing:
        raise elf_versions.ElfError(f"looking for the libraries of {path}: not found: {', '.join(missing)}")
    found = dict(re.findall(r"(\S+) => (/\S+) \(0x", said))
    found.update((Path(loader).name, loader) for loader in re.findall(r"(?m)^\s*(/\S+) \(0x", said))
    return {name: Path(where) for name, where in found.items()}


def copy_licence(library, folder):
    """Debian's file about the package that a library is from; says so where there is none."""
    # /lib is a link to /usr/lib; dpkg knows a file by either name.
    names = {str(library.resolve()), str(library.resolve()).replace("/usr/lib/", "/lib/", 1)}
    owner = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, check=False).stdout \
        if shutil.which("dpkg-query") else ""
    package = owner.split(":")[0]
    licence = Path("/usr/share/doc", package, "copyright")
    if not package or not licence.exists():
        print(f"make_portable: {library}: no licence found; add it to {folder}", file=sys.stderr)
        return
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(licence, folder / package)


def carry(program, folder, licences):
    """Copies what the program needs besides the system's libraries; returns the paths of the system's."""
    found = libraries_of(program)
    for name, path in sorted(found.items()):
        if OF_THE_SYSTEM.fullmatch(name):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if path.parent.resolve() != folder.resolve():
            shutil.copyfile(path.resolve(), folder / name)
            (folder / name).chmod(0o755)
            copy_licence(path, licences)
        print(f"make_portable: carried: {name}")
    return [path for name, path in found.items() if OF_THE_SYSTEM.fullmatch(name) and not name.startswith("libgcc")]


def versions_of_glibc(paths):
    """{symbol: the versions in which this machine's glibc has it}."""
    found = {}
    for path in paths:
        for name, versions in elf_versions.ElfVersions(path).exports().items():
            found.setdefault(name, set()).update(versions)
    return found


def problem_of(name, library, version, glibc, limit, beside):
    """Why a symbol cannot go without its version; None if it can."""
    old = {v for v in glibc.get(name, ()) if elf_versions.number(v) and elf_versions.number(v) <= limit}
    if name in beside:
        return None
    if not old:
        return f"{name} of {library} is there since {version} only"
    # Without a version the loader takes the oldest, which must then be the one that the newest replaced.
    if elf_versions.BASE in old and len(old) > 1:
        return f"{name} of {library} meant something else in {elf_versions.BASE}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--libdir", default="lib")
    parser.add_argument("--glibc", default="2.31")
    options = parser.parse_args()
    limit = elf_versions.number(f"GLIBC_{options.glibc}")
    program = options.prefix / "bin" / "deja"
    carried = options.prefix / options.libdir / "deja" / "carried"
    system = carry(program, carried, options.prefix / "share" / "doc" / "deja" / "carried")
    glibc = versions_of_glibc(system)

    files = [elf_versions.ElfVersions(path) for path in sorted(options.prefix.rglob("*"))
             if path.is_file() and not path.is_symlink() and elf_versions.is_elf(path)]
    own = set(elf_versions.ElfVersions(program).exports())
    problems = []
    for file in files:
        # What is carried is only ever loaded into the program, whose symbols come first.
        beside = own if file.path.parent == carried else ()
        problems += [f"{file.path}: {problem}" for wanted in file.newer(limit)
                     if (problem := problem_of(*wanted, glibc, limit, beside))]
    if problems:
        print("\n".join(f"make_portable: {line}" for line in problems), file=sys.stderr)
        return 1
    lowered = sum(file.lower(limit) for file in files)
    newest = max(filter(None, (elf_versions.ElfVersions(file.path).newest() for file in files)))
    print(f"make_portable: {lowered} of {len(files)} files changed; needs GLIBC_{'.'.join(map(str, newest))}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (elf_versions.ElfError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"make_portable: {error}")
