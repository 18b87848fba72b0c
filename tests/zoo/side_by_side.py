#!/usr/bin/env python3
"""What PyTorch's own tools say of the zoo's programs of PyTorch, on processors.

usage: DEJA_TORCH_PYTHON=PYTHON tests/zoo/side_by_side.py OUT [--seconds N] [CASE …]

Runs each program twice without Deja. Once is with the Flight Recorder of its gloo groups, whose dumps torchfrtrace
analyzes afterwards, once with TORCH_DISTRIBUTED_DEBUG=DETAIL. A run is ended after N seconds. Then each rank dumps what
its Flight Recorder has, as torch does when an operation times out. The dumps of gloo's groups lack the members of
groups, without which torchfrtrace gives up: these are put in. CASE.fr.txt in OUT has what torchfrtrace printed,
CASE.detail.txt what the ranks printed. A case of two runs has both in it, one after the other. Needs torch 2.10 or
newer.
"""
import argparse
import json
import os
import shutil
import signal
import socket
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


def launch(script, args, expected, environment, seconds, data, second=""):
    """What the ranks printed, rank by rank."""
    ranks = []
    if second == "resumed":
        args = [*args, "--resume"]
    for rank in range(expected["ranks"]):
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEJA_")}
        env.update(expected.get("environment", [{}, {}])[bool(second)])
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


def data_in(folder, second=""):
    """Four files, which some programs read; another run finds them in another order, a resumed one what is there."""
    data = folder / "data"
    if second != "resumed":
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        for number in (3, 0, 2, 1) if second else range(4):
            (data / f"part-{number}").write_bytes(bytes(range(number, number + 4)))
    return data


def with_recorder(case, expected, folder, seconds, second=""):
    """What torchfrtrace prints of a run's dumps, and what the ranks printed."""
    program = HERE / "programs" / f"{case}.py"
    dumps = folder / f"{case}.dumps{'.second' if second else ''}"
    dumps.mkdir()
    recorder = {"TORCH_FR_BUFFER_SIZE": "2000", "ZOO_DUMPS": str(dumps), "ZOO_SECONDS": str(seconds)}
    printed = launch([folder / "dumper.py", program], expected.get("args", []), expected, recorder, seconds + 90,
                     data_in(folder, second), second)
    analyzer = Path(PYTHON).with_name("torchfrtrace")
    done = subprocess.run([analyzer, dumps, "--prefix", "nccl_trace_rank_"], capture_output=True, text=True, check=False)
    return f"{len(list(dumps.iterdir()))} dumps, exit {done.returncode}\n{done.stdout}{done.stderr}\n{printed}"


def with_detail(case, expected, folder, seconds, second=""):
    return launch([HERE / "programs" / f"{case}.py"], expected.get("args", []), expected,
                  {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, seconds + 45, data_in(folder, second), second)


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
            runs = ["", expected["second"]] if "second" in expected else [""]
            # Where a program of the zoo finds another one at its port.
            with socket.create_server(("127.0.0.1", 0)) as stranger:
                if expected.get("port_is_taken"):
                    os.environ["TAKEN_PORT"] = str(stranger.getsockname()[1])
                for kind, run in (("fr", with_recorder), ("detail", with_detail)):
                    texts = [run(case, expected, folder, options.seconds, second) for second in runs]
                    (options.out / f"{case}.{kind}.txt").write_text("=== second run\n".join(texts))
            print(case, flush=True)


if __name__ == "__main__":
    main()
