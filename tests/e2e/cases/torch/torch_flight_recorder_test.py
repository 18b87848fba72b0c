#!/usr/bin/env python3
"""Dumps of PyTorch's Flight Recorder: what deja makes of PyTorch's own, and what PyTorch makes of deja's.

The job runs under deja record and writes its own dumps, so both tell of the same run.
"""
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
import torch_jobs  # noqa: E402

RANKS = 3


def has_recorder():
    """Gloo has it from 2.8 on, the analyzer is in PyTorch from 2.10 on."""
    asked = [torch_jobs.PYTHON, "-c", "from torch._C._distributed_c10d import _dump_fr_trace;"
             "import torch.distributed.flight_recorder.fr_trace"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(torch_jobs.VERSION, "needs torch with gloo")
@unittest.skipUnless(has_recorder(), "needs a torch whose gloo has the Flight Recorder (2.10)")
class FlightRecorder(torch_jobs.TorchTest):
    def dumps_of(self, mode):
        """PyTorch's dumps, and those that deja exports of the same run."""
        trace = f"{mode}.deja"
        own = self.dir / f"{mode}-own"
        own.mkdir()
        self.checked(self.record(torch_jobs.PYTHON, [torch_jobs.APPS / "flight_recorder.py", mode], n=RANKS, trace=trace,
                                 env={"DUMPS": own}, timeout=300))
        exported = self.dir / f"{mode}-exported"
        self.checked(self.deja("export", self.trace_path(trace), "--format", "fr", "--out", exported))
        return own, exported

    def named(self, folder):
        """PyTorch's dumps with the name of their group: gloo leaves it out, and the analyzer ends with KeyError."""
        program = ("import pathlib, pickle, sys\n"
                   "for path in pathlib.Path(sys.argv[1]).iterdir():\n"
                   "    dump = pickle.loads(path.read_bytes())\n"
                   "    dump['pg_config'] = {'0': {**next(iter(dump['pg_config'].values())), 'name': '0'}}\n"
                   "    pathlib.Path(sys.argv[2], path.name).write_bytes(pickle.dumps(dump))\n")
        copy = folder.with_name(folder.name + "-named")
        copy.mkdir()
        self.checked(self.command([torch_jobs.PYTHON, "-c", program, folder, copy]))
        return copy

    def verdict(self, folder):
        """What PyTorch's analyzer says: for each collective that does not fit, its name, its state and the culprits."""
        out = folder.with_suffix(".db")
        self.checked(self.command([torch_jobs.PYTHON, "-m", "torch.distributed.flight_recorder.fr_trace", folder, "-o", out]))
        program = ("import json, pickle, sys; types, db = pickle.load(open(sys.argv[1], 'rb'));"
                   "print(json.dumps([[c.collective_name.split(':')[-1], c.pass_check, c.collective_seq_id,"
                   " sorted(c.missing_ranks or []), sorted((c.mismatch_collectives or {}).keys())] for c in db.collectives]))")
        return json.loads(self.checked(self.command([torch_jobs.PYTHON, "-c", program, out])).stdout)

    def checked_import(self, dumps, trace):
        imported = self.checked(self.deja("import", dumps, "--out", self.trace_path(trace), "--json")).json()
        self.assertEqual((imported["ranks"], imported["world_size"]), (RANKS, RANKS))
        self.assertVerifies(trace)
        run = self.deja("check", self.trace_path(trace), "--json")
        self.assertIn(run.code, (0, 4), run)
        return run.json()["findings"]

    def test_a_job_that_is_well(self):
        own, exported = self.dumps_of("well")
        self.assertEqual(self.checked_import(own, "imported.deja"), [])
        self.assertEqual([one[1] for one in self.verdict(exported)], [one[1] for one in self.verdict(self.named(own))])

    def test_a_rank_that_leaves_one_out(self):
        own, exported = self.dumps_of("missing")
        finding = self.checked_import(own, "imported.deja")[0]
        self.assertEqual((finding["kind"], finding["ranks"]), ("outside", [1]))
        self.assertIn("flight_recorder.py", json.dumps(finding))
        self.assertEqual(self.verdict(exported), self.verdict(self.named(own)))
        self.assertEqual(self.checked_import(exported, "again.deja")[0]["sentence"], finding["sentence"])
        self.limits()

    def limits(self):
        """What an imported trace cannot do, each command says."""
        trace = self.trace_path("imported.deja")
        replay = self.deja("replay", trace, "--rank", 0, "--trust")
        self.assertEqual(replay.code, 1)
        self.assertIn("the trace was imported from dumps", replay.stderr)
        tensor = self.deja("show", trace, "--rank", 0, "--tensor", "0:1")
        self.assertEqual(tensor.code, 1)
        self.assertIn("the trace was imported from dumps that hold no tensors", tensor.stderr)
        info = self.checked(self.deja("info", trace)).stdout
        self.assertIn("ran when its dump was written", info)
        self.checked(self.deja("report", trace, "--out", self.dir / "report.html"))
        page = (self.dir / "report.html").read_text(encoding="utf-8")
        self.assertIn(", import", page)
        rows = self.checked(self.deja("export", trace, "--format", "csv", "--out", self.dir / "rows.csv"))
        self.assertIn("operations of 3 ranks", rows.stdout)

    def test_another_collective(self):
        own, exported = self.dumps_of("other")
        finding = self.checked_import(own, "imported.deja")[0]
        self.assertEqual((finding["kind"], finding["ranks"]), ("signature", [1]))
        self.assertEqual(self.verdict(exported), self.verdict(self.named(own)))

    def test_ranks_that_hang(self):
        own, exported = self.dumps_of("hang")
        finding = self.checked_import(own, "imported.deja")[0]
        self.assertEqual((finding["kind"], finding["ranks"]), ("outside", [1]))
        verdict = self.verdict(exported)
        self.assertEqual(verdict, self.verdict(self.named(own)))
        self.assertIn([1], [one[3] for one in verdict])  # the missing rank


if __name__ == "__main__":
    harness.main()
