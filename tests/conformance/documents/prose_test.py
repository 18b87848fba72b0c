"""The documents and help texts keep to docs/STYLE.md as far as tools/check_prose.py sees it, and it sees what it should."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import check_prose  # noqa: E402

LONG = " ".join(["be"] * 26)


class TestChecker(unittest.TestCase):
    def problems(self, text, name="docs/EXAMPLE.md"):
        return check_prose.check(name, text)

    def assert_found(self, part, text, name="docs/EXAMPLE.md"):
        self.assertTrue(any(part in problem for problem in self.problems(text, name)), f"{part} is not found in: {text}")

    def test_a_sentence_has_25_words_at_most(self):
        self.assertEqual(self.problems(LONG[3:] + ".\n"), [])
        self.assert_found("26 words", LONG + ".\n")
        self.assert_found("26 words", f"- {LONG[:50]}\n  {LONG[51:]}.\n")

    def test_a_code_span_is_one_word_and_a_link_is_its_text(self):
        self.assertEqual(self.problems("`" + LONG + "` is a word.\n"), [])
        self.assertEqual(self.problems("[text](https://example.org/a_b) is a word.\n"), [])

    def test_a_full_stop_ends_a_sentence_a_semicolon_only_in_a_cell(self):
        half = " ".join(["Be"] * 14)
        self.assertEqual(self.problems(f"{half}. {half}.\n"), [])
        self.assert_found("28 words", f"{half}; {half}.\n")
        self.assertEqual(self.problems(f"| a | b |\n| --- | --- |\n| x | {half}; {half} |\n"), [])

    def test_code_is_no_prose(self):
        self.assertEqual(self.problems(f"    {LONG} anew\n\n```\n{LONG} nobody\n```\n"), [])

    def test_banned_words_are_named_with_what_to_write(self):
        for text in ("It starts anew.", "Nobody sees it.", "It comes to a stop.", "Keep so many of them.",
                     "recv and its kin.", "It runs behind the checkpoint.", "The program is told a time.",
                     "The replay stands still."):
            self.assert_found("not used here; write", text + "\n")
        self.assertEqual(self.problems("The two are told apart. It waits behind a fence.\n"), [])

    def test_a_sentence_begins_with_its_noun(self):
        self.assert_found("begins without its noun", "Of MPI, two calls are recorded.\n")
        self.assert_found("begins without its noun", "Who reads a trace runs nothing.\n")
        self.assertEqual(self.problems("Who owns the buffer?\n"), [])

    def test_bad_examples_of_a_table_are_left_out(self):
        self.assertEqual(self.problems("| not | but |\n| --- | --- |\n| anew | again |\n"), [])
        self.assert_found("anew", "| not | but |\n| --- | --- |\n| again | anew |\n")
        self.assert_found("anew", "| not | but |\n| --- | --- |\n| x | y |\n\n| what | how |\n| --- | --- |\n| anew | y |\n")

    def test_records_may_have_long_sentences_but_no_banned_words(self):
        self.assertEqual(self.problems(LONG + ".\n", "docs/decisions/0000-example.md"), [])
        self.assert_found("anew", "It starts anew.\n", "docs/measurements/example.md")

    def test_banned_words_of_messages_are_named(self):
        def found(name, text):
            return check_prose.check_source(name, text)

        self.assertIn("cli/x.cc:2: \"nobody\"", found("cli/x.cc", '\nSay("replaying: nobody "\n    "agreed");\n')[0])
        self.assertIn("came to", found("cli/x.cc", 'Say("it came "\n    "to {}");')[0])
        self.assertEqual(found("cli/x.cc", '// nobody came to it\n/* anew */ char c = \'"\'; Say("{} and anew_name");'), [])
        self.assertEqual(found("cli/x.cc", 'Say("nobody");'), [], "one word is a name")
        self.assertIn("gdb/x.py:3: \"anew\"", found("gdb/x.py", '"""Starts anew."""\n# nobody\nsay(f"{a} is started anew")\n')[0])

    def test_the_sources_are_looked_at(self):
        names = {path.relative_to(ROOT).parts[0] for path in check_prose.sources()}
        self.assertGreaterEqual(names, {"cli", "format", "gdb", "recorder", "replayer", "python"})

    def test_lines_tabs_spaces_and_links(self):
        self.assert_found("121 columns", "x" * 121 + "\n")
        self.assertEqual(self.problems("| " + "x" * 121 + " |\n[x](" + "https://" + "y" * 121 + ")\n"), [])
        self.assert_found("a tab", "a\tb\n")
        self.assert_found("a space at the end", "a \n")
        self.assert_found("no such file", "[x](nowhere.md)\n")
        self.assertEqual(self.problems("[x](STYLE.md#words)\n"), [])

    def test_a_limit_has_two_lines_a_cell(self):
        table = "| limit | why |\n| --- | --- |\n| x | " + "It is so. " * 25 + "|\n"
        self.assert_found("over two lines", table, "docs/LIMITATIONS.md")
        self.assertEqual(self.problems(table), [])

    def test_help_texts_but_not_their_examples(self):
        text = ("```\nUsage: deja x [OPTIONS]\n\nOptions:\n  --all   Take so many of them\n  --long TEXT\n"
                f"                                  {LONG}\n\nExamples:\n  deja x   it starts anew\nNobody reads it.\n```\n")
        found = self.problems(text, "docs/CLI.md")
        self.assertEqual(len(found), 3, found)
        for part in ("so many", "26 words", "Nobody"):
            self.assertTrue(any(part in problem for problem in found), part)


class TestTree(unittest.TestCase):
    def test_documents_keep_to_the_rules(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_prose.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_picture_of_the_readme_is_drawn_from_its_text(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "make_session_picture.py", "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
