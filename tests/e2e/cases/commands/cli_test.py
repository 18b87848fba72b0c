"""What a user reads: info, show, verify, pack, unpack and recover on real recordings, and on what is none."""
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness

STEPS = 12


class GoodRun(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("replay_trainer", ["--steps", STEPS], n=2))

    def test_info_says_what_the_trace_holds(self):
        text = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(text, r"(?m)^ranks    2 of 2, level full, ")
        self.assertRegex(text, r"(?m)^program  .*replay_trainer --steps 12$")
        self.assertRegex(text, r"(?m)^rank 0: exit 0$")
        self.assertRegex(text, r"(?m)^rank 1: exit 0$")
        info = self.info_json()
        self.assertEqual([r["rank"] for r in info["ranks"]], [0, 1])
        self.assertEqual(info["ranks"][0]["steps"], STEPS)
        self.assertEqual(info["world_size"], 2)
        self.assertTrue(all(r["finished"] and r["exit_code"] == 0 for r in info["ranks"]))
        hashes = {r["comms"][0]["hash"] for r in info["ranks"]}
        self.assertEqual(len(hashes), 1, "both ranks must know the communicator by one hash")

    def test_more_ranks_than_descriptors(self):
        for rank in range(2, 100):
            shutil.copytree(self.trace_path() / "rank-00000", self.trace_path() / f"rank-{rank:05}")
        few = ["bash", "-c", 'ulimit -n 40; exec "$0" "$@"', harness.DEJA]
        info = self.checked(self.command([*few, "info", self.trace_path(), "--json"])).json()
        self.assertEqual(len(info["ranks"]), 100)
        verified = self.command([*few, "verify", self.trace_path(), "--json"]).json()
        copied = [p["rank"] for p in verified["problems"] if "the folder was copied or renamed" in p["what"]]
        self.assertEqual((copied, len(verified["problems"])), (list(range(2, 100)), 98))
        bundle = self.dir / "many.deja.zip"
        for options in ([], ["--zstd-level", 3]):
            self.checked(self.command([*few, "pack", self.trace_path(), "--out", bundle, *options]))
            self.assertEqual(self.deja("verify", bundle, "--json").json()["ranks"], 100)
            bundle.unlink()

    def test_show_lists_calls_with_arguments_digests_and_stacks(self):
        run = self.checked(self.deja("show", self.trace_path(), "--rank", 1, "--call", "AllReduce", "--stacks"))
        lines = run.stdout.splitlines()
        self.assertRegex(lines[0], r"enter AllReduce #\d+ comm 0 count=\d+ datatype=float32 op=\w+ in=float32\[\d+\] [0-9a-f]{12}")
        self.assertIn("main (trainer.cc:", run.stdout)

    def test_python_reads_operations_and_tensors(self):
        sys.path.insert(0, str(harness.ROOT / "python"))
        from deja.trace import Trace, TraceError
        with Trace(self.trace_path(), program=str(harness.DEJA)) as trace:
            self.assertEqual([rank.end for rank in trace.ranks], ["exit 0"] * 2)
            self.assertEqual([(rank.rank, rank.end, len(rank.steps)) for rank in trace.ranks], [(0, "exit 0", STEPS), (1, "exit 0", STEPS)])
            self.assertEqual(trace.communicators[0].ranks, [0, 1])
            self.assertEqual((trace.findings, trace.is_damaged), ([], False))
            reduced = next(one for one in trace.operations if one.parts[0].operation == "AllReduce" and one.parts[0].dtype == "float32")
            self.assertEqual([part.rank for part in reduced.parts], [0, 1])
            self.assertIn("trainer.cc", [frame.file for frame in reduced.parts[0].stack])
            self.assertGreaterEqual(reduced.waited_ns, 0)
            self.assertEqual(len(trace.rows()), sum(len(one.parts) for one in trace.operations))
            self.assertEqual(reduced.part_of(1), reduced.parts[1])
            self.assertIsNone(reduced.part_of(7))
            self.assertGreaterEqual(reduced.lasted_ns, max(part.lasted_ns for part in reduced.parts))
            self.assertRegex(repr(reduced), r"^<AllReduce #\d+ float32\[\d+\] on communicator 0, ranks 0, 1>$")
            part = reduced.parts[1]
            self.assertIn(f"in {part.stack[0].function}", part.where)
            shown, = [one for one in trace.tensors(1, part.comm, part.seq) if one["is_result"]]
            self.assertEqual((shown["dtype"], shown["count"], shown["kept"]), ("float32", part.count, True))
            with self.assertRaisesRegex(TraceError, "no such operation"):
                trace.tensors(1, part.comm, 1 << 40)
            beside = self.checked(self.deja("show", self.trace_path(), "--tensor", f"{part.comm}:{part.seq}", "--beside", 1)).stdout
            self.assertIn("equal to that of rank 1", beside)
            beside = self.checked(self.deja("show", self.trace_path(), "--tensor", f"{part.comm}:{part.seq}", "--beside-trace",
                                            self.trace_path())).stdout
            self.assertIn(f"equal to that of rank 0 of {self.trace_path()}", beside)
            out = self.dir / "one.npy"
            self.checked(self.deja("export", self.trace_path(), "--tensor", f"{part.comm}:{part.seq}", "--rank", 1, "--out", out))
            self.assertEqual(out.read_bytes()[:6], b"\x93NUMPY")
            self.assertEqual((out.stat().st_size - 4 * part.count) % 64, 0)
            info, = [one for one in trace.tensor_infos(1, part.comm) if one.is_result and one.seq == part.seq]
            self.assertEqual((info.dtype, info.count, info.bytes), ("float32", part.count, 4 * part.count))
            self.assertEqual(info.digest, shown["hash"])
            with Trace(self.trace_path(), program=str(harness.DEJA)) as again:
                self.assertTrue(trace.diff(again)["equal"])
            try:
                import numpy
            except ImportError:
                return
            array = trace.tensor(1, part.comm, part.seq)
            self.assertEqual(trace.tensor(part).tolist(), array.tolist())
            self.assertEqual((array.dtype, array.shape), (numpy.dtype("float32"), (part.count,)))
            self.assertEqual([float(one) for one in shown["first_elements"]],
                             [float(str(one)) for one in array[:len(shown["first_elements"])]])

    def test_operations_are_a_sequence_of_objects_that_are_made_when_asked_for(self):
        sys.path.insert(0, str(harness.ROOT / "python"))
        from deja import trace_operations
        from deja.trace import Trace
        with Trace(self.trace_path(), program=str(harness.DEJA)) as trace:
            operations = trace.operations
        # A closed trace has them, too.
        everything = list(operations)
        self.assertEqual(len(everything), len(operations))
        self.assertEqual(operations[-1], everything[-1])
        self.assertEqual(operations[1:3], everything[1:3])
        begins = [min(part.begin_ns for part in one.parts) for one in everything]
        self.assertEqual(begins, sorted(begins))
        with self.assertRaises(IndexError):
            operations[len(operations)]
        kept, trace_operations._MOST_KEPT_PARTS = trace_operations._MOST_KEPT_PARTS, 1
        try:
            self.assertEqual(list(operations), everything)
        finally:
            trace_operations._MOST_KEPT_PARTS = kept

    def test_a_shown_tensor_has_its_name(self):
        shown = [json.loads(line) for line in self.checked(self.deja(
            "show", self.trace_path(), "--kind", "snapshot", "--json")).stdout.splitlines()]
        one = next(event for event in reversed(shown) if not event["opaque"])
        read = self.checked(self.deja("show", self.trace_path(), "--tensor", one["name"], "--json")).json()
        self.assertEqual([tensor["hash"] for tensor in read], [one["tensor"]["hash"]])
        text = self.checked(self.deja("show", self.trace_path(), "--tensor", one["name"], "--beside", 1)).stdout
        self.assertIn(f"rank 0, {one['name']}: shown, ", text)
        refused = self.deja("show", self.trace_path(), "--tensor", "no.such")
        self.assertEqual(refused.code, harness.EXIT_FAILURE)
        self.assertIn("rank 0 has shown no tensor of that name", refused.stderr)

    def test_ranks_alone_are_those_of_the_whole_export(self):
        whole, ranks = self.dir / "whole.json", self.dir / "ranks.json"
        self.checked(self.deja("export", self.trace_path(), "--format", "json", "--no-operations", "--out", whole))
        self.checked(self.deja("export", self.trace_path(), "--format", "json", "--only-ranks", "--out", ranks))
        whole, ranks = json.loads(whole.read_text()), json.loads(ranks.read_text())
        for rank in whole["ranks"]:
            self.assertEqual(len(rank.pop("steps")), STEPS)
        del whole["check"]
        self.assertEqual(ranks, whole)
        refused = self.deja("export", self.trace_path(), "--format", "csv", "--only-ranks", "--out", self.dir / "x.csv")
        self.assertEqual(refused.code, harness.EXIT_USAGE)
        self.assertIn("exporting: --only-ranks: only --format json has other parts", refused.stderr)

    def test_filters_select(self):
        everything = self.show_json("--rank", 0, "--all")
        steps = self.show_json("--rank", 0, "--kind", "step")
        self.assertEqual([e["step"] for e in steps], list(range(STEPS)))
        last = self.show_json("--rank", 0, "--all", "--last", 5)
        self.assertEqual(last, everything[-5:])
        first = self.show_json("--rank", 0, "--all", "--first", 5)
        self.assertEqual(first, everything[:5])
        seqs = [e["seq_on_comm"] for e in self.show_json("--rank", 0, "--comm", 0, "--seq", "3-5", "--kind", "enter")]
        self.assertEqual(seqs, [3, 4, 5])
        one_step = self.show_json("--rank", 0, "--step", 4, "--kind", "step,enter")
        self.assertEqual(one_step[0]["step"], 4)
        self.assertEqual(sum(e["kind"] == "step" for e in one_step), 1)
        self.assertGreater(len(one_step), 1)
        threads = {e["thread"] for e in self.show_json("--rank", 0, "--thread", "0")}
        self.assertEqual(threads, {"0"})

    def test_sequence_numbers_have_no_gaps(self):
        events = self.show_json("--rank", 0, "--all")
        for thread in {e["thread"] for e in events}:
            seqs = [e["seq"] for e in events if e["thread"] == thread]
            self.assertEqual(seqs, list(range(len(seqs))), thread)

    def test_wrong_filters_are_usage_errors(self):
        for options, said in ((["--kind", "enterr"], "no such kind"), (["--seq", "9-3"], "not a range"),
                              (["--step", "x"], "not a range"), (["--first", 1, "--last", 1], "--last")):
            run = self.checked(self.deja("show", self.trace_path(), *options), harness.EXIT_USAGE)
            self.assertIn(said, run.stderr)
        for call, said in (("Foo", "--call Foo: Deja records no such call"), ("AllReduec", "did you mean 'AllReduce'?")):
            run = self.checked(self.deja("show", self.trace_path(), "--call", call), harness.EXIT_USAGE)
            self.assertIn(said, run.stderr)
        for call in "AllReduce", "ncclAllReduce", "getrandom", "clock_gettime":
            self.checked(self.deja("show", self.trace_path(), "--call", call))
        run = self.checked(self.deja("show", self.trace_path(), "--rank", 7), harness.EXIT_FAILURE)
        self.assertRegex(run.stderr, r"rank 7.*0.*1")

    def test_verify_and_what_it_finds(self):
        report = self.checked(self.deja("verify", self.trace_path(), "--json")).json()
        self.assertTrue(report["sound"])
        self.assertGreater(report["payloads"], 0)
        damaged = self.trace_path() / "rank-00001" / "payloads.deja"
        data = bytearray(damaged.read_bytes())
        data[len(data) // 2] ^= 0x40
        damaged.write_bytes(data)
        run = self.checked(self.deja("verify", self.trace_path()), harness.EXIT_DATA_LOSS)
        self.assertIn("NOT SOUND", run.stdout)
        self.assertIn("payloads.deja", run.stdout)

    def test_damage_is_reported_by_every_command(self):
        """Bytes in the middle of what happened, so that the file still ends as a finished one does."""
        copy = self.dir / "sound.deja"
        shutil.copytree(self.trace_path(), copy)
        events = self.trace_path() / "rank-00001" / "events.deja"
        data = bytearray(events.read_bytes())
        self.assertGreater(len(data), 4096)
        middle = len(data) * 2 // 3  # the header comes first, the index last
        data[middle:middle + 64] = bytes(64)
        events.write_bytes(data)
        bad = self.trace_path()
        other = self.dir / "other.deja"
        for trace, rank in (self.dir / "part.deja", 1), (other, 0):
            trace.mkdir()
            shutil.copytree(bad / f"rank-{rank:05}", trace / f"rank-{rank:05}")
        for words in (["verify", bad], ["info", bad], ["info", bad, "--json"],
                      ["show", bad, "--rank", 1], ["show", bad, "--rank", 1, "--last", 1],
                      ["diff", bad, copy], ["bisect", copy, bad], ["pack", bad],
                      ["unpack", self.dir / "run.deja.zip", "--out", self.dir / "unpacked.deja"],
                      ["check", bad], ["check", "--summarize", bad], ["check", bad], ["report", bad, "--out", "run.html"],
                      *(["export", bad, "--format", name, "--out", f"run.{name}"] for name in ("perfetto", "chrome", "fr", "json", "csv")),
                      ["export", bad, "--tensor", "0:1", "--rank", 1, "--out", "one.npy"], ["top", bad, "--count", 1],
                      ["doctor", bad, "--rank", 1], ["recover", bad], ["merge", self.dir / "part.deja", other, "--out", "merged.deja"],
                      ["serve", bad, "--rank", 1], ["replay", bad, "--rank", 1], ["replay", bad, "--rank", 1, "--json"],
                      ["replay", bad, "--rank", 1, "--gdb-command", "quit"], ["replay", bad, "--rank", 1, "--vscode"]):
            run = self.checked(self.deja(*words), harness.EXIT_DATA_LOSS)
            self.assertIn("NOT SOUND" if words[0] == "verify" else "DAMAGED: ", run.stdout + run.stderr, f"\n{run}")
            if words[0] not in ("verify", "doctor"):
                self.assertRegex(run.stderr, r"rank 1: its recording is DAMAGED: \S*events.deja, offset \d+", f"\n{run}")
        self.assertEqual(["damaged" in rank for rank in self.deja("info", bad, "--json").json()["ranks"]], [False, True])
        self.checked(self.replay(0))

    def test_a_bundle_is_the_trace(self):
        packed = self.checked(self.deja("pack", self.trace_path(), "--json")).json()
        bundle = self.dir / "run.deja.zip"
        self.assertEqual(packed["bytes"], bundle.stat().st_size)
        self.assertIsNone(zipfile.ZipFile(bundle).testzip())
        original = self.deja("show", self.trace_path(), "--rank", 1, "--all").stdout
        self.assertEqual(self.checked(self.deja("show", bundle, "--rank", 1, "--all")).stdout, original)
        self.checked(self.deja("verify", bundle))
        again = self.checked(self.deja("pack", self.trace_path()), harness.EXIT_FAILURE)
        self.assertIn("run.deja.zip", again.stderr)
        shutil.rmtree(self.trace_path())
        self.checked(self.deja("unpack", bundle))
        self.assertEqual(self.checked(self.deja("show", self.trace_path(), "--rank", 1, "--all")).stdout, original)

    def test_recover_leaves_a_complete_trace_alone(self):
        before = {p: p.read_bytes() for p in self.trace_path().rglob("*.deja") if p.is_file()}
        run = self.checked(self.deja("recover", self.trace_path()))
        self.assertIn("rank 0: complete already", run.stdout)
        self.assertEqual(before, {p: p.read_bytes() for p in before})

    def test_reading_changes_nothing(self):
        before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in self.trace_path().rglob("*") if p.is_file()}
        for command in (["info"], ["show"], ["verify"]):
            self.checked(self.deja(*command, self.trace_path()))
        self.assertEqual(before, {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before})


class BadRun(harness.DejaTest):
    def test_info_names_the_missing_rank(self):
        self.record("replay_trainer", ["--fault", "crash", "--fault-step", 5, "--fault-rank", 1], n=3)
        info = self.info_json()
        [comm] = info["uneven_comms"]
        furthest = [r["rank"] for r in comm["ranks"] if r["last_operation"] == comm["last_operation"]]
        self.assertEqual(furthest, [0, 2])
        text = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(text, r"(?m)^comm 0: .*rank 1 never entered it: its last was \w+ #\d+")


class BadInput(harness.DejaTest):
    """Every reading command says what it was given, what it found, and exits 1; it never crashes."""

    def assertRefused(self, path, pattern):
        for command in (["info"], ["show"], ["verify"], ["replay", "--rank", 0]):
            run = self.checked(self.deja(command[0], path, *command[1:]), harness.EXIT_FAILURE)
            self.assertEqual(run.stdout, "", f"{command}\n{run}")
            self.assertRegex(run.stderr, pattern, f"{command}\n{run}")
            self.assertRegex(run.stderr, re.escape(str(path)), f"{command}\n{run}")

    def test_missing(self):
        self.assertRefused(self.dir / "nothing.deja", r"(?i)no such file|does not exist|not there")

    def test_an_empty_directory(self):
        (self.dir / "empty.deja").mkdir()
        self.assertRefused(self.dir / "empty.deja", r"(?i)no rank")

    def test_a_foreign_file(self):
        (self.dir / "notes.txt").write_text("hello\n" * 100)
        self.assertRefused(self.dir / "notes.txt", r"(?i)not a (Deja )?(trace|bundle)|neither")

    def test_a_foreign_zip(self):
        with zipfile.ZipFile(self.dir / "other.zip", "w") as z:
            z.writestr("../evil", "x")
        self.assertRefused(self.dir / "other.zip", r"(?i)evil|not a")
        self.assertFalse((self.dir.parent / "evil").exists())

    def test_a_newer_version(self):
        self.checked(self.record("replay_trainer", ["--steps", 2], n=1))
        events = self.trace_path() / "rank-00000" / "events.deja"
        data = bytearray(events.read_bytes())
        self.assertEqual(data[:5], b"\x89DJA\x01")
        data[4] = 2
        events.write_bytes(data)
        run = self.checked(self.deja("info", self.trace_path()), harness.EXIT_FAILURE)
        self.assertRegex(run.stderr, r"(?i)newer|version")

    def test_truncated_at_every_tenth(self):
        self.checked(self.record("replay_trainer", ["--steps", 4], n=1))
        events = self.trace_path() / "rank-00000" / "events.deja"
        data = events.read_bytes()
        for tenth in range(10):
            events.write_bytes(data[:len(data) * tenth // 10])
            run = self.deja("info", self.trace_path())
            self.assertIn(run.code, (harness.EXIT_OK, harness.EXIT_FAILURE, harness.EXIT_DATA_LOSS), f"\n{run}")
            if run.code == harness.EXIT_FAILURE:
                self.assertIn("events.deja", run.stderr)


if __name__ == "__main__":
    harness.main()
