"""A trace whose every string is markup, script, terminal commands and line ends: text in each command's output."""
import csv
import html.parser
import json
import sys
import unicodedata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

MAKE_TRACE = harness.BUILD / "bin" / "make_foreign_trace"
PLAIN = "plain"
HOSTILE = ("</script></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'`${x}<!--\x1b[2J\x1b]0;title\x07\x9b2J"
           "\nforged: line\r\u2028\u202e=1+1")


class Page(html.parser.HTMLParser):
    """What a page consists of, without its texts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        self.tags.append("/" + tag)


class Hostile(harness.DejaTest):
    def setUp(self):
        for name, text in (("plain", PLAIN), ("hostile", HOSTILE)):
            self.checked(self.command([MAKE_TRACE, self.trace_path(f"{name}.deja"), "/bin/true", "", "/tmp", text, text]))

    def assertText(self, text, what):
        """No character that a terminal or an eye takes for something else, and no line that the trace has made."""
        wrong = [character for character in text if character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")]
        self.assertEqual(wrong, [], f"{what}: {text!r}")
        self.assertFalse([line for line in text.splitlines() if line.startswith("forged")], what)

    def test_every_command_prints_text(self):
        trace = self.trace_path("hostile.deja")
        for words in (["info"], ["info", "--children", "--packages"], ["show", "--all", "--stacks"], ["show", "--all"], ["check"],
                      ["top", "--count", 1], ["verify"], ["diff", self.trace_path("plain.deja")], ["replay", "--rank", 0],
                      ["doctor"], ["pack", "--dry-run", "--redact"]):
            for more in ([], ["--json"]):
                run = self.deja(words[0], trace, *words[1:], *more)
                self.assertIn(run.code, (0, 1, 2, 3, 4), run)
                self.assertText(run.stdout, [*words, *more])
                self.assertText(run.stderr, [*words, *more])
                if more and run.code in (0, 3, 4):
                    for document in ([run.stdout] if words[0] not in ("show",) else run.stdout.splitlines()):
                        json.loads(document)

    def test_a_report_has_the_same_markup(self):
        pages = []
        for name in ("plain", "hostile"):
            out = self.dir / f"{name}.html"
            self.assertIn(self.deja("report", self.trace_path(f"{name}.deja"), "--out", out).code, (0, 3))
            pages.append(out.read_text(encoding="utf-8"))
        plain, hostile = (Page(page).tags for page in pages)
        self.assertEqual({tag for tag in hostile if tag not in plain}, set())
        self.assertEqual(hostile.count(("script", ())), plain.count(("script", ())))
        self.assertNotIn("<img", pages[1])
        self.assertNotIn("\x1b", pages[1])

    def test_exports_are_what_they_should_be(self):
        for form in ("json", "chrome", "csv", "perfetto", "fr"):
            out = self.dir / f"out.{form}"
            run = self.deja("export", self.trace_path("hostile.deja"), "--format", form, "--out", out)
            self.assertIn(run.code, (0, 3), run)
            for file in [out] if out.is_file() else sorted(out.iterdir()):
                # Binary forms have bytes of any value, but no text that begins a terminal's command.
                self.assertNotIn(b"\x1b[2J", file.read_bytes())
            if form in ("json", "chrome"):
                json.loads(out.read_text(encoding="utf-8"))
            if form == "csv":
                for row in csv.reader(out.read_text(encoding="utf-8").splitlines()):
                    self.assertFalse([cell for cell in row if cell[:1] in ("=", "+", "@")], row)


if __name__ == "__main__":
    harness.main()
