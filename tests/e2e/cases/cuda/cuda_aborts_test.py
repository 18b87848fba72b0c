"""Communicators that are given up while their operations are under way on the device, by another thread too."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402


class CudaAborts(DeviceJobs):
    PROGRAM = "cuda_aborts"

    def tensors(self, rank):
        """For each operation of the communicator that is lost, whether its results and inputs are aborted."""
        found = {}
        for event in self.show_json("--rank", str(rank), "--kind", "results"):
            if event["comm"] == 0:
                for tensor in event["outputs"]:
                    found.setdefault(event["seq_on_comm"], []).append(tensor)
        return found

    def check_aborted(self, args, by="CommAbort"):
        recorded = self.check_replays(["--unseeded", *args])
        self.assertIn("looks 40\n", self.rank_line(recorded, 0) + "\n")
        tensors = self.tensors(0)
        for operation in (1, 2, 3):
            for tensor in tensors[operation]:
                self.assertNotIn("aborted", tensor)
                self.assertIn("hash", tensor)
        # The input of the one that hung was there; nothing of the one after it.
        self.assertEqual([("aborted" in t, "hash" in t) for t in tensors[4]], [(False, True), (True, False)])
        self.assertEqual([("aborted" in t, "hash" in t) for t in tensors[5]], [(True, False), (True, False)])
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(info, rf"comm 0: rank 0 of 2, 5 operations, given up by {by} with 3 tensors under way")
        show = self.checked(self.deja("show", self.trace_path(), "--rank", "0")).stdout
        self.assertIn("float32[2000] (aborted)", show)
        self.assertIn(f"comm 0 is given up by {by}, 3 tensors under way", show)

    def test_runs_without_deja_and_prints_the_same(self):
        plain = self.checked(self.launch(self.PROGRAM, n=2))
        recorded = self.checked(self.record(self.PROGRAM, n=2))
        for rank in (0, 1):
            self.assertEqual(self.rank_line(plain, rank), self.rank_line(recorded, rank))

    def test_by_a_watchdog(self):
        self.check_aborted([])

    def test_by_the_thread_that_issued_them(self):
        self.check_aborted(["--by=main"])

    def test_revoked(self):
        self.check_aborted(["--how=revoke"], by="CommRevoke")

    def test_a_shrink_that_aborts(self):
        self.check_aborted(["--how=shrink"], by="CommShrink")

    def launches(self, rank):
        """For each launch of the graph's all-reduce, whether its input and its result are aborted."""
        events = [e for e in self.show_json("--rank", str(rank), "--kind", "results") if e["comm"] == 0]
        found = {}
        for event in events:
            for tensor in event["outputs"]:
                self.assertEqual("aborted" in tensor, "hash" not in tensor)
                found.setdefault(tensor["param"], []).append("aborted" in tensor)
        return list(found.values())

    def test_launches_of_a_graph(self):
        for args in ([], ["--by=main"], ["--how=revoke"], ["--how=shrink"]):
            with self.subTest(args=args):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                plain = self.checked(self.launch(self.PROGRAM, ["--graph", *args], n=2))
                recorded = self.check_replays(["--graph", *args])
                for rank in (0, 1):
                    self.assertEqual(self.rank_line(plain, rank), self.rank_line(recorded, rank))
                self.assertIn("looks 40\n", self.rank_line(recorded, 0) + "\n")
                # The first launch that hung had read its input; of the one behind it there is nothing.
                self.assertEqual(self.launches(0), [[False] * 4 + [True], [False] * 3 + [True] * 2])
                self.assertEqual(self.launches(1), [[False] * 3] * 2)

    def test_launches_that_were_done_and_a_peer_that_is_gone(self):
        self.check_replays(["--unseeded", "--graph", "--done"])
        self.assertEqual(self.launches(0), [[False] * 3] * 2)
        shutil.rmtree(self.trace_path())
        recorded = self.record(self.PROGRAM, ["--unseeded", "--graph", "--peer=gone"], n=2)
        line = self.rank_line(recorded, 0)
        self.assertIn("error 6,", line)
        self.assertEqual(self.rank_line(self.checked(self.replay(0)), 0), line)

    def test_a_process_that_ends_while_its_stream_hangs(self):
        """Nothing was aborted: what was under way at the end is under way in the replay."""
        for args in ([], ["--graph"]):
            with self.subTest(args=args):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                recorded = self.record(self.PROGRAM, ["--how=exit", *args], n=2, options=["--grace", 1])
                self.assertEqual(self.rank_line(recorded, 0), "rank 0 of 2: ends, looks 40")
                run = self.checked(self.replay(0))
                self.assertEqual(self.rank_line(run, 0), "rank 0 of 2: ends, looks 40")
                self.assertIn("exit 4, the same as recorded", run.stdout)

    def test_earlier_results_are_kept(self):
        self.check_replays(["--unseeded", "--done"])
        for tensors in self.tensors(0).values():
            for tensor in tensors:
                self.assertIn("hash", tensor)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(info, r"comm 0: rank 0 of 2, 3 operations, given up by CommAbort\n")

    def test_operations_under_way_at_the_end_do_not_complete_in_a_replay(self):
        self.record(self.PROGRAM, ["--by=nobody"], n=2)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn("rank 0: killed by SIGALRM, after AllReduce #5 of comm 0\n", info)
        run = self.checked(self.replay(0))
        self.assertIn("SIGALRM", run.stdout)
        self.assertNotIn("the stream went on", run.stdout)

    def test_a_peer_that_is_gone(self):
        recorded = self.record(self.PROGRAM, ["--unseeded", "--peer=gone"], n=2)
        line = self.rank_line(recorded, 0)
        self.assertIn("error 6,", line)  # ncclRemoteError
        run = self.checked(self.replay(0))
        self.assertEqual(self.rank_line(run, 0), line)


if __name__ == "__main__":
    harness.main()
