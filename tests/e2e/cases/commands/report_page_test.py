"""deja report in a browser: the page's scripts run without an error, and fill it. Needs Chromium."""
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

BROWSER = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


@unittest.skipUnless(BROWSER, "needs Chromium")
class ReportPage(harness.DejaTest):
    def shown(self, page):
        """The document after its scripts have run, and what they said to the console."""
        run = self.checked(self.command(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.dir / 'profile'}",
             "--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom", page.as_uri()], timeout=120))
        return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]

    def test_scripts_fill_the_page(self):
        self.record("zoo_extra_gather", n=4, level="digest")
        page = self.dir / "page.html"
        self.checked(self.deja("report", self.trace_path(), "--out", page))
        self.assertLess(page.stat().st_size, 2_000_000)
        document, said = self.shown(page)
        self.assertEqual(said, [])
        self.assertRegex(document, r'id="timeline-summary">\d+ operations of 4 ranks in ')
        # The data of the page has the sentences, too: only what its scripts have made is looked at.
        made = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", document)
        for text in "First cause: order", "rank 1 made one AllGather float32[1] more", "Show in the timeline", "Last operation":
            self.assertTrue(text in made, text)

    def test_an_error_would_be_seen(self):
        page = self.dir / "bad.html"
        page.write_text("<script>missing()</script>")
        self.assertIn("missing is not defined", "".join(self.shown(page)[1]))


if __name__ == "__main__":
    harness.main()
