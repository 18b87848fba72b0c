#!/usr/bin/env python3
"""How long a replay takes to reach a late place from the last checkpoint, and from the start, over the length of the
run.

    benchmarks/replay/late_replay.py [--build build] [--lengths 1500,15000,150000] [--runs 5] [--ranks 2] [--batch 1]

Records the digits example with a checkpoint every 100 steps and --fault=nan. The seed has its first NaN in the last
tenth of the run (late_nan_seed.cc). Replays rank 0 to the first operation that a NaN goes into or comes out of:
`deja replay --until-seq`, which starts at the checkpoint before it. Runs that are not too long are also replayed from
the start. The table has the processor time of `deja` and of the program, and the elapsed time, which depends on what
else the machine does.
"""
import argparse
import json
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

EVERY = 100
LONGEST_FROM_START = 2000


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(argv):
    """(elapsed, used) seconds, and the run."""
    begin, used = time.monotonic(), processor_seconds()
    run = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    return (time.monotonic() - begin, processor_seconds() - used), run


class Bench:
    def __init__(self, build, folder, ranks, batch):
        self.ranks, self.batch = ranks, batch
        self.deja, self.train = build / "bin" / "deja", build / "examples" / "digits" / "digits_train"
        self.trace = folder / "run.deja"

    def record(self, steps, *args):
        shutil.rmtree(self.trace, ignore_errors=True)
        return timed([self.deja, "record", "--loopback", "-n", self.ranks, "--checkpoint-every", EVERY, "--out", self.trace, "--", self.train,
                      f"--batch={self.batch}", f"--steps={steps}", "--log-every=1000000", *args])[0][0]

    def first_nan(self, step):
        """Number of the first operation with a NaN in that step or after it, and its step."""
        show = [str(a) for a in (self.deja, "show", self.trace, "--rank", 0, "--kind", "step,enter,results", "--step", f"{step}-", "--json")]
        with subprocess.Popen(show, stdout=subprocess.PIPE, text=True) as events:
            for line in events.stdout:
                event = json.loads(line)
                step = event["step"] if event["kind"] == "step" else step
                if any(tensor.get("nan") for tensor in event.get("inputs", []) + event.get("outputs", [])):
                    events.kill()
                    return event["seq_on_comm"], step
        raise SystemExit("no NaN where it should be")

    def replay(self, *options):
        seconds, run = timed([self.deja, "replay", self.trace, "--rank", 0, *options])
        if run.returncode != 0:
            raise SystemExit(f"{run.args}\n{run.stdout}{run.stderr}")
        return seconds


def measure(bench, until, from_start, runs):
    late = [bench.replay(*until) for _ in range(runs)]
    start = [bench.replay(*until, "--from-step", 0) for _ in range(runs)] if from_start else []
    spread = [" of the processor, ".join(f"{min(v):.2f} to {max(v):.2f} s" for v in (list(zip(*pairs))[1], list(zip(*pairs))[0])) +
              " elapsed" if pairs else "not measured" for pairs in (late, start)]
    return f"from the checkpoint {spread[0]}; from the start {spread[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--lengths", default="1500,15000,150000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2, help="with 1 nobody waits for anybody while it is recorded")
    parser.add_argument("--batch", type=int, default=1, help="samples a step: with 1 a long run is recorded in minutes")
    options = parser.parse_args()
    find_seed = next(path for path in (options.build / "bin" / "late_nan_seed", options.build / "benchmarks" / "late_nan_seed") if path.exists())
    with tempfile.TemporaryDirectory(prefix="late-replay-") as folder:
        bench = Bench(options.build.resolve(), Path(folder), options.ranks, options.batch)
        for steps in map(int, options.lengths.split(",")):
            found = subprocess.run([str(a) for a in (find_seed, steps, options.ranks, options.batch)], capture_output=True, text=True, check=True)
            seed, nan = map(int, found.stdout.split())
            seconds = bench.record(steps, "--fault=nan", f"--seed={seed}")
            operation, step = bench.first_nan(nan)
            text = measure(bench, ["--until-seq", operation, "--comm", 0], steps <= LONGEST_FROM_START, options.runs)
            print(f"{steps} steps, recorded in {seconds:.1f} s, to the NaN at step {step}, {step % EVERY} from the checkpoint: {text}", flush=True)


if __name__ == "__main__":
    main()
