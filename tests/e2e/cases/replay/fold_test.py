"""Ranks that are replayed together compute their collectives, where the recording has no results to serve."""
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402


class Fold(harness.DejaTest):
    def replay_all(self, *options, code=harness.EXIT_OK, trace="run.deja", **kwargs):
        return self.checked(self.deja("replay", self.trace_path(trace), "--all", *options, **kwargs), code)

    def verdicts(self, run):
        return [line for line in run.stdout.splitlines() if re.match(r"rank \d+: (exit|diverged|stopped)", line)]

    def check(self, program, args=(), n=4, level="digest", options=()):
        """Records, replays all ranks, and compares what they print."""
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        recorded = self.checked(self.record(program, args, n=n, level=level))
        run = self.replay_all(*options)
        verdicts = self.verdicts(run)
        self.assertEqual(len(verdicts), n, f"\n{run}")
        for line in verdicts:
            self.assertRegex(line, r"exit 0, the same as recorded; .*computed", f"\n{run}")
            self.assertNotIn("different", line)
        printed = [line for line in run.stdout.splitlines() if line not in verdicts]
        self.assertSameLines("\n".join(printed), recorded.stdout)
        return verdicts

    def test_the_example_in_all_its_modes(self):
        for mode in ("ddp", "sharded", "pipeline", "hybrid"):
            with self.subTest(mode):
                verdicts = self.check("digits_train", [f"--mode={mode}", "--steps=5"])
                self.assertRegex(verdicts[0], r"\d+ collectives computed, \d+ digests compared, all equal")

    def test_without_digests_there_is_nothing_to_compare(self):
        for line in self.check("digits_train", ["--steps=5"], level="order"):
            self.assertIn("collectives computed, 0 digests compared", line)

    def test_what_was_recorded_is_computed_if_that_is_wanted(self):
        self.checked(self.record("digits_train", ["--steps=5"]))
        self.assertIn("collectives served", self.replay_all().stdout)
        self.assertIn("collectives computed", self.replay_all("--compute").stdout)

    def test_calls_types_operators_and_communicators(self):
        for program in ("nccl_collectives", "nccl_premul", "nccl_groups", "nccl_p2p", "nccl_split", "nccl_comms",
                        "nccl_nonblocking", "nccl_threads", "nccl_errors", "nccl_grow"):
            with self.subTest(program):
                self.check(program)

    def test_all_ranks_in_one_process(self):
        self.check("nccl_initall", n=1)

    def test_device_buffers(self):
        for program, args in (("cuda_steps", ["--unseeded"]), ("cuda_steps", ["--legacy", "--steps=3"]),
                              ("cuda_collectives", ["--unseeded", "--count=33"]),
                              ("cuda_collectives", ["--unseeded", "--count=33", "--memory=managed"])):
            with self.subTest(program, args=args):
                self.check(program, args, n=2)

    def devices(self, run):
        """(rank, how it was asked, device, devices) of what cuda_devices printed."""
        found = re.findall(r"^rank (\d) ([\w ]+): device (\d), (\d) in all$", run.stdout, re.MULTILINE)
        return {(int(rank), how, int(device), int(count)) for rank, how, device, count in found}

    def test_ranks_share_a_device(self):
        ways = ("linked", "by dlsym", "by dlsym for all", "by dlsym next", "by address", "by address of address", "by address 2",
                "by address 2 of address", "by the runtime", "by the runtime and version")
        for level in ("full", "digest"):
            with self.subTest(level):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                env = {"CUDA_SIM_DEVICES": 3}
                recorded = self.checked(self.record("cuda_devices", n=3, level=level, env=env))
                self.assertEqual(self.devices(recorded), {(r, way, r, 3) for r in range(3) for way in ways})
                same = self.replay_all()
                self.assertEqual(self.devices(same), self.devices(recorded))
                one = self.replay_all("--devices", "1")
                self.assertEqual(self.devices(one), {(r, way, 0, 3) for r in range(3) for way in ways})
                two = self.replay_all("--devices", "2")
                self.assertEqual(self.devices(two), {(r, way, r % 2, 3) for r in range(3) for way in ways})
                for run in (recorded, same, one, two):
                    self.assertEqual(re.findall(r"^rank \d sum (\d+)$", run.stdout, re.MULTILINE), ["6"] * 3)

    def test_captured_calls_are_computed_at_each_launch(self):
        for args in ([], ["--graphs=3", "--two-execs"], ["--again"], ["--on-second"], ["--update"]):
            with self.subTest(args=args):
                verdicts = self.check("cuda_graphs", ["--unseeded", "--launches=12", *args], n=2)
                for line in verdicts:
                    # An all-reduce, a send, a receive, an all-gather and a broadcast at each launch.
                    self.assertGreaterEqual(int(re.search(r"(\d+) digests compared, all equal", line).group(1)), 12 * 5)

    def test_captured_calls_without_digests(self):
        self.check("cuda_graphs", ["--unseeded", "--launches=12"], n=2, level="order")

    def test_a_difference_in_a_captured_call_names_its_launch(self):
        self.checked(self.record("cuda_graphs", ["--launches=12"], n=2, level="digest"))
        run = self.replay_all("--", harness.app("cuda_graphs"), "--launches=12", "--fault=7", code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"AllReduce #1 of comm 0 \(rank 1 of 2\).*launch 7")

    def test_a_communicator_needs_all_its_ranks(self):
        self.checked(self.record("digits_train", ["--steps=3"], level="digest"))
        run = self.checked(self.deja("replay", self.trace_path(), "--ranks", "0-1"), harness.EXIT_FAILURE)
        self.assertIn("comm 0 has 4 ranks, of which 2 are to be replayed", run.stderr)
        run = self.checked(self.replay(2), harness.EXIT_FAILURE)
        self.assertIn("comm 0 has 4 ranks, of which 1 is to be replayed", run.stderr)

    def test_a_difference_is_reported_by_each_rank(self):
        self.checked(self.record("replay_trainer", ["--no-snapshot"], level="digest"))
        flip = ["--", harness.app("replay_trainer"), "--no-snapshot", "--flip-step", "7", "--flip-index", "81", "--flip-far"]
        run = self.replay_all(*flip, code=harness.EXIT_DIVERGED)
        found = re.findall(r"AllReduce #30 of comm 0 \(rank (\d) of 4\): input sendbuff differs", run.stdout)
        self.assertTrue(found, f"\n{run}")
        for line in self.verdicts(run):
            self.assertRegex(line, r"diverged|stopped at AllReduce #\d+ of comm 0, which needs a rank whose replay has ended")
        run = self.replay_all("--on-divergence", "warn", "--json", *flip, code=harness.EXIT_DIVERGED)
        for rank in run.json()["ranks"]:
            # The input is another one, so the result is, too.
            kinds = [(d["divergence"], d["api"], d["comm_seq"]) for d in rank["divergences"][:2]]
            self.assertEqual(kinds, [("input", "AllReduce", 30), ("result", "AllReduce", 30)])

    def test_a_rank_that_stops_stops_those_that_need_it(self):
        self.checked(self.record("cuda_steps", n=2, level="digest"))
        run = self.replay_all("--", harness.app("cuda_steps"), "--fault=3", code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"AllReduce #9 of comm 0 \(rank 1 of 2\): input sendbuff differs")
        self.assertRegex(run.stdout, r"rank 0: stopped at AllReduce #9 of comm 0, which needs a rank whose replay has ended")

    def check_lost(self, args, level, ends):
        """Rank 1 is lost, the others shrink their communicator, and grow it by rank 3. `ends`: of rank 1 in the
        replay."""
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        recorded = self.record("nccl_newcomer", ["--unseeded", *args], level=level, options=["--grace", "60"])
        self.checked(recorded, 128 + 9)
        run = self.replay_all()
        for rank in (0, 2, 3):
            self.assertRegex(run.stdout, rf"rank {rank}: exit 0, the same as recorded; .*computed")
        self.assertRegex(run.stdout, rf"rank 1: {ends}")
        self.assertNotIn("different", run.stdout)
        printed = [line for line in run.stdout.splitlines() if re.match(r"rank \d: (crew|rest|grown|ok)", line)]
        self.assertSameLines("\n".join(printed), recorded.stdout)
        self.assertEqual(len([line for line in printed if "grown" in line]), 9)

    def test_a_rank_is_lost_and_another_one_comes(self):
        for level, args in (("digest", []), ("order", ["--id-unsaid"])):
            with self.subTest(level):
                self.check_lost(args, level, "SIGKILL, the same as recorded")

    def test_a_rank_that_ended_inside_takes_part(self):
        """The others have the result of the operation that it never left."""
        for level in ("digest", "order"):
            with self.subTest(level):
                self.check_lost(["--inside"], level, "SIGKILL, the same as recorded")
                self.check_lost(["--inside", "--by-another"], level, r"the end of the recording is reached: killed by SIGKILL, "
                                                                     r"in AllReduce #4 of comm 1 \(entered, never left\)")

    def test_a_rank_that_waits_for_others_does_not_count_as_hanging(self):
        """A thread of rank 0 waits at the end of the recording, and the program for rank 1, which comes after seven
        seconds."""
        recorded = self.checked(self.record("nccl_patience", n=2, level="digest", options=["--grace", "60"]))
        run = self.replay_all()
        self.assertEqual(len(self.verdicts(run)), 2)
        for line in self.verdicts(run):
            self.assertRegex(line, r"rank \d: exit 0, the same as recorded; .*computed")
        self.assertSameLines("\n".join(line for line in run.stdout.splitlines() if " sum " in line), recorded.stdout)

    def test_newcomers_are_found_by_info(self):
        """The communicator that has grown is one, though its newcomer has another name for it."""
        self.record("nccl_newcomer", level="digest", options=["--grace", "60"])
        hashes = {}
        for rank in (0, 2, 3):
            comms = [event for event in self.show_json("--rank", str(rank), "--kind", "comm") if event["nranks"] == 3]
            hashes[rank] = comms[-1]["hash"], comms[-1].get("joined_as")
        self.assertEqual(hashes[0][0], hashes[2][0])
        self.assertEqual(hashes[0][1], hashes[3][0])
        self.assertIsNone(hashes[2][1])
        show = self.checked(self.deja("show", self.trace_path(), "--rank", "0", "--kind", "comm")).stdout
        self.assertIn(f"({hashes[0][0]}, {hashes[3][0]} for newcomers)", show)
        # All three reached its third and last operation: there is nothing to tell.
        self.assertNotRegex(self.checked(self.deja("info", self.trace_path())).stdout, r"(?m)^comm \d: .*rank 3")

    def test_from_a_checkpoint(self):
        self.checked(self.record("digits_train", ["--steps=12"], level="digest", options=["--checkpoint-every", "4"]))
        run = self.replay_all("--from-step", "8")
        self.assertIn("from the checkpoint at step 8", run.stderr)
        for line in self.verdicts(run):
            self.assertRegex(line, r"exit 0, the same as recorded; .*all equal")

    def test_a_crash_comes_again(self):
        self.record("replay_trainer", ["--fault", "crash"], level="digest")
        run = self.replay_all(timeout=60)
        self.assertRegex(run.stdout, r"rank 2: SIGSEGV at .*, the same as recorded")

class Turns(DeviceJobs):
    """Ranks that do not fit into the memory of one device together."""
    PROGRAM = "cuda_turns"
    COUNT = 20000
    RANK = 6 * 4 * COUNT  # bytes of a rank, at most
    TAKE_TURNS = "deja: the ranks do not fit into the memory of their devices together: they take turns"

    def setUp(self):
        # The deja command finds the simulated driver as it would find a real one.
        self.env = {"LD_LIBRARY_PATH": harness.BUILD / "tests" / "cuda"}

    def record_ranks(self, args=(), n=4, level="digest", ranks=1.5):
        """Each on a device of its own, of the size that they share later."""
        self.env |= self.simulated_memory(int(self.RANK * ranks))
        args = ["--unseeded", f"--count={self.COUNT}", *args]
        return self.checked(self.record(self.PROGRAM, args, n=n, level=level, env={**self.env, "CUDA_SIM_DEVICES": n}))

    def replay_all(self, *options, code=harness.EXIT_OK, devices=1, env=()):
        run = self.deja("replay", self.trace_path(), "--all", "--devices", devices, "--allow-file", self.board(), *options,
                        env={**self.env, **dict(env)})
        return self.checked(run, code)

    def assertSame(self, run, recorded, n=4):
        for rank in range(n):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))
            self.assertRegex(run.stdout, rf"rank {rank}: exit 0, the same as recorded; .* compared, all equal")

    def swaps(self, run):
        return int(re.search(r"device memory was swapped out (\d+) times?", run.stderr).group(1))

    def test_one_and_a_half_ranks_fit(self):
        recorded = self.record_ranks()
        run = self.replay_all()
        self.assertSame(run, recorded)
        self.assertIn(self.TAKE_TURNS, run.stderr)
        # Eight collectives, for each of which four ranks come in.
        self.assertGreater(self.swaps(run), 16)

    def test_three_and_a_third_ranks_fit(self):
        recorded = self.record_ranks(ranks=3.3)  # of what they keep, too: they need not be at their most at the same time
        run = self.replay_all()
        self.assertSame(run, recorded)
        self.assertIn(self.TAKE_TURNS, run.stderr)

    def test_all_fit(self):
        recorded = self.record_ranks(ranks=4.1)
        run = self.replay_all()
        self.assertSame(run, recorded)
        self.assertNotIn("turns", run.stderr)
        # Unless turns are asked for.
        run = self.replay_all("--turns", "1")
        self.assertSame(run, recorded)
        self.assertIn("deja: the ranks take turns on their devices", run.stderr)
        self.assertGreater(self.swaps(run), 16)

    def test_two_devices(self):
        recorded = self.record_ranks()
        run = self.replay_all(devices=2)
        self.assertSame(run, recorded)
        self.assertIn(self.TAKE_TURNS, run.stderr)

    def test_several_threads_of_a_rank_use_the_device(self):
        recorded = self.record_ranks(["--threads"])
        self.assertSame(self.replay_all(), recorded)

    def record_steps(self, *args, code=harness.EXIT_OK):
        count = 50000
        self.env |= self.simulated_memory(8 * 4 * count * 3 // 2)
        args = ["--unseeded", f"--count={count}", *args]
        run = self.record("cuda_steps", args, level="digest", env={**self.env, "CUDA_SIM_DEVICES": 4})
        return self.checked(run, code), args

    def test_a_difference_ends_those_that_are_swapped_out_too(self):
        _, args = self.record_steps()
        run = self.replay_all("--", harness.app("cuda_steps"), *args, "--fault=3", code=harness.EXIT_DIVERGED)
        self.assertIn(self.TAKE_TURNS, run.stderr)
        self.assertIn("AllReduce #9 of comm 0 (rank 1 of 4): input sendbuff differs", run.stdout)
        for rank in (0, 2, 3):
            self.assertIn(f"rank {rank}: stopped at AllReduce #9 of comm 0, which needs a rank whose replay has ended", run.stdout)

    def test_a_rank_that_crashes_gives_its_memory_back(self):
        recorded, _ = self.record_steps("--end=crash", code=128 + 11)
        run = self.replay_all()
        self.assertIn(self.TAKE_TURNS, run.stderr)
        self.assertRegex(run.stdout, r"rank 1: SIGSEGV at .*, the same as recorded")
        for rank in (0, 2, 3):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))

    def test_served_ranks_wait_for_each_other(self):
        recorded = self.record_ranks(level="full")
        run = self.replay_all()
        self.assertSame(run, recorded)
        self.assertIn("collectives served", run.stdout)

    def test_without_the_drivers_calls(self):
        self.record_ranks()
        run = self.replay_all(code=harness.EXIT_FAILURE, env={"CUDA_SIM_CHECKPOINT": "no"})
        # What is free is what the device says next: another rank may have given memory back by then.
        said = re.search(r"^rank (\d): out of device memory: rank \1 asked for 80\.0 kB on device 0, which has 720 kB, "
                         r"(?:0 B of them free: 80\.0 kB are missing|80\.0 kB of them free); it holds (.*); "
                         r"ranks cannot take turns: rank \d cannot be swapped out: "
                         r"cuCheckpointProcessLock returned 801 \(not supported\); use more --devices", run.stdout, re.MULTILINE)
        self.assertIsNotNone(said, f"\n{run}")
        # Those that use the device by then: the fourth may not have begun to.
        self.assertIn(len(re.findall(r"rank \d \d+", said.group(2))), (1, 2, 3), said.group(2))
        self.assertRegex(said.group(2), r"rank \d [1-9][\d.]* kB")

    def test_a_driver_without_the_calls(self):
        self.record_ranks()
        # Something that is no driver at all.
        folder = self.dir / "old"
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to("/lib/x86_64-linux-gnu/libm.so.6")
        run = self.replay_all(code=harness.EXIT_FAILURE, env={"LD_LIBRARY_PATH": folder})
        self.assertRegex(run.stdout, r"ranks cannot take turns: swapping device memory: libcuda\.so\.1: the driver has no cuCheckpointProcess\w+; "
                                     r"use driver 570 or later")

    def test_a_rank_that_does_not_fit_alone(self):
        # It asks for more than it did.
        self.record_ranks(["--more=20000"], n=2, ranks=2.1)
        run = self.replay_all("--", harness.app(self.PROGRAM), "--unseeded", f"--count={self.COUNT}", "--more=400000",
                              code=harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"rank 0: out of device memory: rank 0 asked for 1\.60 MB on device 0, which has 1\.01 MB")
        self.assertNotIn("cannot take turns", run.stdout)

    def test_a_program_handles_a_refusal_itself(self):
        recorded = self.record_ranks(["--more=400000", "--patient"], n=2)
        self.assertIn("rank 0 got 2", recorded.stdout)
        run = self.replay_all()
        self.assertSame(run, recorded, n=2)
        self.assertIn("rank 0 got 2", run.stdout)
        self.assertRegex(run.stdout, r"\n  out of device memory: rank 0 asked for 1\.60 MB")

    def test_turns_need_devices(self):
        run = self.checked(self.deja("replay", "run.deja", "--all", "--turns", "1"), harness.EXIT_USAGE)
        self.assertIn("--turns requires --devices", run.stderr)


if __name__ == "__main__":
    harness.main()
