"""What a library defines, by its file alone: whether gdb needs to read it for a breakpoint's location.

May say yes for a library that does not have it, and never no for one that does.
"""
import functools
import os
import re
import struct

SECTION = struct.Struct("<IIQQQQIIQQ")  # a section's header
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS = (2, 11)  # types of sections: all symbols, those for the dynamic linker
COMPRESSED = 0x800
MOST_HITS = 10000
SHORTENED = ("std",)  # by what a compiler makes of a name


@functools.lru_cache(maxsize=None)
def sections(path):
    """[(name, type, flags, offset, size, link)]. ValueError: it is no ELF file of this processor's kind."""
    with open(path, "rb") as file:
        head = file.read(0x40)
        if len(head) < 0x40 or head[:6] != b"\x7fELF\x02\x01":
            raise ValueError(path)
        at, = struct.unpack_from("<Q", head, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", head, 0x3A)
        file.seek(at)
        table = file.read(size * count)
        raw = [SECTION.unpack_from(table, i * size) for i in range(count)]
        if names_at >= count:
            raise ValueError(path)
        file.seek(raw[names_at][4])
        names = file.read(raw[names_at][5])
    return [(names[s[0]:names.find(b"\0", s[0])].decode(errors="replace"), s[1], s[2], s[4], s[5], s[6]) for s in raw]


def contents(path, section):
    with open(path, "rb") as file:
        file.seek(section[3])
        return file.read(section[4])


def debug_sections(path):
    return [s for s in sections(path) if s[0].startswith((".debug_", ".zdebug_"))]


def has_debug_information(path, folder):
    """In itself, or in a file beside it or in gdb's folder for such files. OSError, ValueError."""
    return bool(debug_sections(path)) or any(map(os.path.exists, separate_files(path, folder)))


def separate_files(path, folder):
    """Where gdb looks for its debug information."""
    for section in sections(path):
        if section[0] == ".note.gnu.build-id":
            number = contents(path, section)[16:].hex()
            yield os.path.join(folder, ".build-id", number[:2], number[2:] + ".debug")
        elif section[0] == ".gnu_debuglink":
            name = contents(path, section).split(b"\0")[0].decode(errors="replace")
            own = os.path.dirname(os.path.realpath(path))
            yield from (os.path.join(place, name) for place in (own, os.path.join(own, ".debug"), folder + own))


def may_have(path, location, folder):
    """Whether a breakpoint at `location`, as gdb writes it, may have a place in the library."""
    try:
        if any(map(os.path.exists, separate_files(path, folder))):
            return True
        found = re.fullmatch(r"(?:-source )?(.+?)(?::| -line )\d+", location)
        if location.startswith("*"):
            return False
        if found is not None:
            return in_debug_information(path, [found[1].rsplit("/", 1)[-1]])
        names = names_of(location)
        return not names or defines(path, names) or in_debug_information(path, names)
    except (OSError, ValueError, struct.error):
        return True


def names_of(location):
    """["at", "_ops", "mean", "call"] of at::_ops::mean::call(…); empty: not known."""
    text = re.sub(r"-(?:function|qualified) +", "", location)
    if text.startswith("-") or "operator" in text:
        return []
    text = text.split("(")[0]
    while "<" in text and ">" in text:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            break
        text = shorter
    return [name for name in re.findall(r"[A-Za-z_$][\w$]*", text) if name not in SHORTENED]


def in_debug_information(path, names):
    """Whether each of the names may be in it."""
    missing = [name.encode() + b"\0" for name in names]
    for section in debug_sections(path):
        if section[2] & COMPRESSED or section[0].startswith(".z"):
            return True
        text = contents(path, section)
        missing = [name for name in missing if name not in text]
        if not missing:
            return True
    return False


def defines(path, names):
    """Whether a symbol with these parts is defined in it."""
    every = sections(path)
    mangled = [f"{len(name)}{name}".encode() for name in names]
    plain = b"\0" + names[-1].encode() + b"\0"
    for section in every:
        if section[1] not in SYMBOLS or section[5] >= len(every):
            continue
        offsets = offsets_of(contents(path, every[section[5]]), mangled, plain)
        if offsets is None:
            return True
        if offsets and any(symbol[0] in offsets and symbol[3] for symbol in SYMBOL.iter_unpack(contents(path, section))):
            return True
    return False


def offsets_of(strings, mangled, plain):
    """Where names with these parts begin. A name may be the end of another one. None: too many to tell."""
    found = set()
    at = strings.find(plain)
    if at >= 0:
        first = strings.rfind(b"\0", 0, at + 1)
        found.update(range(first + 1, at + 2))
    at = strings.find(mangled[-1])
    hits = 0
    while at >= 0:
        hits += 1
        if hits > MOST_HITS:
            return None
        begin, end = strings.rfind(b"\0", 0, at) + 1, strings.find(b"\0", at)
        if all(strings.find(part, begin, end) >= 0 for part in mangled):
            found.update(range(begin, at + 1))
        at = strings.find(mangled[-1], end)
    return found
