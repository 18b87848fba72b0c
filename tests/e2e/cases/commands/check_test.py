#!/usr/bin/env python3
"""deja check: the first cause in programs with a bug, nothing in healthy ones, and what it cannot know."""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

SCORE = harness.ROOT / "tests" / "zoo" / "score.py"
# One program of each kind that is cheap to run.
CASES = ("bad_index", "caught_exception", "extra_gather", "log_of_zero", "other_dtype", "send_send", "short_message",
         "stuck_reader", "two_comms")


class Zoo(harness.DejaTest):
    def test_finds_what_is_wrong_and_nothing_else(self):
        done = subprocess.run([sys.executable, SCORE, "--build", harness.BUILD, *CASES], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")
        self.assertIn(f"{len(CASES)} of {len(CASES)} right", done.stdout)


class Healthy(harness.DejaTest):
    def check_silent(self, *args, n=4, level="digest"):
        self.checked(self.record("digits_train", [*args, "--steps=6"], n=n, level=level))
        run = self.checked(self.deja("check", self.trace_path()))
        self.assertEqual(run.stdout.splitlines()[0], f"nothing found in {n} ranks")
        return run

    def test_data_parallel(self):
        self.check_silent("--mode=ddp")

    def test_a_pipeline_counts_sends_apart(self):
        self.check_silent("--mode=pipeline")

    def test_sub_groups(self):
        self.check_silent("--mode=hybrid")

    def test_level_order_says_what_it_does_not_check(self):
        run = self.check_silent("--mode=ddp", n=2, level="order")
        self.assertIn("note: ranks 0-1: recorded at level order, without digests", run.stdout)


class Unknown(harness.DejaTest):
    def record_faulty(self):
        self.record("zoo_extra_gather", n=4, level="digest")

    def test_a_rank_whose_end_is_gone_is_not_compared(self):
        self.record_faulty()
        events = self.trace_path() / "rank-00001" / "events.deja"
        events.write_bytes(events.read_bytes()[:-40])
        run = self.checked(self.deja("check", self.trace_path(), "--json"), harness.EXIT_DATA_LOSS)
        report = run.json()
        self.assertEqual(report["findings"], [])
        self.assertTrue(report["damaged"])
        self.assertTrue(any("rank 1" in note for note in report["notes"]), report["notes"])

    def test_a_rank_that_is_not_there(self):
        self.record_faulty()
        subprocess.run(["rm", "-r", self.trace_path() / "rank-00001"], check=True)
        run = self.checked(self.deja("check", self.trace_path()))
        self.assertIn("note: not in the trace: rank 1 of 4", run.stdout)

    def test_a_trace_that_is_not_there(self):
        run = self.checked(self.deja("check", self.dir / "no.deja"), harness.EXIT_FAILURE)
        self.assertIn("no.deja", run.stderr)

    def test_a_bundle_gives_the_same(self):
        self.record_faulty()
        plain = self.deja("check", self.trace_path(), "--json").json()
        self.checked(self.deja("pack", self.trace_path(), "--out", self.dir / "run.deja.zip"))
        packed = self.checked(self.deja("check", self.dir / "run.deja.zip", "--json"), harness.EXIT_DIVERGED).json()
        for finding in plain["findings"] + packed["findings"]:
            finding.pop("next")
        self.assertEqual(packed, plain)


class Summaries(harness.DejaTest):
    """A map by the job's launcher, a reduce over what it leaves."""

    def check_same(self, plain, taken, notes=()):
        found = self.checked(self.deja("check", self.trace_path(), "--json"), harness.EXIT_DIVERGED).json()
        self.assertEqual(found.pop("summaries"), taken)
        self.assertEqual(found["notes"], [*plain["notes"], *notes])
        self.assertEqual({**found, "notes": []}, {**plain, "notes": []})

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_give_the_same_findings_and_are_ignored_where_they_do_not_fit(self):
        self.record("zoo_extra_gather", n=4, level="digest")
        plain = self.checked(self.deja("check", self.trace_path(), "--json"), harness.EXIT_DIVERGED).json()
        self.assertEqual(plain.pop("summaries"), 0)
        run = self.checked(self.command(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 4, "sh", "-c",
             f"{harness.DEJA} check --summarize run.deja --ranks $OMPI_COMM_WORLD_RANK"],
            env={"OMPI_MCA_plm_rsh_agent": "sh"}))
        self.assertEqual(sorted(line.split(": ")[1] for line in run.stdout.splitlines()),
                         [f"rank {rank} summarized" for rank in range(4)])
        self.check_same(plain, 4)
        kept = [self.trace_path() / f"rank-0000{rank}" / "summary.deja" for rank in range(4)]

        shutil.copy(kept[0], kept[1])  # of another recording
        damaged = bytearray(kept[2].read_bytes())
        damaged[len(damaged) // 2] ^= 1
        kept[2].write_bytes(damaged)
        kept[3].unlink()
        run = self.deja("check", self.trace_path(), "--json").json()
        self.assertEqual(run["summaries"], 1)
        self.assertEqual(run["findings"], plain["findings"])
        notes = [note for note in run["notes"] if "not used" in note]
        self.assertEqual(len(notes), 2, run["notes"])
        self.assertRegex(notes[0], "rank 2: the summary is not used: it is damaged: .*; the recording was read instead")
        self.assertRegex(notes[1], "rank 1: the summary is not used: the recording has changed since it was made")

        # A rank's folder is enough, and a bundle leaves summaries out.
        self.checked(self.deja("check", "--summarize", kept[1].parent))
        self.checked(self.deja("check", "--summarize", str(kept[2].parent) + "/", "--json"))
        self.checked(self.deja("check", "--summarize", self.trace_path(), "--ranks", "3"))
        self.check_same(plain, 4)
        self.assertVerifies()
        self.checked(self.deja("pack", self.trace_path(), "--out", self.dir / "run.deja.zip"))
        packed = self.checked(self.deja("check", self.dir / "run.deja.zip", "--json"), harness.EXIT_DIVERGED).json()
        self.assertEqual((packed["summaries"], packed["notes"]), (0, plain["notes"]))
        # Their places were named without these binaries.
        again = self.deja("check", self.trace_path(), "--json", "--binaries", harness.BUILD / "tests" / "zoo").json()
        self.assertEqual((again["summaries"], again["findings"]), (0, plain["findings"]))

    def test_the_cookbooks_lines_for_slurm(self):
        """With a stand-in for srun: two nodes, the variables that Slurm sets in each task."""
        lines = [line.strip() for line in (harness.ROOT / "docs" / "COOKBOOK.md").read_text().splitlines()
                 if line.startswith("    srun ") and "--summarize" in line]
        self.assertEqual(len(lines), 2)
        tools = self.dir / "tools"
        tools.mkdir()
        (tools / "deja").symlink_to(harness.DEJA)
        (tools / "srun").write_text("""#!/bin/sh -e
case $1 in
  -n) tasks=$2; shift 2 ;;
  --ntasks-per-node=*) tasks=$((2 * ${1#*=})); shift ;;
esac
each=$((tasks / 2)) task=0
while [ $task -lt $tasks ]; do
  SLURM_PROCID=$task SLURM_NTASKS=$tasks SLURM_NODEID=$((task / each)) SLURM_LOCALID=$((task % each)) "$@"
  task=$((task + 1))
done
""")
        (tools / "srun").chmod(0o755)
        for line, ranks in zip(lines, (4, 16)):
            trace = self.trace_path(f"of-{ranks}.deja")
            self.checked(self.command([harness.app("zoo_many_ranks"), trace, ranks, 30, 3]))
            plain = self.deja("check", trace, "--json").json()
            line = line.replace("-n 16384", f"-n {ranks}").replace("run.deja", str(trace))
            self.checked(self.command(["sh", "-c", line], env={"PATH": f"{tools}:{os.environ['PATH']}"}))
            kept = self.deja("check", trace, "--json").json()
            self.assertEqual((plain["summaries"], kept["summaries"]), (0, ranks))
            self.assertEqual([one["sentence"] for one in kept["findings"]], [one["sentence"] for one in plain["findings"]])
            self.assertEqual(len(kept["findings"]), 1)

    def test_what_cannot_be_summarized(self):
        self.checked(self.command([harness.app("zoo_many_ranks"), self.trace_path(), 2, 10]))
        run = self.checked(self.deja("check", "--summarize", self.trace_path(), "--ranks", "1,7"), harness.EXIT_FAILURE)
        self.assertIn("rank 7 is not in its last attempt", run.stderr)
        folder = self.trace_path() / "rank-00001"
        run = self.checked(self.deja("check", "--summarize", folder, "--ranks", "0"), harness.EXIT_FAILURE)
        self.assertIn("it is the folder of rank 1", run.stderr)
        events = folder / "events.deja"
        events.write_bytes(events.read_bytes()[:-40])
        run = self.checked(self.deja("check", "--summarize", folder, "--json"), harness.EXIT_DATA_LOSS)
        self.assertTrue(run.json()["damaged"])
        run = self.checked(self.deja("check", self.trace_path(), "--json"), harness.EXIT_DATA_LOSS).json()
        self.assertEqual((run["summaries"], run["findings"]), (1, []))


class Attempts(harness.DejaTest):
    """A job whose launcher started its ranks again."""

    def attempt(self, number, *args):
        shared = {"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl", "NCCL_COMM_ID": f"127.0.0.1:{harness.free_port()}",
                  "WORLD_SIZE": 4, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port, "TORCHELASTIC_RUN_ID": "r1",
                  "TORCHELASTIC_RESTART_COUNT": number}
        argv = [harness.DEJA, "record", "--level", "digest", "--out", self.trace_path(), "--",
                harness.app("zoo_extra_gather"), *args]
        for process in [self.start(argv, env={**shared, "RANK": r, "LOCAL_RANK": r}) for r in range(4)]:
            self.finish(process)

    def test_the_last_one_counts_and_earlier_ones_are_notes(self):
        self.port = harness.free_port()
        self.attempt(0)
        self.attempt(1, "--fixed")
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn("\nranks    4 of 4, 2 attempts, level digest", info)
        self.assertIn("\nrank 3 (attempt 0): ", info)
        self.assertIn("\nrank 3 (attempt 1): exit 0\n", info)
        last = self.checked(self.deja("check", self.trace_path()))
        self.assertIn("nothing found in 4 ranks", last.stdout)
        self.assertIn("note: attempt 0, before the last one: order: rank 1 made one AllGather float32[1] more", last.stdout)
        report = self.deja("check", self.trace_path(), "--json").json()
        self.assertEqual((report["attempt"], report["findings"]), (1, []))
        self.assertEqual([(one["attempt"], one["findings"][0]["kind"]) for one in report["earlier_attempts"]],
                         [(0, "order")])
        first = self.checked(self.deja("check", self.trace_path(), "--attempt", 0), harness.EXIT_DIVERGED)
        self.assertIn("first cause: order", first.stdout)
        shown = next(line.split()[1:] for line in first.stdout.splitlines() if line.startswith("  next       deja show"))
        self.assertEqual(shown[-2:], ["--attempt", "0"])
        self.assertIn("AllGather #35", self.checked(self.deja(*shown[1:])).stdout)
        none = self.checked(self.deja("check", self.trace_path(), "--attempt", 2), harness.EXIT_FAILURE)
        self.assertIn("no rank has an attempt 2; the last one is 1", none.stderr)


class Output(harness.DejaTest):
    def test_fits_on_a_page_with_many_ranks(self):
        self.checked(self.command([harness.app("zoo_many_ranks"), self.trace_path(), 64, 300, 37]))
        run = self.checked(self.deja("check", self.trace_path()), harness.EXIT_DIVERGED)
        self.assertIn("first cause: order, step 50", run.stdout)
        self.assertIn("rank 37 left out one AllReduce float32[1000] sum on comm 0 that ranks 0-36,38-63 made as #151 "
                      "at bucket_1.py:10 in reduce", run.stdout)
        self.assertLess(len(run.stdout.splitlines()), 25, run.stdout)
        found = self.deja("check", self.trace_path(), "--json").json()["findings"]
        self.assertEqual([(f["kind"], f["ranks"], f["collective"]) for f in found], [("order", [37], 151)])
        page = self.dir / "run.html"
        made = self.checked(self.deja("report", self.trace_path(), "--out", page, "--json")).json()
        self.assertEqual((made["ranks"], made["findings"], made["bytes"]), (64, 1, page.stat().st_size))
        self.assertLess(made["bytes"], 2_000_000)
        self.assertIn("rank 37 left out one AllReduce", page.read_text())
        again = self.checked(self.deja("report", self.trace_path(), "--out", page), harness.EXIT_FAILURE)
        self.assertIn("run.html", again.stderr)


if __name__ == "__main__":
    harness.main()
