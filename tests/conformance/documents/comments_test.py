"""Comments of sources keep to docs/STYLE.md as far as tools/check_comments.py sees it; and it sees what it should."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import check_comments  # noqa: E402

LONG = "It is " + "so " * 24 + "long."


class Comments(unittest.TestCase):
    def found(self, name, text, *parts):
        problems = check_comments.check(name, text)
        self.assertEqual(len(problems), len(parts), problems)
        for problem, part in zip(problems, parts):
            self.assertIn(part, problem)

    def test_words_in_each_language(self):
        self.found("a.cc", "int a;  // begins anew\n/* nobody */\n", "anew", "nobody")
        self.found("a.py", '"""Begins anew."""\nx = 1  # nobody\n', "nobody", "anew")
        self.found("CMakeLists.txt", "set(a 1)  # begins anew\n", "anew")

    def test_code_and_texts_are_no_comments(self):
        self.found("a.cc", 'const char* a = "// nobody";\nchar b = \'"\'; int nobody;\n')
        self.found("a.py", 'a = "# nobody"\nnobody = 1\n')
        self.found("a.sh", 'say "so # nobody"\n')
        self.found("a.cc", "//     nobody(code);\n")

    def test_a_paragraph_is_one_text(self):
        words = LONG.split()
        lines = "".join(f"// {' '.join(part)}\n" for part in (words[:10], words[10:20], words[20:]))
        self.found("a.cc", lines, "27 words")
        self.found("a.cc", lines.replace("// ", "//\n// "))
        self.found("a.h", "// First one.\n// " + " ".join(words[:20]) + "; " + " ".join(words[20:]) + "\n")

    def test_a_comment_after_code_stands_alone(self):
        half = "some words " * 7
        self.found("a.h", f"int a;  // {half}\nint b;  // {half}\n")

    def test_width(self):
        self.found("a.py", f"# {'x' * 119}\n", "121 columns")
        self.found("a.py", f"x = '{'x' * 119}'\n")
        self.found("a.py", f"#     {'x' * 119}\n")

    def test_the_tree_keeps_to_the_rules(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_comments.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
