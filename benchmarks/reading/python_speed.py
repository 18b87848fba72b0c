#!/usr/bin/env python3
"""How fast deja.trace reads the tensors of a trace, beside the C++ reader; and how long it takes to open many ranks.

usage: python_speed.py [--build build] [--megabytes 1000] [--counts 262144 16384] [--ranks 1024] [--runs 5]
                       [--collectives 100 1000] [--parts ranks operations]

Records a job of one rank (stepper): all-reduces of `--counts` floats, `--megabytes` in all. C++ (tensor_speed) and
Python read all results in turns, in processes of their own. Each result goes into its own memory, or all into one
buffer. The times leave out the start of the process. They are elapsed time, and processor time, which other work on
the machine disturbs less; the least of all runs counts. The page cache is warm. Traces are removed. Needs NumPy.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))


def read_all(directory, program, way):
    """Seconds, of the processor, and bytes of one run; `way` is how the tensors are asked for."""
    import numpy
    from deja.trace import Trace

    begin, begin_processor = time.perf_counter(), time.process_time()
    done = 0
    with Trace(directory, program=program) as trace:
        infos = [one for one in trace.tensor_infos(0) if one.is_result and one.bytes > 0]
        room = numpy.empty(infos[0].count, numpy.float32) if way == "tensor, one buffer" else None
        for one in infos:
            if way.startswith("tensor"):
                done += trace.tensor(one.rank, one.comm, one.seq, out=room).nbytes
            else:
                done += trace.read(one).nbytes
    return time.perf_counter() - begin, time.process_time() - begin_processor, done


def processor_time():
    """Seconds of this process and of the children that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure_open(directory, program, part):
    from deja.trace import Trace

    def took(read):
        begin, begin_processor = time.perf_counter(), processor_time()
        found = read()
        return time.perf_counter() - begin, processor_time() - begin_processor, len(found)

    with Trace(directory, program=program) as trace:
        return took(lambda: trace.operations if part == "operations" else [*trace.ranks, *trace.communicators])


def told(argv):
    return subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


def this(*words):
    return told([sys.executable, __file__, "--worker", *words])


def speeds(build, folder, megabytes, count, runs):
    deja, trace = build / "bin" / "deja", folder / "tensors.deja"
    steps = max(megabytes * 1_000_000 // (4 * count), 1)
    told([deja, "record", "--loopback", "-n", "1", "--level", "full", "--out", trace, "--",
          build / "tests" / "apps" / "stepper", f"--steps={steps}", "--calls=1", f"--count={count}"])
    size = sum(path.stat().st_size for path in trace.rglob("*") if path.is_file())
    print(f"\n{steps} results of {4 * count / 1000:,.0f} kB, {size / 1e6:.0f} MB on disk\n")
    seconds = {}
    total = 0

    def note(way, elapsed, processor):
        before = seconds.get(way, (float("inf"),) * 2)
        seconds[way] = min(before[0], float(elapsed)), min(before[1], float(processor))

    for _ in range(runs):
        for line in told([build / "bin" / "tensor_speed", trace]).splitlines():
            way, *took, total = line.split()
            note(f"C++, {way}", *took)
        for way in ("tensor", "read", "tensor, one buffer"):
            *took, read = this("read", trace, deja, way).split()
            assert read == total, (read, total)
            note(f"Python, {way}", *took)
    print("| reader | GB/s elapsed | part of C++ | GB/s of processor time | part of C++ |\n| --- | --- | --- | --- | --- |")
    for way, took in seconds.items():
        peer = seconds["C++, one-buffer" if way.endswith("buffer") else "C++, own-memory"]
        cells = [f"{int(total) / 1e9 / own:.2f} | {other / own:.2f}" for own, other in zip(took, peer)]
        print(f"| {way} | {' | '.join(cells)} |", flush=True)
    shutil.rmtree(trace)


def opening(build, folder, ranks, collectives, runs, parts):
    trace = folder / "ranks.deja"
    told([build / "tests" / "zoo" / "zoo_many_ranks", trace, ranks, collectives])
    for part in parts:
        took = [[float(one) for one in this("open", trace, build / "bin" / "deja", part).split()] for _ in range(runs)]
        elapsed, processor, _ = zip(*took)
        print(f"{ranks} ranks x {collectives} collectives: {part}: {min(elapsed):.2f} s (to {max(elapsed):.2f}), "
              f"{min(processor):.2f} s of processor time (to {max(processor):.2f})", flush=True)
    shutil.rmtree(trace)


def main():
    if sys.argv[1:2] == ["--worker"]:
        print(*{"read": read_all, "open": measure_open}[sys.argv[2]](*sys.argv[3:]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--counts", type=int, nargs="*", default=[262144, 16384])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--collectives", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--parts", nargs="*", default=["ranks", "operations"])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deja-bench-"))
    try:
        print(f"load {os.getloadavg()[0]:.1f}")
        for count in args.counts:
            speeds(args.build.resolve(), folder, args.megabytes, count, args.runs)
        for collectives in args.collectives:
            opening(args.build.resolve(), folder, args.ranks, collectives, args.runs, args.parts)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
