"""Functions of the C library by names that programs rarely use: each is recorded and replayed, and changes nothing for the program."""
import socketserver
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

PROGRAMS = harness.BUILD / "tests" / "libc"


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)


def of_every_run(text):
    return [line for line in text.splitlines() if not line.startswith("~")]


class EveryCall(harness.DejaTest):
    def assertTheSame(self, name, *args):
        program = PROGRAMS / f"libc_every_{name}_call"
        (self.dir / "plain").mkdir()
        (self.dir / "recorded").mkdir()
        plain = self.command([program, *args], cwd=self.dir / "plain")
        if plain.code == 77:
            self.skipTest(plain.stderr.strip())
        self.checked(plain)
        run = self.checked(self.record_single(program, *args, cwd=self.dir / "recorded"))
        self.assertEqual(of_every_run(plain.stdout), of_every_run(run.stdout))
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
        self.assertIn("the same as recorded", again.stdout)

    def test_files(self):
        folder = self.dir / "data"
        folder.mkdir()
        (folder / "data.txt").write_text("".join(f"{i:03} of the lines\n" for i in range(20)))
        for name in ("a", "b"):
            (folder / name).write_text(name)
        self.assertTheSame("file", folder)

    def test_sockets(self):
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                self.assertTheSame("socket", server.server_address[1])
            finally:
                server.shutdown()

    def test_processes(self):
        self.assertTheSame("process")

    def test_locks(self):
        self.assertTheSame("lock")


if __name__ == "__main__":
    harness.main()
