"""Windows: recorded as calls, and said, since what other ranks put into them comes without a call."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

NOT_RECORDED = "not recorded: bytes that other ranks may have put into the windows of comm 0 by one-sided operations"


class Windows(harness.DejaTest):
    def test_a_communicator_with_windows_is_named_once(self):
        self.checked(self.record("nccl_registration", n=2))
        self.assertEqual(self.checked(self.deja("info", self.trace_path())).stdout.count(NOT_RECORDED), 2)
        calls = self.show_json("--rank", "0", "--call", "CommWindowRegister")
        self.assertTrue(calls)
        self.assertVerifies()
        self.checked(self.replay(0))  # what may have been missing is no loss

    def test_one_without_windows_is_not(self):
        self.checked(self.record("nccl_groups", n=2))
        self.assertNotIn("not recorded", self.checked(self.deja("info", self.trace_path())).stdout)


if __name__ == "__main__":
    harness.main()
