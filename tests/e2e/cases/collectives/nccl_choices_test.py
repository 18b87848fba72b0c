"""What NCCL chooses for collectives: told to Deja's profiler plugin, recorded, and left to the program's own one."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

OWN_PLUGIN = harness.BUILD / "tests" / "own_profiler" / "libnccl-profiler.so"


class NcclChoices(DeviceJobs):
    PROGRAM = "cuda_steps"

    def record_profiled(self, version, args=("--steps=2",), trace="run.deja", **env):
        env = {"DEJA_FAKE_NCCL_PROFILER": version, **env}
        return self.checked(self.record(self.PROGRAM, args, n=2, trace=trace, env=env))

    def chosen(self, rank=0, trace="run.deja"):
        return {(e["comm"], e["seq_on_comm"]): e
                for e in self.show_json("--rank", str(rank), "--kind", "algorithm", trace=trace)}

    def collectives(self, rank=0, trace="run.deja"):
        return {(e["comm"], e["seq_on_comm"]): e
                for e in self.show_json("--rank", str(rank), "--kind", "enter", trace=trace)
                if "seq_on_comm" in e and e["call"] not in ("Send", "Recv")}

    def check_joined(self, trace="run.deja", rank=0):
        """Each choice is of the collective that it says it is of, and what the stand-in would choose for it."""
        chosen, collectives = self.chosen(rank, trace), self.collectives(rank, trace)
        self.assertTrue(chosen)
        for key, choice in chosen.items():
            self.assertEqual(choice["call"], collectives[key]["call"])
            self.assertIn((choice["algorithm"], choice["protocol"], choice["channels"]),
                          [("TREE", "LL", 1), ("RING", "LL128", 2)])
        return chosen, collectives

    def test_each_version_of_the_interface_tells_of_each_collective(self):
        for version in range(1, 8):
            with self.subTest(version=version):
                trace = f"v{version}.deja"
                self.record_profiled(version, trace=trace)
                for rank in (0, 1):
                    chosen, collectives = self.check_joined(trace, rank)
                    self.assertEqual(chosen.keys(), collectives.keys())
                    self.assertTrue(all(c["algorithm"] == "RING" for c in chosen.values()))

    def test_small_and_large_ones_in_groups(self):
        self.PROGRAM = "cuda_collectives"
        for version in (3, 7):
            trace = f"v{version}.deja"
            self.record_profiled(version, (), trace=trace)
            chosen, collectives = self.check_joined(trace)
            self.assertGreater(len(chosen), len(collectives) * 0.9)

    def test_listings_say_it(self):
        self.record_profiled(6)
        shown = self.checked(self.deja("show", self.trace_path(), "--call", "AllReduce", "--seq", "1")).stdout
        self.assertIn("chosen for AllReduce #1 comm 0: RING LL128, 2 channels", shown)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn("last AllReduce: RING LL128, 2 channels", info)
        comm = self.info_json()["ranks"][0]["comms"][0]
        self.assertIn({"call": "AllReduce", "algorithm": "RING", "protocol": "LL128", "channels": 2},
                      comm["last_choices"])

    def test_replays_do_not_ask(self):
        recorded = self.record_profiled(6)
        run = self.checked(self.replay(1))
        self.assertEqual(self.rank_line(run, 1), self.rank_line(recorded, 1))

    def test_launches_on_threads_of_the_library(self):
        self.record_profiled(6, DEJA_FAKE_NCCL_PROFILER_THREAD=1)
        chosen, collectives = self.check_joined()
        self.assertEqual(chosen.keys(), collectives.keys())
        # Before version 5 nothing says whose they are.
        self.record_profiled(4, trace="old.deja", DEJA_FAKE_NCCL_PROFILER_THREAD=1)
        self.assertEqual(self.chosen(trace="old.deja"), {})

    def test_an_nccl_without_the_interface(self):
        self.checked(self.record(self.PROGRAM, ["--steps=1"], n=2))
        self.assertEqual(self.chosen(), {})

    def test_a_program_that_wants_none_has_none(self):
        self.record_profiled(6, NCCL_PROFILER_PLUGIN="none")
        self.assertEqual(self.chosen(), {})

    def check_own_plugin(self, **env):
        run = self.record_profiled(6, **env)
        self.assertIn("own plugin: begins", run.stderr)
        self.assertIn("own plugin: AllReduce by RING", run.stderr)
        self.assertEqual(self.chosen(), {})
        self.assertIn("not recorded: NCCL's choice of algorithms: a profiler plugin of the program's own",
                      self.checked(self.deja("info", self.trace_path())).stdout)

    def test_a_plugin_that_the_program_names_is_the_one(self):
        self.check_own_plugin(NCCL_PROFILER_PLUGIN=OWN_PLUGIN)

    def test_a_plugin_that_is_installed_is_the_one(self):
        self.check_own_plugin(LD_LIBRARY_PATH=OWN_PLUGIN.parent)

    def test_a_plugin_that_is_part_of_the_program_is_the_one(self):
        self.check_own_plugin(NCCL_PROFILER_PLUGIN="STATIC_PLUGIN", LD_PRELOAD=OWN_PLUGIN)


if __name__ == "__main__":
    harness.main()
