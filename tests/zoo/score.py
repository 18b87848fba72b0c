#!/usr/bin/env python3
"""Records the programs of the zoo and scores what `deja check` finds in them.

usage: tests/zoo/score.py [--build DIR] [--seconds N] [--keep DIR] [CASE …]

Each case is programs/CASE.cc (or .py), with one bug, and expected/CASE.json. That names the kind of finding, the ranks
to blame, and the number of the collective on its communicator. It also names the source file whose line is marked
PLACE, and words of the evidence. `program`, `args` and `options` name another program, its arguments and options of
`deja record`. With `second` there are two recordings: another run, or one that is resumed; `environment` is that of
each. The same program with --fixed is the clean twin, in which nothing may be found. Prints a table; exits 1 if a row
is not right.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = os.environ.get("DEJA_TORCH_PYTHON", "/usr/bin/python3")


def marked_line(case, name):
    """The line of the source that is marked PLACE."""
    text = (HERE / "programs" / name).read_text().splitlines()
    lines = [number for number, line in enumerate(text, 1) if line.rstrip().endswith(" PLACE")]
    if len(lines) != 1:
        sys.exit(f"{case}: {name} has {len(lines)} lines that are marked PLACE")
    line = lines[0]
    # Debug information names the first line of a statement.
    while name.endswith(".cc") and text[line - 2].rstrip()[-1:] not in ("", ";", "{", "}", ")"):
        line -= 1
    return line


class Zoo:
    def __init__(self, build, folder, seconds):
        self.deja = build / "bin" / "deja"
        self.apps = build / "tests" / "zoo"
        self.examples = build / "examples" / "digits"
        self.folder, self.seconds = folder, seconds
        # A file system in memory lists files as they were made, others by a hash of their names.
        self.data = Path(tempfile.mkdtemp(prefix="deja-zoo-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))

    def data_for(self, case, second):
        """A folder with four files, which a copy puts there in another order."""
        folder = self.data / f"{case}.data"
        if second != "resumed":
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for number in (3, 0, 2, 1) if second else range(4):
                (folder / f"part-{number}").write_bytes(bytes(range(number, number + 4)))
        return folder

    def record(self, case, expected, fixed, second=""):
        """The trace of one run; a job that hangs is ended as a user ends it."""
        trace = self.folder / f"{case}{'-fixed' if fixed else ''}{'-second' if second else ''}.deja"
        name = expected.get("program", f"zoo_{case}")
        if case.startswith("torch_"):
            program = [PYTHON, HERE / "programs" / f"{case}.py"]
        else:
            program = [self.apps / name if (self.apps / name).exists() else self.examples / name]
        args = expected.get("fixed_args" if fixed else "args", ["--fixed"] if fixed else [])
        if second == "resumed":
            args = [*args, "--resume"]
        argv = [self.deja, "record", "--loopback", "-n", str(expected["ranks"]), "--level", "digest", "--out", trace,
                "--grace", "2", *expected.get("options", []), "--", *program, *args]
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEJA_")}
        env["XDG_STATE_HOME"] = str(self.folder)
        env.update(expected.get("environment", [{}, {}])[bool(second)])
        if expected.get("data"):
            env["ZOO_DATA"] = str(self.data_for(case, second))
        stranger = socket.create_server(("127.0.0.1", 0)) if expected.get("port_is_taken") else None
        if stranger is not None:
            env["TAKEN_PORT"] = str(stranger.getsockname()[1])
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        hung = False
        try:
            # A program that is to hang does nothing more after a few seconds.
            process.wait(timeout=self.patience(case, expected, fixed))
        except subprocess.TimeoutExpired:
            hung = True
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return trace, hung

    def patience(self, case, expected, fixed):
        """Seconds after which a run is ended: of a program that is to hang nothing more comes once it has begun."""
        if not expected.get("hangs") or fixed:
            return 4 * self.seconds
        return max(4, self.seconds / 2) if case.startswith("torch_") else 4

    def run(self, case, expected, fixed):
        """What `deja check` says of the program, and whether it hung."""
        trace, hung = self.record(case, expected, fixed)
        kind = expected.get("second")
        if not kind:
            return self.check(trace), hung
        second, hung_again = self.record(case, expected, fixed, kind)
        return self.check(trace, *(["--resumed"] if kind == "resumed" else []), second), hung or hung_again

    def check(self, trace, *others):
        done = subprocess.run([self.deja, "check", trace, *others, "--json"], capture_output=True, text=True, check=False)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            report = {"findings": [], "notes": [done.stderr.strip()]}
        report["code"] = done.returncode
        return report

    def commands_work(self, finding):
        """Whether the commands that it names as the next ones run (those that show)."""
        for line in finding["next"]:
            if not line.startswith("deja show "):
                continue
            done = subprocess.run([self.deja, *line.split()[1:]], capture_output=True, text=True, check=False)
            if done.returncode != 0 or not done.stdout.strip():
                return False
        return True


def places(finding):
    return [f"{place['file']}:{place['line']}" for side in finding["sides"] for place in side["places"]]


def wrong_with(zoo, case, expected, report):
    """What is not as expected, in words; empty: all is right."""
    if len(report["findings"]) != 1:
        return f"{len(report['findings'])} findings: " + ", ".join(f["kind"] for f in report["findings"])
    finding = report["findings"][0]
    if report["code"] != 4:
        return f"exit {report['code']}"
    if finding["kind"] not in expected["kind"].split("|"):
        return f"kind {finding['kind']}: {finding['sentence']}"
    blamed = expected.get("blamed")
    if blamed is not None and finding["ranks"] != blamed:
        return f"ranks {finding['ranks']}: {finding['sentence']}"
    if "blamed_count" in expected and len(finding["ranks"]) != expected["blamed_count"]:
        return f"ranks {finding['ranks']}: {finding['sentence']}"
    if "collective" in expected and finding.get("collective") != expected["collective"]:
        return f"collective {finding.get('collective')}: {finding['sentence']}"
    place = expected.get("place")
    if place and (HERE / "programs" / place).exists():
        place = f"{place}:{marked_line(case, place)}"
    if place and not any(at == place or at.startswith(place + ":") for at in places(finding)):
        return f"places {places(finding)}, not {place}"
    said = finding["sentence"] + " ".join(finding["evidence"])
    if expected.get("evidence", "") not in said:
        return f"nothing of {expected['evidence']}: {said}"
    if not zoo.commands_work(finding):
        return f"a command does not work: {finding['next']}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build")))
    parser.add_argument("--seconds", type=float, default=60, help="after which a run is taken to hang")
    parser.add_argument("--keep", type=Path, help="a folder for the traces; default: none is kept")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    cases = options.cases or sorted(path.stem for path in (HERE / "expected").glob("*.json"))
    folder = options.keep or Path(tempfile.mkdtemp(prefix="deja-zoo-"))
    folder.mkdir(parents=True, exist_ok=True)
    zoo = Zoo(options.build.resolve(), folder, options.seconds)
    good = 0
    print(f"{'case':<20} {'finding':<10} {'clean twin':<10} what is wrong")
    try:
        for case in cases:
            expected = json.loads((HERE / "expected" / f"{case}.json").read_text())
            for leftover in folder.glob(f"{case}*.deja"):
                shutil.rmtree(leftover)
            report, _ = zoo.run(case, expected, False)
            wrong = wrong_with(zoo, case, expected, report)
            clean, hung = zoo.run(case, expected, True)
            silent = not clean["findings"] and clean["code"] == 0 and not hung
            if not silent:
                wrong += f"; the clean twin: {'hung; ' if hung else ''}" + "; ".join(
                    f["kind"] + ": " + f["sentence"] for f in clean["findings"]) + " ".join(clean["notes"])
            good += not wrong
            found = "right" if not wrong or not wrong.split("; the clean")[0] else "WRONG"
            print(f"{case:<20} {found:<10} {'silent' if silent else 'NOT':<10} {wrong}", flush=True)
    finally:
        shutil.rmtree(zoo.data, ignore_errors=True)
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{good} of {len(cases)} right")
    return 0 if good == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
