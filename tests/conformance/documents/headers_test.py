"""Every public function and class in the headers of tools/check_headers.py's folders has a comment; and the checker finds those without."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import check_headers  # noqa: E402

HEADER = """// Files: {head}.
namespace deja {{

class First {{
 public:
  First();
  {comment}
  int Read(void* to, size_t bytes);
  int One() const {{ return one_; }}

 private:
  void Hidden(int number);
  int one_;
}};

{other}
}}  // namespace deja
"""


class Headers(unittest.TestCase):
    def missing(self, comment="// Reads.", other="", head="reads them"):
        text = HEADER.format(comment=comment, other=other, head=head)
        return [problem.split(": ")[1] for problem in check_headers.missing("a.h", text)]

    def test_a_comment_is_enough(self):
        self.assertEqual(self.missing(), [])

    def test_a_function_without_comment_is_found(self):
        self.assertEqual(self.missing(comment=""), ["function Read"])

    def test_a_second_class_without_comment_is_found(self):
        other = "class Second {\n public:\n  explicit Second(int number);\n};\n"
        self.assertEqual(self.missing(other=other), ["class Second", "function Second"])
        self.assertEqual(self.missing(other="// Writes files.\n" + other.replace("  explicit", "  // A file.\n  explicit")), [])

    def test_the_head_of_a_file_serves_a_class_that_it_names(self):
        self.assertEqual(self.missing(other="class Second {\n};\n", head="First reads them, Second writes them"), [])

    def test_one_comment_serves_the_lines_after_it(self):
        self.assertEqual(self.missing(other="// In bytes.\nint Size(int file);\nint Room(int file);\n\nint Rest(int file);\n"),
                         ["function Rest"])

    def test_a_body_of_one_statement_needs_none(self):
        self.assertEqual(self.missing(other="inline int Twice(int n) {\n  return 2 * n;\n}\n"), [])
        self.assertEqual(self.missing(other="inline int Twice(int n) {\n  n *= 2;\n  return n;\n}\n"), ["function Twice"])

    def test_the_tree_has_none_without(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_headers.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
