#!/usr/bin/env python3
"""A second reader of the trace, written from docs/FORMAT.md and format/proto/trace.proto alone.

It shares no code with Deja: only Python's standard library, and the zstd library for the one thing that the
document leaves to zstd. It reads a rank's folder by scanning (it does not use the index) and prints what
tests/conformance/trace/trace_dump.cc prints, so that the two can be compared.

usage: independent_reader.py RANK_FOLDER
"""
import ctypes
import ctypes.util
import itertools
import json
import os
import re
import struct
import sys

from independent_updates import Single, singles, update

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "format", "proto", "trace.proto")

MAGIC = b"\x89DJA\x01\r\n\x1a"
SYNC = b"\xde\x1a\xf7\xa3"
HEADER, EVENTS, CHUNK, INDEX, FOOTER, END = 1, 2, 3, 4, 5, 6
PREDICTION = 8
MAX_RAW, MAX_STORED, MAX_CHUNK = 16 << 20, 17 << 20, 1 << 20
MAX_DIFFERENCES = 15
MAX_PREDICTIONS, MAX_PIECES = 15, 1024
HEADER_BYTES = 32


class Corrupt(Exception):
    pass


# ---- XXH64, from its specification

P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = (1 << 64) - 1


def rotl(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & MASK


def round64(acc, lane):
    return rotl((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    size, at = len(data), 0
    if size >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= size:
            for i, word in enumerate(struct.unpack_from("<4Q", data, at)):
                lanes[i] = round64(lanes[i], word)
            at += 32
        acc = sum(rotl(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            acc = ((acc ^ round64(0, lane)) * P1 + P4) & MASK
    else:
        acc = P5
    acc = (acc + size) & MASK
    while at + 8 <= size:
        acc = (rotl(acc ^ round64(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= size:
        acc = (rotl(acc ^ (struct.unpack_from("<I", data, at)[0] * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        acc = rotl(acc ^ (byte * P5 & MASK), 11) * P1 & MASK
    acc = (acc ^ (acc >> 33)) * P2 & MASK
    acc = (acc ^ (acc >> 29)) * P3 & MASK
    return acc ^ (acc >> 32)


# ---- zstd

def load_zstd():
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return library


ZSTD = load_zstd()


def zstd_decode(data, size):
    out = ctypes.create_string_buffer(max(size, 1))
    got = ZSTD.ZSTD_decompress(out, size, data, len(data))
    if ZSTD.ZSTD_isError(got) or got != size:
        raise Corrupt("zstd")
    return out.raw[:size]


# ---- Protobuf, driven by the text of trace.proto

def load_schema():
    """{message: {number: (type, repeated)}}; fields of a oneof are fields."""
    with open(PROTO, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    schema, current = {}, None
    for line in text.splitlines():
        message = re.match(r"\s*message (\w+) \{", line)
        if message:
            current = schema.setdefault(message.group(1), {})
        field = re.match(r"\s*(repeated )?([\w.]+) (\w+) = (\d+);", line)
        if field and current is not None:
            current[int(field.group(4))] = (field.group(2), bool(field.group(1)))
    return schema


SCHEMA = load_schema()
INTEGERS = ("uint32", "uint64", "sint32", "sint64", "bool")
BODY_KINDS = sorted(number for number in SCHEMA["Event"] if number > 3)


def varint(data, at):
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 63:
            raise Corrupt("varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if value > MASK:
                raise Corrupt("varint")
            return value, at


def fields(data):
    """Yields (number, wire type, value); value is an integer or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise Corrupt("wire type")
        if at > len(data) or number == 0:
            raise Corrupt("field")
        yield number, wire, value


def integer(kind, bits):
    if kind.startswith("sint"):
        return (bits >> 1) ^ -(bits & 1)
    if kind == "bool":
        return int(bits != 0)
    return bits & 0xFFFFFFFF if kind == "uint32" else bits


def decode(name, data):
    """A message as {number: value}, as trace_dump shows it: zero and empty values are left out."""
    message = {}
    for number, wire, value in fields(data):
        kind, repeated = SCHEMA[name].get(number, (None, False))
        if kind is None:
            continue
        if kind in INTEGERS:
            if wire == 2 and repeated:
                at, values = 0, []
                while at < len(value):
                    bits, at = varint(value, at)
                    values.append(integer(kind, bits))
            elif wire == 0:
                values = [integer(kind, value)]
            else:
                continue
        elif kind == "double":
            values = ["%016x" % value]
        elif kind in ("string", "bytes"):
            values = [value.hex()]
        else:
            values = [decode(kind, value)]
        if repeated:
            message.setdefault(number, []).extend(values)
        else:
            message[number] = values[-1]
    empty = (0, "", {}, "%016x" % 0)
    schema = SCHEMA[name]
    return {n: v for n, v in message.items() if schema[n][1] or (v not in empty)}


# ---- Frames

def parse_header(data, at):
    """(type, compression, stored size, raw size, checksum) of an intact frame header, or None."""
    head = data[at:at + HEADER_BYTES]
    if len(head) < HEADER_BYTES or head[:4] != SYNC:
        return None
    if struct.unpack_from("<Q", head, 24)[0] != xxh64(head[:24]):
        return None
    kind, packed, _, stored, raw, checksum = struct.unpack_from("<BBHIIQ", head, 4)
    if stored > MAX_STORED or raw > MAX_RAW:
        return None
    return kind, packed, stored, raw, checksum


def parse_payload(data, at, header):
    _, packed, stored, raw, checksum = header
    payload = data[at + HEADER_BYTES:at + HEADER_BYTES + stored]
    if xxh64(payload) != checksum:
        raise Corrupt("checksum")
    if packed == 1:
        return zstd_decode(payload, raw)
    if packed != 0 or raw != stored:
        raise Corrupt("compression")
    return payload


class File:
    """Frames of one file, and how it ended."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:8] != MAGIC:
            raise SystemExit(f"{path}: not a file of a trace of format 1")
        self.end, self.lost = "torn", 0
        self.was_corrupt = False

    def frames(self):
        data, at, footer, finished = self.data, 8, None, None
        while at < len(data):
            header = parse_header(data, at)
            if len(data) - at < HEADER_BYTES or (header and at + HEADER_BYTES + header[2] > len(data)):
                self.lost += len(data) - at
                break
            if header is None:
                if not any(data[at:]):
                    self.lost += len(data) - at
                    break
                self.was_corrupt = True
                following = at + 1
                while following < len(data) and parse_header(data, following) is None:
                    following = data.find(SYNC, following + 1)
                    if following < 0:
                        following = len(data)
                self.lost += following - at
                at = following
                continue
            size = HEADER_BYTES + header[2]
            try:
                payload = parse_payload(data, at, header)
                if header[0] == FOOTER:
                    footer = at
                elif header[0] == END and struct.unpack("<Q", payload)[0] == footer:
                    finished = at + size
                else:
                    yield header[0], payload, at
            except Corrupt:
                self.was_corrupt = True
                self.lost += size
            at += size
        if self.was_corrupt:
            self.end = "corrupt"
        elif finished == len(data):
            self.end = "clean"


# ---- Payloads

def decode_huffman(data, count):
    """A Huffman plane: four streams of canonical codes."""
    first, last, escape = data[0], data[1], data[2]
    at = 3 + (last - first) // 2 + 1
    lengths = {s: data[3 + (s - first) // 2] >> (4 * ((s - first) % 2)) & 15 for s in range(first, last + 1)}
    lengths[256] = escape
    codes, code, before = {}, 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items() if length):
        code <<= length - before
        codes[length, code] = symbol
        code, before = code + 1, length
    if code != 1 << before or before > 11:
        raise Corrupt("code")
    sizes = list(struct.unpack_from("<3I", data, at))
    at += 12
    sizes.append(len(data) - at - sum(sizes))
    quarter, out = (count + 3) // 4, bytearray()
    for stream, size in enumerate(sizes):
        bits, used, part = int.from_bytes(data[at:at + size], "little"), 0, bytearray()
        at += size
        for _ in range(min(quarter * stream, count), min(quarter * (stream + 1), count)):
            code, length = 0, 0
            while (length, code) not in codes or length == 0:
                if length > 11:
                    raise Corrupt("code")
                code, length = code << 1 | (bits >> used & 1), length + 1
                used += 1
            symbol = codes[length, code]
            if symbol == 256:
                symbol = bits >> used & 255
                used += 8
            part.append(symbol)
        if not 0 <= size * 8 - used < 8:
            raise Corrupt("stream")
        out += part
    return bytes(out)


def decode_packed(data, first, count):
    """A packed plane: codes of a few bits, 64 of them as words of their bits, and the bytes that have no code."""
    bits, groups = data[0], (count + 63) // 64
    if not 1 <= bits <= 4:
        raise Corrupt("bits")
    words = struct.unpack_from(f"<{groups * bits}Q", data, 1)
    at, out = 1 + 8 * bits * groups, bytearray()
    for i in range(64 * groups):
        code = sum((words[i // 64 * bits + bit] >> (i % 64) & 1) << bit for bit in range(bits))
        if i >= count:
            if code:
                raise Corrupt("bits behind the end")
        elif code < (1 << bits) - 1:
            out.append((first + code) & 255)
        else:
            out.append(data[at])
            at += 1
    if at != len(data):
        raise Corrupt("packed plane")
    return bytes(out)


def decode_plane(data, plane, count):
    mode, value, offset, stored = struct.unpack_from("<BBII", data, 1 + 10 * plane)
    part = data[offset:offset + stored]
    if mode == 0:
        out = part
    elif mode == 1:
        out = bytes([value]) * count
    elif mode == 2:
        out = zstd_decode(part, count)
    elif mode == 3:
        out = decode_huffman(part, count)
    elif mode == 4:
        out = decode_packed(part, value, count)
    else:
        raise Corrupt("mode")
    if len(out) != count:
        raise Corrupt("plane")
    return out


def decode_planes(data, size, element):
    elements, rest = divmod(size, element)
    if data[0] & ~3:
        raise Corrupt("flags")
    kept = [True] * elements
    if data[0] & 2:
        bitmap = decode_plane(data, element, (elements + 7) // 8)
        kept = [bitmap[i // 8] >> (i % 8) & 1 for i in range(elements)]
    count = sum(kept)
    planes = [decode_plane(data, plane, count) for plane in range(element)]
    values = bytearray()
    bits = 8 * element
    for i in range(count):
        value = sum(planes[p][i] << (8 * p) for p in range(element))
        if data[0] & 1:
            value = (value >> 1) | ((value & 1) << (bits - 1))
        values += value.to_bytes(element, "little")
    out, at = bytearray(), 0
    for keep in kept:
        out += values[at:at + element] if keep else bytes(element)
        at += element if keep else 0
    return bytes(out) + (data[len(data) - rest:] if rest else b"")


def decode_chunk(chunk):
    """Its bytes, or of a difference (codecs 3 to 5) the difference."""
    size, codec = chunk.get(4, 0), chunk.get(5, 0)
    data = bytes.fromhex(chunk.get(7, ""))
    if size > MAX_CHUNK:
        raise Corrupt("chunk size")
    if codec == 0:
        out = data
    elif codec == 1:
        out = zstd_decode(data, size)
    elif codec in (2, 3, 4, 5):
        out = decode_planes(data, size, chunk.get(6, 0))
    else:
        raise Corrupt("codec")
    if len(out) != size:
        raise Corrupt("chunk")
    return out


def segments(folder):
    """Paths of the payload files, oldest first."""
    found = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"payloads(?:-([1-9][0-9]*))?\.deja", name)
        if match:
            found[int(match.group(1) or 0)] = os.path.join(folder, name)
    return [found[number] for number in sorted(found)]


def add_elements(base, folded, element):
    """What a difference of elements (codec 4) makes of the bytes that it builds on."""
    out, bits = bytearray(), 8 * element
    top, mask = 1 << bits - 1, (1 << bits) - 1
    whole = len(base) // element * element
    for at in range(0, whole, element):
        before, difference = (int.from_bytes(data[at:at + element], "little") for data in (base, folded))
        place = (before ^ mask if before & top else before ^ top) + ((difference >> 1) ^ -(difference & 1)) & mask
        out += (place ^ top if place & top else place ^ mask).to_bytes(element, "little")
    return bytes(out) + bytes(a ^ b for a, b in zip(base[whole:], folded[whole:]))


def predict(message, decoded):
    """The three parts of the state, None for those that are not there, and what it builds on."""
    offset, size = message.get(1, 0), message.get(2, 0)
    rules = message.get(3, 0), message.get(11, 0), message.get(4, 0), message.get(5, 0), message.get(6, 0)
    builds_on, parts = set(), []
    for at in (message.get(field, 0) for field in (7, 8, 9)):
        if at and decoded[at][0] != (offset, size):
            raise Corrupt("state of another place")
        parts.append(singles(decoded[at][1]) if at else None)
        builds_on |= decoded[at][4] if at else set()
    pieces = 0
    for one in message.get(10, []):
        numbers = [Single(struct.unpack("<f", struct.pack("<I", bits))[0]) for bits in one.get(1, [])]
        gradient = b""
        for at, begin, count in zip(one.get(2, []), one.get(3, []), one.get(4, [])):
            gradient += decoded[at][1][begin:begin + count]
            pieces += 1
        if len(gradient) != size:
            raise Corrupt("gradient")
        for i, g in enumerate(singles(gradient)):
            state = update(rules, numbers, g, *(part[i] if part else None for part in parts))
            for part, value in zip(parts, state):
                if part:
                    part[i] = Single(struct.unpack("<f", value.bits())[0])
    return [part and b"".join(value.bits() for value in part) for part in parts], builds_on, pieces


def read_chunks(file):
    """The chunks of a payload file, each with its bytes."""
    # By offset in the file: place, bytes, differences that it builds on, their kind, predictions that it builds on.
    decoded = {}
    predictions = {}
    for kind, payload, at in file.frames():
        if kind == PREDICTION:
            try:
                parts, builds_on, pieces = predict(decode("Prediction", payload), decoded)
            except (Corrupt, KeyError, IndexError):
                continue
            builds_on = builds_on | {(at, pieces)}
            if len(builds_on) <= MAX_PREDICTIONS and sum(n for _, n in builds_on) <= MAX_PIECES:
                predictions[at] = parts, builds_on
        if kind != CHUNK:
            continue
        chunk = decode("PayloadChunk", payload)
        out, depth, place = decode_chunk(chunk), 0, (chunk.get(3, 0), chunk.get(4, 0))
        codec, element = kind_of = chunk.get(5, 0), chunk.get(6, 0)
        builds_on = set()
        if codec in (3, 4):
            base_place, base, base_depth, base_kind, below = decoded.get(chunk.get(9, 0), (None, b"", 0, None, set()))
            depth = base_depth + 1
            if base_place != place or depth > MAX_DIFFERENCES or (base_depth and base_kind != kind_of) or below:
                continue
            out = add_elements(base, out, element) if codec == 4 else bytes(a ^ b for a, b in zip(out, base))
        elif codec == 5:
            parts, builds_on = predictions.get(chunk.get(10, 0), ([None] * 3, set()))
            part = parts[chunk.get(11, 0) - 1] if chunk.get(11, 0) in (1, 2, 3) else None
            if part is None or len(part) != len(out) or element != 4:
                continue
            out = add_elements(part, out, 4)
        decoded[at] = place, out, depth, kind_of, builds_on
        yield chunk, out


def read_payloads(files):
    """{hash: bytes} of the complete ones."""
    parts, totals = {}, {}
    for chunk, out in itertools.chain.from_iterable(read_chunks(file) for file in files):
        parts.setdefault(chunk[1], []).append((chunk.get(3, 0), out))
        totals[chunk[1]] = chunk.get(2, 0)
    complete = {}
    for name, chunks in parts.items():
        whole = bytearray()
        for offset, data in sorted(chunks):
            if offset > len(whole):
                break
            whole += data[len(whole) - offset:]
        if len(whole) == totals[name]:
            complete[name] = bytes(whole)
    return complete


def dump(folder):
    def show(value):
        print(json.dumps(value, separators=(",", ":")))

    def ordered(message):
        if isinstance(message, dict):
            return {str(k): ordered(message[k]) for k in sorted(message)}
        if isinstance(message, list):
            return [ordered(element) for element in message]
        return message

    events_file = File(os.path.join(folder, "events.deja"))
    payload_files = [File(path) for path in segments(folder)]
    events, header = [], None
    for kind, payload, _ in events_file.frames():
        if kind == HEADER:
            header = decode("TraceHeader", payload)
        elif kind == EVENTS:
            events += [value for number, wire, value in fields(payload) if number == 1 and wire == 2]
    payloads = read_payloads(payload_files)
    show({"header": ordered(header)})
    for encoded in events:
        event, kinds = decode("Event", encoded), [n for n, _, _ in fields(encoded) if n in BODY_KINDS]
        if kinds:
            head = {n: event[n] for n in (1, 2, 3) if n in event}
            show({"head": ordered(head), "kind": kinds[-1], "body": ordered(event.get(kinds[-1], {}))})
    for name in sorted(payloads):
        show({"payload": name, "size": len(payloads[name]), "xxh64": "%016x" % xxh64(payloads[name])})
    files = [events_file] + payload_files
    ends = [file.end for file in files]
    end = next(e for e in ("corrupt", "torn", "clean") if e in ends)
    show({"end": end, "lost_bytes": sum(file.lost for file in files)})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    dump(sys.argv[1])
