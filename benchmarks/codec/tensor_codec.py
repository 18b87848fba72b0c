#!/usr/bin/env python3
"""The tensor codec beside its peers on tensors of a real training run: ratio and speed, one thread.

    benchmarks/codec/tensor_codec.py [--data FOLDER] [--rounds 5] [--build build-release] [--python python3] [--all]

Trains and writes the data (training_data.py, run with --python, which needs PyTorch) unless FOLDER has it already. ZipNN is
measured in the same run if this Python can import zipnn_core (PyPI: zipnn), everything else needs Debian's libblosc-dev.
The table has the sets of the last step; --all prints the early ones too.
"""
import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ["zstd-1", "zstd-3", "zstd-19", "shuffle+zstd", "bitshuffle+lz4", "zipnn"]
# ZipNN's arguments for a type: buffers, whether bits and how bytes are moved, bytes of a chunk.
ZIPNN = {
    "fp32": (4, 1, 220, 256 << 10),
    "bf16": (2, 1, 10, 256 << 10),
    "fp16": (2, 0, 10, 256 << 10),
    "e4m3": (1, 1, 10, 128 << 10),
    "e5m2": (1, 1, 10, 128 << 10),
}


def run_zipnn(folder, name, rounds):
    """Bytes and the best seconds; the tensors as one array, as ZipNN gets a file of them."""
    try:
        import zipnn_core
    except ImportError:
        return None
    parameters = ZIPNN.get(name.split("-")[1].split("_")[0])
    if parameters is None:
        return None
    buffers, bits, places, chunk = parameters
    data = (folder / f"{name}.bin").read_bytes()
    encode, decode = [], []
    for _ in range(rounds):
        # It moves the bits of what it is given in place.
        encoded, seconds = timed(zipnn_core.zipnn_core, b"", bytearray(data), buffers, bits, places, 0, chunk, 0.95, 10, 1)
        encode.append(seconds)
        back, seconds = timed(zipnn_core.combine_dtype, encoded, buffers, bits, places, chunk, len(data), 1)
        decode.append(seconds)
        if bytes(back) != data:
            raise SystemExit(f"zipnn: {name} does not come back")
    return len(data), len(encoded), min(encode), min(decode)


def timed(function, *arguments):
    """The result, and processor time of all threads: ZipNN's one thread is one that it makes."""
    begin = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - begin


def measure(options, folder):
    """Of each set and codec: bytes, encoded bytes, seconds to encode, seconds to decode."""
    figures = defaultdict(dict)
    program = options.build.resolve() / "bin" / "bench_tensor_codec"
    with subprocess.Popen([program, folder, str(options.rounds)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            name, codec, *values = line.split()
            figures[name][codec] = (int(values[0]), int(values[1]), float(values[2]), float(values[3]))
            if codec == "entropy":
                zipnn = run_zipnn(folder, name, options.rounds)
                if zipnn:
                    figures[name]["zipnn"] = zipnn
                print(f"\r{name:40}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if process.returncode:
        raise SystemExit(f"{program}: exit {process.returncode}")
    return figures


def speeds(figure):
    size, _, encode, decode = figure
    return f"{size / encode / 1e9:.2f}/{size / decode / 1e9:.2f}"


def print_ratios(figures):
    print("| tensors | deja | bound | of the bound |", " | ".join(PEERS), "|")
    print("| --- |" + " --- |" * (3 + len(PEERS)))
    for name, of in figures.items():
        ratio = {codec: figure[0] / max(figure[1], 1) for codec, figure in of.items()}
        cells = [f"{ratio['deja']:.3f}", f"{ratio['entropy']:.3f}", f"{ratio['deja'] / ratio['entropy']:.3f}"]
        cells += [f"{ratio[p]:.3f} ({ratio['deja'] / ratio[p]:.2f})" if p in ratio else "" for p in PEERS]
        print(f"| {name} |", " | ".join(cells), "|")


def print_deltas(figures):
    print("| tensors | alone | delta | GB/s to encode/decode | alone |")
    print("| --- | --- | --- | --- | --- |")
    for name, of in figures.items():
        if "delta" in of:
            ratios = " | ".join(f"{of[codec][0] / of[codec][1]:.2f}" for codec in ("deja", "delta"))
            print(f"| {name} | {ratios} | {speeds(of['delta'])} | {speeds(of['deja'])} |")


def print_fast(figures):
    print("| tensors | ratio, fast | small | GB/s to encode/decode, fast | of small | of memcpy |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, of in figures.items():
        fast, cells = of["deja-fast"], []
        for codec in ("deja", "memcpy"):
            cells.append("/".join(f"{of[codec][i] / fast[i]:.2f}" for i in (2, 3)))
        ratios = " | ".join(f"{of[codec][0] / of[codec][1]:.2f}" for codec in ("deja-fast", "deja"))
        print(f"| {name} | {ratios} | {speeds(fast)} |", " | ".join(cells), "|")


def print_speeds(figures):
    codecs = [p for p in PEERS if p != "zstd-19"]
    print("| tensors | memcpy | deja | " + " | ".join(codecs) + " |")
    print("| --- |" + " --- |" * (2 + len(codecs)))
    for name, of in figures.items():
        cells = [speeds(of["memcpy"]), speeds(of["deja"])]
        for codec in codecs:
            if codec not in of:
                cells.append("")
                continue
            faster = "/".join(f"{of[codec][i] / of['deja'][i]:.1f}" for i in (2, 3))
            cells.append(f"{speeds(of[codec])} ({faster})")
        print(f"| {name} |", " | ".join(cells), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=Path, default=ROOT / "build-release")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as scratch:
        folder = options.data or Path(scratch)
        if not list(folder.glob("*-late.bin")):
            subprocess.run([options.python, ROOT / "benchmarks" / "codec" / "training_data.py", folder], check=True)
        figures = measure(options, folder)
    if not options.all:
        figures = {name: of for name, of in figures.items() if name.endswith("-late")}
    print("Ratio; in parentheses ours as a multiple of the peer's\n")
    print_ratios(figures)
    print("\nGB/s to encode/decode; in parentheses ours as multiples of the peer's\n")
    print_speeds(figures)
    print("\ndeja record --codec fast\n")
    print_fast(figures)
    print("\nXOR with the same tensor of the step before, then the codec\n")
    print_deltas(figures)


if __name__ == "__main__":
    main()
