#!/usr/bin/env python3
"""Programs of other frameworks: plain, recorded, and each rank replayed alone. docs/FRAMEWORKS.md has the results.

    DEJA_TORCH_PYTHON=PYTHON tests/e2e/frameworks.py [--replays 5] [--minutes N] [--inputs digest full] [--keep FOLDER]
                                                     [NAME…]

The first recording (--inputs digest) has a seed, and prints what the plain run prints; the others have none. A program
whose package the Python lacks is skipped. Ranks take turns, so that --minutes cuts all of them alike. A program with a
replay that was not equal keeps its recordings and the output of such replays, with or without --keep; a line names
the folder. It takes long and needs packages that nothing else needs, so it is no test of ctest.
"""
import argparse
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
import stuck
import torch_jobs

PYTHON = torch_jobs.PYTHON
FRAMEWORKS = harness.ROOT / "tests" / "e2e" / "apps" / "frameworks"
TORCH = harness.ROOT / "tests" / "e2e" / "apps" / "torch"
TIMEOUT = 300


@dataclasses.dataclass
class Program:
    package: str  # what the Python has to have
    start: str  # "torchrun"; "own": the program starts its ranks; "single": a recording a process, each with --single
    words: list  # of the command; {folder} and {port} are filled in
    ranks: int = 2
    env: dict = dataclasses.field(default_factory=dict)
    seeds_are_enough: bool = True  # a plain run and a recorded one print the same with one seed


def of_torch(name, ranks=2, **env):
    return Program("torch", "torchrun", [TORCH / f"{name}.py"], ranks, env)


def ours(package, start, name, *words, **fields):
    return Program(package, start, [FRAMEWORKS / f"{name}.py", *words], **fields)


PROGRAMS = {
    "left-early": dataclasses.replace(of_torch("standalone/left_early", 4), seeds_are_enough=False),
    "loader": of_torch("train", MODE="workers"),
    "fsdp2": of_torch("train", MODE="fsdp2"),
    "compiled": of_torch("train", MODE="compiled"),
    "objects": of_torch("unequal_objects"),
    "single-tensors": of_torch("single_tensors"),
    "async-save": ours("torch", "torchrun", "async_save", "{folder}"),
    "async-save-workers": ours("torch", "torchrun", "async_save", "{folder}", "2"),
    "fork": Program("torch", "own", [TORCH / "standalone" / "spawned.py", "tcp://127.0.0.1:{port}", "fork"], seeds_are_enough=False),
    "spawn-tcp": ours("torch", "own", "spawn_tcp", "{port}"),
    "trainer": ours("transformers", "torchrun", "hf_trainer", "{folder}", env={"HF_HUB_OFFLINE": "1"}),
    "datasets": dataclasses.replace(ours("datasets", "torchrun", "hf_datasets", "{folder}"), seeds_are_enough=False),
    "webdataset": dataclasses.replace(ours("webdataset", "torchrun", "web_dataset", "{folder}"), seeds_are_enough=False),
    "stateful-loader": ours("torchdata", "torchrun", "stateful_loader", "{folder}"),
    "streaming": ours("streaming", "torchrun", "mosaic_streaming", "{folder}"),
    "inductor": ours("torch", "torchrun", "inductor", "{folder}"),
    "lightning-ddp": ours("lightning", "own", "lightning_ddp", "{folder}", "ddp"),
    "lightning-spawn": ours("lightning", "own", "lightning_ddp", "{folder}", "ddp_spawn"),
    "lightning-fork": ours("lightning", "own", "lightning_ddp", "{folder}", "ddp_fork"),
    "deepspeed-2": ours("deepspeed", "torchrun", "deepspeed_zero", "2", env={"DS_ACCELERATOR": "cpu"}),
    "deepspeed-3": ours("deepspeed", "torchrun", "deepspeed_zero", "3", env={"DS_ACCELERATOR": "cpu"}),
    "accelerate-script": Program("accelerate", "torchrun", ["-m", "accelerate.test_utils.scripts.test_script"],
                                 env={"ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}),
    "accelerate-sync": Program("accelerate", "torchrun", ["-m", "accelerate.test_utils.scripts.test_sync"],
                               env={"ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}),
    "rpc": ours("torch", "torchrun", "rpc"),
    "rpc-single": ours("torch", "single", "rpc"),
    "ray": ours("ray", "own", "ray_train", "{folder}"),
    "jax": ours("jax", "single", "jax_processes"),
    "xgboost": ours("xgboost", "single", "xgboost_collective"),
    "tensorflow": ours("tensorflow", "single", "tensorflow_workers", env={"CUDA_VISIBLE_DEVICES": ""}),
    "horovod": Program("horovod", "own", ["-m", "horovod.runner.launch", "-np", "2", "--gloo", PYTHON, FRAMEWORKS / "horovod_torch.py"]),
}


def has(package):
    return subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0


def ended(process, timeout=TIMEOUT):
    """(code, what it printed, what it said); the code is "stands" where it had to be killed, and what its processes did
    then is added to what it said."""
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        code = "stands"
        doing = stuck.describe(process.pid)
        process.terminate()  # a launcher ends its ranks, which are in sessions of their own
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        err += doing.encode()
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def started(argv, env, folder):
    full = {name: value for name, value in os.environ.items() if not name.startswith("DEJA_")}
    return subprocess.Popen([str(word) for word in argv], env={**full, **env}, cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def run_job(program, folder, env, recorder=None):
    """The whole job. recorder(rank) gives the words before the command, rank None: of the whole job. One end for each
    process."""
    folder.mkdir(parents=True)
    port = harness.free_port()
    words = [str(word).format(folder=folder, port=port) for word in program.words]
    before = recorder or (lambda rank: [])
    if program.start == "single":
        places = [{"RANK": str(rank), "WORLD_SIZE": str(program.ranks), "MASTER_PORT": str(port), "MASTER_ADDR": "127.0.0.1"}
                  for rank in range(program.ranks)]
        jobs = [started([*before(rank), PYTHON, *words], {**env, **place}, folder) for rank, place in enumerate(places)]
    else:
        launcher = ["-m", "torch.distributed.run", *torch_jobs.REDIRECTIONS, "--nproc_per_node", program.ranks,
                    "--master_port", port]
        jobs = [started([*before(None), PYTHON, *(launcher if program.start == "torchrun" else []), *words], env, folder)]
    return [ended(job) for job in jobs]


def of_rank(rank, text):
    """What the rank printed. Python without a buffer writes a line's end by itself, so two ranks may have one line."""
    return [line.rstrip() for line in re.findall(rf"rank {rank} (?:(?!rank \d+ ).)*", text)]


def printed_by_nobody(replayed, recorded):
    """Lines of a replay that the recorded run did not print; there those of other ranks may stand in the same line."""
    lines = (line for line in replayed.splitlines() if not re.match(r"(rank \d+(, attempt \d+)?|deja): ", line))
    return [line for line in lines if line not in recorded]


def what_differs(code, out, rank, recorded):
    verdict = next((line for line in reversed(out.splitlines()) if re.match(r"rank \d+.*: ", line)), "no verdict")
    if "the same as recorded" not in verdict or "diverged" in verdict or "exit 0" in verdict and code != 0:
        return f"code {code}: {verdict}" if code != "stands" else "stands"
    if of_rank(rank, out) != of_rank(rank, recorded):
        return f"other lines than recorded, {verdict}"
    other = printed_by_nobody(out[:out.rindex(verdict)], recorded)
    return f"a line that was not recorded: {other[0]}" if other else ""


def try_replay(trace, rank, number, recorded):
    """"" when it is equal, else what is not."""
    if not trace.exists():
        return "there is no trace"
    argv = [harness.DEJA, "replay", trace, "--rank", rank]
    code, out, err = ended(started(argv, {"MASTER_PORT": "1"}, trace.parent))
    wrong = what_differs(code, out, rank, recorded)
    if wrong:
        kept = trace.parent / f"{trace.stem}-rank{rank}-replay{number}"
        kept.with_suffix(".out").write_text(out)
        kept.with_suffix(".err").write_text(err)
        print(f"  {kept}: {wrong}", flush=True)
    return wrong


def try_replays(name, program, options, inputs, folder, recorded):
    """All ranks of one recording, in turns. True: all of them equal."""
    until = time.monotonic() + 60 * options.minutes if options.minutes else None
    found = {rank: [] for rank in range(program.ranks)}
    for number in range(options.replays):
        for rank, outcomes in found.items():
            if outcomes[-1:] in (["stands"], ["there is no trace"]) or until and time.monotonic() > until:
                continue
            trace = folder / (f"{inputs}-{rank}.deja" if program.start == "single" else f"{inputs}.deja")
            outcomes.append(try_replay(trace, rank, number, recorded))
    for rank, outcomes in found.items():
        wrong = [what for what in outcomes if what]
        print(f"{name}: --inputs {inputs}: rank {rank}: {outcomes.count('')} of {len(outcomes)} equal"
              f"{'; ' + wrong[0] if wrong else ''}", flush=True)
    return not any(what for outcomes in found.values() for what in outcomes)


def try_program(name, program, options, folder):
    """True: each replay was equal."""
    all_equal = True
    env = {**program.env}
    seeded = {**env, "JOB_SEED": "5"}
    plain = run_job(program, folder / "plain", seeded)
    print(f"{name}: plain: exit {[end[0] for end in plain]}", flush=True)
    for inputs in options.inputs:
        with_seed = inputs == "digest"

        def recorder(rank, inputs=inputs):
            where = folder / (f"{inputs}-{rank}.deja" if rank is not None else f"{inputs}.deja")
            single = ["--single"] if rank is not None else []
            return [harness.DEJA, "record", *single, "--inputs", inputs, "--out", where, "--"]

        ends = run_job(program, folder / f"run-{inputs}", seeded if with_seed else env, recorder)
        texts = [out for _, out, _ in ends]
        said = sorted({line for _, _, err in ends for line in err.splitlines() if line.startswith("deja: not recorded")
                       or line.startswith("deja: nothing was recorded")})
        for number, (_, out, err) in enumerate(ends):
            (folder / f"run-{inputs}-{number}.out").write_text(out)
            (folder / f"run-{inputs}-{number}.err").write_text(err)
        alike = ""
        if with_seed and program.seeds_are_enough:
            same = all(of_rank(rank, "".join(texts)) == of_rank(rank, "".join(out for _, out, _ in plain))
                       for rank in range(program.ranks))
            alike = ", prints what the plain run prints" if same else ", PRINTS OTHER LINES than the plain run"
        print(f"{name}: recorded with --inputs {inputs}: exit {[end[0] for end in ends]}{alike}", flush=True)
        for line in said:
            print(f"  {line}")
        all_equal &= try_replays(name, program, options, inputs, folder, "".join(texts))
    return all_equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--replays", type=int, default=5)
    parser.add_argument("--minutes", type=float, help="the replays of one recording begin within")
    parser.add_argument("--inputs", nargs="+", default=["digest", "full"], choices=["digest", "full"])
    parser.add_argument("--keep", type=Path, help="a folder for all that is run")
    options = parser.parse_args()
    unknown = set(options.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    folder = Path(options.keep or tempfile.mkdtemp(prefix="deja-frameworks-")).resolve()
    for name in options.names or PROGRAMS:
        program = PROGRAMS[name]
        if not has(program.package):
            print(f"{name}: skipped: {PYTHON} has no {program.package}")
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        if try_program(name, program, options, folder / name):
            if not options.keep:
                shutil.rmtree(folder / name, ignore_errors=True)
        else:
            print(f"{name}: kept: {folder / name}", flush=True)
    if not options.keep and not any(folder.iterdir()):
        folder.rmdir()


if __name__ == "__main__":
    main()
