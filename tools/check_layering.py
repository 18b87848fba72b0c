#!/usr/bin/env python3
"""Checks which room includes which: the #include lines of the product's C++ against the rooms of docs/ARCHITECTURE.md.

usage: tools/check_layering.py [ROOT] [--edges]

A room is a folder with sources. It may use itself and the rooms listed for it; a new edge between rooms is a line
here, and so seen in a review. Code that runs inside the user's process may include neither libraries that export
symbols or throw, nor iostreams, nor the rooms that only read traces. Prints each violation; exits 1 if there is one.
--edges prints the edges there are.
"""
import re
import sys
from pathlib import Path

# Room -> rooms, or single headers, that it may include. Every room but those of common/ may use all of common/.
# Rooms of hooks name the interfaces of the engine that they use (preload/calls/*_calls.h), each for its concern.
# In recorder/ and replayer/ arrows go one way: core knows no room that serves calls, and assembly/ alone knows them
# all.
MAY_USE = {
    "api": "api/tables include/compat/curand.h",
    "check": "check/evidence check/findings check/matching",
    "check/evidence": "api digest format/reader format/tail format/wire",
    "check/findings": "check/evidence check/matching",
    "check/matching": "check/evidence",
    "check/timeline": "check/evidence",
    "cli": "format/trace",
    "cli/check":
        "check check/evidence cli cli/events cli/summaries format/layout format/pack format/reader format/trace",
    "cli/commands":
        "check check/evidence cli cli/check cli/diff cli/doctor cli/events cli/export cli/fence cli/help cli/import"
        " cli/merge cli/pack cli/record"
        " cli/replay/bounds cli/replay/debugger cli/replay/fold cli/replay/start cli/replay/verdict cli/replay/watch"
        " cli/report cli/serve"
        " cli/summaries"
        " cli/tensors cli/top digest format/layout format/log format/pack format/repair format/tail format/trace",
    "cli/devices": "include/compat/cuda.h",
    "cli/diff": "api cli cli/events cli/help cli/summaries digest format/reader format/trace",
    "cli/doctor": "cli cli/devices",
    "cli/events": "api cli cli/programs digest format/log format/reader format/tail format/wire",
    "cli/export":
        "check check/evidence check/timeline cli cli/check cli/doctor cli/summaries cli/tensors digest format/trace",
    "cli/fence": "cli cli/programs format/trace",
    "cli/help": "cli",
    "cli/import": "api cli format/layout format/log format/reader format/wire",
    "cli/merge": "check/evidence cli cli/events format/reader format/trace",
    "cli/pack":
        "api cli cli/events cli/summaries digest format/layout format/pack format/reader format/trace format/wire",
    "cli/programs": "",
    "cli/record":
        "cli cli/doctor cli/events cli/summaries format/layout format/reader format/repair format/tail format/trace"
        " format/window format/wire",
    "cli/replay/bounds": "cli cli/help format/reader format/trace",
    "cli/replay/debugger":
        "cli cli/events cli/replay/bounds cli/replay/start cli/replay/watch format/reader format/scratch format/trace"
        " format/wire",
    "cli/replay/fold": "api cli cli/devices cli/events cli/replay/report cli/replay/start format/reader format/scratch",
    "cli/replay/report": "format/scratch",
    "cli/replay/start":
        "cli cli/fence cli/programs cli/replay/watch cli/summaries format/layout format/reader format/scratch"
        " format/trace",
    "cli/replay/verdict":
        "cli cli/devices cli/events cli/replay/report cli/replay/watch cli/summaries format/reader format/scratch"
        " format/tail format/trace",
    "cli/replay/watch":
        "api cli cli/devices cli/record cli/replay/fold cli/replay/report cli/replay/start format/reader format/scratch"
        " format/trace",
    "cli/report": "check check/evidence check/timeline cli cli/check cli/programs cli/summaries format/reader",
    "cli/serve": "api cli/events cli/tensors digest format/reader",
    "cli/summaries": "cli cli/events cli/programs format/reader format/trace",
    "cli/tensors": "cli digest format/reader",
    "cli/top": "api check/evidence cli cli/events digest format/reader format/trace format/wire",
    "common": "",
    "common/numbers": "",
    "common/old_glibc": "",
    "common/os": "common common/runtime",
    "common/process": "common/os common/runtime",
    "common/runtime": "",
    "common/secrets": "",
    "common/text": "",
    "digest": "format/wire",
    "format/layout": "format/wire",
    "format/log": "format/layout format/tail format/tensor format/window format/wire",
    "format/pack": "format/layout format/payloads format/reader format/tensor format/trace format/wire",
    "format/payloads": "format/tail format/tensor format/wire",
    "format/planes": "",
    "format/reader": "format/layout format/payloads format/tail format/wire",
    "format/repair": "format/layout format/log format/payloads format/tail format/window format/wire",
    "format/scratch": "api",
    "format/tail": "format/wire",
    "format/tensor": "format/planes",
    "format/trace": "format/layout format/payloads format/reader format/wire",
    "format/window": "format/tail format/wire",
    "format/wire": "",
    "loopback/algorithms": "loopback/arithmetic loopback/ranks",
    "loopback/api": "loopback/algorithms loopback/ranks",
    "loopback/arithmetic": "",
    "loopback/ranks": "loopback/arithmetic",
    "preload/cuda": "digest include/compat/cuda.h preload/process preload/stack preload/symbols",
    "preload/calls":
        "api common format/tail format/wire preload/engine/fd_table.h preload/process preload/symbols",
    "preload/engine":
        "api format/tail format/wire preload/calls/life_calls.h preload/calls/step_calls.h preload/process"
        " preload/symbols",
    "preload/files": "preload/process",
    "preload/hooks":
        "api digest format/wire preload/calls/call.h preload/calls/input_calls.h preload/calls/process_calls.h"
        " preload/calls/step_calls.h preload/calls/update_call.h preload/engine/checkpoint_registry.h"
        " preload/engine/child_signal.h preload/engine/engine.h preload/process",
    "preload/hooks/clock": "preload/calls/clock_calls.h preload/calls/input_calls.h preload/hooks preload/symbols",
    "preload/hooks/cuda": "include/compat/cuda.h preload/cuda preload/process preload/symbols",
    "preload/hooks/curand":
        "api api/tables include/compat/curand.h preload/calls/call.h preload/calls/nccl_calls.h preload/hooks"
        " preload/symbols",
    "preload/hooks/descriptors":
        "preload/calls/connections.h preload/engine/engine.h preload/engine/fd_table.h preload/calls/meeting_calls.h"
        " preload/files preload/hooks preload/meet preload/process preload/symbols",
    "preload/hooks/entropy": "preload/hooks preload/symbols",
    "preload/hooks/files":
        "preload/calls/connections.h preload/engine/engine.h preload/engine/fd_table.h preload/calls/file_calls.h"
        " preload/calls/folders.h preload/engine/mapped_inputs.h preload/calls/socket_calls.h preload/files"
        " preload/hooks preload/hooks/descriptors preload/meet preload/process preload/symbols",
    "preload/hooks/loading":
        "api preload/calls/process_calls.h preload/hooks preload/hooks/clock preload/hooks/cuda"
        " preload/hooks/curand preload/hooks/descriptors preload/hooks/mpi preload/hooks/nccl preload/hooks/process"
        " preload/process preload/stack preload/symbols",
    "preload/hooks/locks":
        "preload/engine/engine.h preload/calls/input_calls.h preload/calls/life_calls.h preload/calls/lock_calls.h"
        " preload/calls/meeting_calls.h preload/hooks preload/hooks/clock preload/meet preload/process preload/symbols",
    "preload/hooks/mpi":
        "api api/tables preload/calls/call.h preload/engine/engine.h preload/calls/input_calls.h"
        " preload/calls/mpi_calls.h preload/hooks preload/process preload/symbols",
    "preload/hooks/nccl":
        "api api/tables preload/calls/call.h preload/calls/life_calls.h preload/calls/nccl_calls.h preload/hooks"
        " preload/process preload/stack preload/symbols",
    "preload/hooks/process":
        "preload/engine/engine.h preload/calls/input_calls.h preload/calls/life_calls.h preload/calls/process_calls.h"
        " preload/engine/child_signal.h preload/engine/signals.h preload/hooks preload/hooks/loading preload/meet"
        " preload/process preload/stack"
        " preload/symbols",
    "preload/hooks/python":
        "api digest preload/calls/call.h preload/engine/engine.h preload/calls/group_calls.h"
        " preload/calls/life_calls.h preload/calls/lock_calls.h preload/calls/meeting_calls.h preload/hooks"
        " preload/meet/any_order.h preload/process preload/stack preload/symbols",
    "preload/hooks/sockets":
        "preload/calls/connections.h preload/calls/meeting_calls.h preload/calls/socket_calls.h preload/hooks"
        " preload/hooks/descriptors preload/process preload/symbols",
    "preload/meet": "digest format/tail preload/engine preload/process preload/symbols",
    "preload/process": "preload/symbols",
    "preload/stack": "digest format/wire",
    "preload/symbols": "api",
    "read": "format/reader format/trace",
    "recorder/assembly":
        "format/layout format/log preload/cuda preload/calls preload/engine preload/meet preload/process preload/stack"
        " recorder/core"
        " recorder/events recorder/files recorder/inputs recorder/meet recorder/mpi recorder/nccl recorder/sockets"
        " recorder/steps",
    "recorder/core":
        "api digest format/layout format/log format/wire preload/cuda preload/calls preload/engine preload/process"
        " preload/symbols"
        " recorder/events recorder/facts",
    "recorder/events": "api format/log format/tail format/wire preload/process preload/stack",
    "recorder/facts": "format/wire recorder/events",
    "recorder/files":
        "api digest format/wire preload/calls preload/engine preload/files preload/meet preload/process recorder/core"
        " recorder/events",
    "recorder/inputs": "api digest preload/calls preload/engine preload/process recorder/core",
    "recorder/meet":
        "api format/tail preload/calls preload/engine preload/hooks/descriptors preload/meet preload/process"
        " recorder/core recorder/events",
    "recorder/mpi": "digest preload/calls preload/stack recorder/core recorder/events recorder/facts",
    "recorder/nccl":
        "api digest format/tensor format/wire include/compat/curand.h include/compat/nccl.h preload/cuda preload/calls"
        " preload/engine"
        " preload/stack preload/symbols recorder/core recorder/events recorder/facts",
    "recorder/sockets":
        "digest format/wire preload/calls preload/files preload/hooks preload/hooks/descriptors preload/meet"
        " preload/process preload/symbols recorder/core recorder/events",
    "recorder/steps":
        "digest format/tensor preload/cuda preload/calls preload/engine preload/process recorder/core recorder/nccl",
    "replayer/assembly":
        "format/layout preload/calls preload/engine preload/hooks/process preload/process replayer/clocks"
        " replayer/core replayer/files replayer/fold replayer/forks replayer/inputs replayer/meet replayer/mpi"
        " replayer/nccl replayer/process replayer/report replayer/sockets replayer/steps replayer/turns",
    "replayer/clocks": "api format/tail preload/calls replayer/core replayer/plan",
    "replayer/core":
        "api digest format/reader format/scratch format/wire preload/calls preload/engine preload/process"
        " preload/stack replayer/plan replayer/process replayer/report replayer/turns",
    "replayer/devices":
        "include/compat/cuda.h preload/hooks preload/hooks/cuda preload/process preload/symbols replayer/turns",
    "replayer/files":
        "api digest format/scratch preload/calls preload/engine preload/files preload/meet preload/process"
        " preload/symbols replayer/core",
    "replayer/fold":
        "api api/tables digest format/scratch include/compat/nccl.h preload/calls preload/cuda preload/symbols"
        " replayer/core replayer/nccl replayer/process replayer/report replayer/turns",
    "replayer/forks":
        "api format/scratch preload/calls preload/engine preload/process preload/symbols replayer/core replayer/plan"
        " replayer/process replayer/report",
    "replayer/inputs":
        "api preload/calls preload/process preload/symbols replayer/clocks replayer/core replayer/mpi replayer/plan",
    "replayer/meet":
        "api preload/calls preload/engine preload/hooks preload/hooks/descriptors preload/meet preload/process"
        " replayer/core replayer/forks replayer/plan replayer/process",
    "replayer/mpi": "digest preload/calls replayer/core replayer/plan replayer/process",
    "replayer/nccl":
        "api digest include/compat/curand.h include/compat/nccl.h preload/calls preload/cuda preload/symbols"
        " replayer/core replayer/plan replayer/process replayer/report replayer/turns",
    "replayer/plan":
        "api format/log format/reader format/scratch format/tail format/wire include/compat/nccl.h preload/calls",
    "replayer/process": "preload/process",
    "replayer/report":
        "digest format/log format/reader format/scratch format/wire preload/cuda preload/calls preload/engine"
        " preload/process"
        " preload/stack replayer/plan",
    "replayer/sockets":
        "api format/reader preload/calls preload/engine preload/files preload/hooks preload/hooks/descriptors"
        " preload/meet preload/process preload/symbols replayer/core replayer/files replayer/forks replayer/meet"
        " replayer/plan replayer/process replayer/report",
    "replayer/steps":
        "api digest format/reader preload/cuda preload/calls preload/engine preload/process replayer/core"
        " replayer/nccl replayer/report",
    "replayer/turns": "",
}

# Rooms of these may not use one another in a circle.
ONE_WAY = ["preload/engine", "recorder", "replayer"]
LAYERS = ["common", "api", "digest", "format", "preload", "recorder", "replayer", "loopback", "check", "cli"]

# What a user's program includes: examples are such programs, each with headers beside it.
EXAMPLES_MAY_USE = ["include/deja.h", "deja.h"]
# What the replay's Python and gdb sides do not reach: libraries of these rooms are never in the user's process.
READING_ROOMS = ["check", "cli", "common/fmt", "format/trace", "format/pack"]

FORBIDDEN_IN_PROCESS = {
    "libraries that export symbols or need exceptions": re.compile(
        r"^(google/|fmt/|spdlog/|nlohmann/|CLI/|zip\.h|elfutils/|boost/)"),
    "iostreams and locales": re.compile(r"^(iostream|fstream|sstream|ostream|istream|iomanip|locale|regex|format)$"),
    "exceptions": re.compile(r"^(exception|stdexcept)$"),
    "the C++ run-time's threads": re.compile(r"^(future)$"),
}
# Declarations of NCCL, the driver and cuRAND come from include/compat; CUDA's headers from nowhere. Programs that a
# user could have written have <cuda.h>, as <nccl.h>, which is found in include/compat.
FORBIDDEN_IN_PRODUCT = {"CUDA's headers": re.compile(r"^(cuda|cublas|curand)[\w]*\.h$")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)




def within(name, rooms):
    return any(name == room or name.startswith(room + "/") for room in rooms)


def room_of(path):
    return path.rsplit("/", 1)[0]


def allowed(room, included):
    target = room_of(included)
    uses = MAY_USE.get(room, "").split()
    return (target == room or target in uses or included in uses or
            (within(target, ["common"]) and not within(room, ["common"])))


def includes_of(root):
    """(file, its room, line, quoted name or None, name in angle brackets or None) of every include below the layers."""
    for layer in [*LAYERS, "examples"]:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix not in (".cc", ".h", ".c", ".def", ".inc"):
                continue
            text = path.read_text()
            name = path.relative_to(root).as_posix()
            for match in INCLUDE.finditer(text):
                yield name, room_of(name), text.count("\n", 0, match.start()) + 1, *match.groups()


def circle():
    """Rooms of ONE_WAY that may use one another in a circle, the first one again at the end; none: []."""
    path, done = [], set()

    def walk(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return []
        path.append(room)
        for used in MAY_USE.get(room, "").split():
            if within(used, ONE_WAY) and (found := walk(used)):
                return found
        path.pop()
        done.add(room)
        return []

    return next((found for room in MAY_USE if within(room, ONE_WAY) and (found := walk(room))), [])


def check(root):
    violations = []
    if found := circle():
        violations.append("MAY_USE goes in a circle: " + " -> ".join(found))
    for name, room, line, own, system in includes_of(root):
        def complain(what, place=f"{name}:{line}"):
            violations.append(f"{place}: {what}")

        example = within(room, ["examples"])
        if own and "/" in own:
            beside = (root / name).parent / own
            if example:
                fine = own in EXAMPLES_MAY_USE or beside.is_file()
            else:
                fine = allowed(room, own) or beside.is_file() or own.startswith("compat/")
            if not fine:
                complain(f"{room}/ may not include {own}")
        inside = not example and not within(room, READING_ROOMS)
        if inside and own and within(own, READING_ROOMS):
            complain(f"{own} is for the reading side, not for the user's process")
        rules = {**(FORBIDDEN_IN_PROCESS if inside else {}), **({} if example else FORBIDDEN_IN_PRODUCT)}
        for reason, pattern in rules.items():
            if system and pattern.match(system):
                complain(f"<{system}>: {reason} are kept out")
    return violations


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--edges"]
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parents[1]).resolve()
    if "--edges" in sys.argv:
        edges = {(room, room_of(own)) for _, room, _, own, _ in includes_of(root) if own and "/" in own}
        print(*(f"{a} -> {b}" for a, b in sorted(edges) if a != b), sep="\n")
        return 0
    violations = check(root)
    for line in violations:
        print(line)
    if not violations:
        print("every include respects the layers")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
