"""Versions of symbols in ELF files of 64 bits, little-endian: which ones a file needs and defines, and how to need
older ones."""
import re
import struct
from pathlib import Path

_VERDEF, _VERNEED, _VERSYM, _DYNSYM = 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF, 11
_GLOBAL = 1          # a symbol without a version
_HIDDEN = 0x8000     # in .gnu.version: not the default
BASE = "GLIBC_2.2.5"  # the first of x86-64: each library of glibc's has it


class ElfError(Exception):
    pass


def number(version):
    """GLIBC_2.31 -> (2, 31); None for what is no such version: GLIBC_PRIVATE, GCC_3.0."""
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", version)
    return tuple(map(int, match.group(1).split("."))) if match else None


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(6) == b"\x7fELF\x02\x01"


def _hash(name):
    """System V's hash of a name, as the loader compares it."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


class ElfVersions:
    def __init__(self, path):
        self.path = Path(path)
        self.data = bytearray(self.path.read_bytes())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ElfError(f"reading {path}: it is no ELF file of 64 bits")
        self._sections = self._read_sections()
        self.needed = {}   # index -> (offset of its entry, library, version)
        self.defined = {}  # index -> version
        self._read_needed()
        self._read_defined()
        self.symbols = list(self._read_symbols())  # (number, name, is undefined, index of the version, is default)

    def _read_sections(self):
        offset, = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        found = {}
        for i in range(count):
            _, kind, _, _, at, length, link, _, _, entry = struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size)
            found[i] = (kind, at, length, link, entry)
        return found

    def _section(self, wanted):
        return next((s for s in self._sections.values() if s[0] == wanted), None)

    def _strings(self, section):
        return self._sections[section[3]][1]  # offset of the linked string table

    def _text(self, table, at):
        end = self.data.index(0, table + at)
        return self.data[table + at:end].decode()

    def _read_needed(self):
        section = self._section(_VERNEED)
        if section is None:
            return
        table, at = self._strings(section), section[1]
        while True:
            _, count, file, aux, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + aux
            for _ in range(count):
                _, _, index, name, onwards = struct.unpack_from("<IHHII", self.data, entry)
                self.needed[index & ~_HIDDEN] = (entry, self._text(table, file), self._text(table, name))
                entry += onwards
            if following == 0:
                return
            at += following

    def _read_defined(self):
        section = self._section(_VERDEF)
        if section is None:
            return
        table, at = self._strings(section), section[1]
        while True:
            _, _, index, _, _, aux, following = struct.unpack_from("<HHHHIII", self.data, at)
            name, _ = struct.unpack_from("<II", self.data, at + aux)
            self.defined[index] = self._text(table, name)
            if following == 0:
                return
            at += following

    def _read_symbols(self):
        section, versions = self._section(_DYNSYM), self._section(_VERSYM)
        if section is None:
            return
        table = self._strings(section)
        for i in range(section[2] // 24):
            name, _, _, index, _, _ = struct.unpack_from("<IBBHQQ", self.data, section[1] + i * 24)
            version = struct.unpack_from("<H", self.data, versions[1] + 2 * i)[0] if versions else _GLOBAL
            yield i, self._text(table, name), index == 0, version & ~_HIDDEN, not version & _HIDDEN

    def exports(self):
        """{symbol: the versions in which it is defined, "" for none}."""
        found = {}
        for _, name, undefined, index, _ in self.symbols:
            if name and not undefined:
                found.setdefault(name, set()).add(self.defined.get(index, "") if index > _GLOBAL else "")
        return found

    def newer(self, limit):
        """[(symbol, library, version)] of glibc's that are newer than `limit`, or of no numbered version."""
        found = []
        for _, name, undefined, index, _ in self.symbols:
            if undefined and index in self.needed and self._is_newer(self.needed[index][2], limit):
                found.append((name, *self.needed[index][1:]))
        return found

    def newest(self):
        """The newest version of glibc's that the file asks for, a symbol's or not; None without any."""
        numbers = [number(version) for _, _, version in self.needed.values()]
        return max((n for n in numbers if n), default=None)

    @staticmethod
    def _is_newer(version, limit):
        if not version.startswith("GLIBC_"):
            return False
        found = number(version)
        return found is None or found > limit

    def lower(self, limit):
        """Symbols of versions that are newer than `limit` need none, which the loader takes for the oldest version or
        the default one; and no such version is asked for any more. The caller knows that an older glibc has them."""
        too_new = {i: entry for i, entry in self.needed.items() if self._is_newer(entry[2], limit)}
        if not too_new:
            return False
        versions = self._section(_VERSYM)
        for i, _, _, index, _ in self.symbols:
            if index in too_new:
                struct.pack_into("<H", self.data, versions[1] + 2 * i, _GLOBAL)
        section = self._section(_VERNEED)
        table = self._strings(section)
        size = next(s[2] for s in self._sections.values() if s[1] == table)
        base = self.data.find(b"\0" + BASE.encode() + b"\0", table, table + size)
        if base < 0:
            raise ElfError(f"lowering the versions of {self.path}: it does not name {BASE}")
        for entry, _, _ in too_new.values():
            struct.pack_into("<I", self.data, entry, _hash(BASE))
            struct.pack_into("<I", self.data, entry + 8, base + 1 - table)
        self.path.write_bytes(self.data)
        return True
