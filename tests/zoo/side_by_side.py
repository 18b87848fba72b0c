#!/usr/bin/env python3
"""What PyTorch's own tools say of the zoo's programs of PyTorch, on processors.

usage: DEJA_TORCH_PYTHON=PYTHON tests/zoo/side_by_side.py OUT [--seconds N] [CASE …]

Runs each program twice without Deja. Once is with the Flight Recorder of its gloo groups, whose dumps torchfrtrace
analyzes afterwards, once with TORCH_DISTRIBUTED_DEBUG=DETAIL. A run is ended after N seconds. Then each rank dumps what
its Flight Recorder has, as torch does when an operation times out. The dumps of gloo's groups lack the members of
groups, without which torchfrtrace gives up: these are put in. CASE.fr.txt in OUT has what torchfrtrace printed,
CASE.detail.txt what the ranks printed. Needs torch 2.10 or newer.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = os.environ.get("DEJA_TORCH_PYTHON", sys.executable)

# Runs a program; after some seconds, or at its end, the rank's Flight Recorder is dumped.
DUMPER = """
import os, pickle, runpy, sys, threading, time
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

def dump():
    trace = pickle.loads(c10d._dump_fr_trace())
    world = dist.distributed_c10d._world
    if not set(world.pg_names.values()) <= set(trace["pg_config"]):  # gloo's groups are one there, without a name
        trace["pg_config"] = {name: {"name": name, "desc": "group " + name, "ranks": str(sorted(world.pg_group_ranks[group]))}
                              for group, name in world.pg_names.items()}
    with open(os.path.join(os.environ["ZOO_DUMPS"], "nccl_trace_rank_" + os.environ["RANK"]), "wb") as file:
        pickle.dump(trace, file)

def destroy(*args, **kwargs):
    dump()  # while it has its groups
    has_dumped.append(True)
    return really_destroy(*args, **kwargs)

has_dumped = []
really_destroy, dist.destroy_process_group = dist.destroy_process_group, destroy

def watch():
    time.sleep(float(os.environ["ZOO_SECONDS"]))
    dump()
    os._exit(9)

threading.Thread(target=watch, daemon=True).start()
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    if not has_dumped:
        dump()
"""


def launch(script, args, expected, environment, seconds, data):
    """What the ranks printed, rank by rank."""
    ranks = []
    for rank in range(expected["ranks"]):
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEJA_")}
        env.update(expected.get("environment", [{}])[0])
        env.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(expected["ranks"]), ZOO_DATA=str(data), **environment)
        ranks.append(subprocess.Popen([PYTHON, *script, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, start_new_session=True))
    end = time.monotonic() + seconds
    printed = []
    for rank, process in enumerate(ranks):
        try:
            out, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            out += "(hangs)\n"
        printed.append(f"--- rank {rank}, exit {process.returncode}\n{out}")
    return "".join(printed)


def data_in(folder):
    """Four files, which some programs read."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    for number in range(4):
        (data / f"part-{number}").write_bytes(bytes(range(number, number + 4)))
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_intermixed_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = options.cases or sorted(path.stem for path in (HERE / "expected").glob("torch_*.json"))
    with tempfile.TemporaryDirectory(prefix="deja-zoo-") as folder:
        folder = Path(folder)
        (folder / "dumper.py").write_text(DUMPER)
        for case in cases:
            expected = json.loads((HERE / "expected" / f"{case}.json").read_text())
            program = HERE / "programs" / f"{case}.py"
            dumps = folder / f"{case}.dumps"
            dumps.mkdir()
            recorder = {"TORCH_FR_BUFFER_SIZE": "2000", "ZOO_DUMPS": str(dumps), "ZOO_SECONDS": str(options.seconds)}
            printed = launch([folder / "dumper.py", program], expected.get("args", []), expected, recorder,
                             options.seconds + 90, data_in(folder))
            analyzer = Path(PYTHON).with_name("torchfrtrace")
            done = subprocess.run([analyzer, dumps, "--prefix", "nccl_trace_rank_"], capture_output=True, text=True, check=False)
            (options.out / f"{case}.fr.txt").write_text(
                f"{len(list(dumps.iterdir()))} dumps, exit {done.returncode}\n{done.stdout}{done.stderr}\n{printed}")
            printed = launch([program], expected.get("args", []), expected, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
                             options.seconds + 45, data_in(folder))
            (options.out / f"{case}.detail.txt").write_text(printed)
            print(case, flush=True)


if __name__ == "__main__":
    main()
