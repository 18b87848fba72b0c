"""Nothing of a secret kind is in a trace unless it was asked for: while a program runs and afterwards."""
import http.server
import os
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "conformance" / "trace"))
import harness  # noqa: E402
import independent_reader  # noqa: E402

# Random enough to be nowhere else.
TOKEN = "hf_Zq8vN3kLxW7rT5yBm2HcD9sJfGpAeUoIqX"
PASSWORD = "Swordfish-4711-tQmVbZ"
KEY = "kEy-93jd83jd02kd93jd"
HARMLESS = "a-name-that-is-no-secret-0815"
SECRETS = (TOKEN, PASSWORD, KEY)
ENVIRONMENT = {"MY_TOKEN": TOKEN, "DB_PASSWORD": PASSWORD, "PROXY": f"http://joe:{PASSWORD}@proxy:3128",
               "JUST_A_NAME": HARMLESS}

SCRIPT = """
import os, sys, time
print(os.environ["MY_TOKEN"], os.environ["DB_PASSWORD"], os.environ["PROXY"], sys.argv[1:], flush=True)
open("running", "w").close()
while os.path.exists("wait"):
    time.sleep(0.05)
"""
ARGUMENTS = ["--api-key", KEY, f"--url=https://host/?access_token={KEY}"]


def everything(folder):
    """All bytes of a trace: its files as they are, and their frames unpacked."""
    found = b""
    for path in sorted(Path(folder).rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        found += data
        if data[:8] == independent_reader.MAGIC:
            found += b"".join(payload for _, payload, _ in independent_reader.File(str(path)).frames())
    return found


class Secrets(harness.DejaTest):
    def record_script(self, *options, env=None, **kwargs):
        return self.checked(self.deja("record", "--single", "--out", self.trace_path(), *options, "--", sys.executable,
                                      "-c", SCRIPT, *ARGUMENTS, env={**ENVIRONMENT, **(env or {})}, **kwargs))

    def assertNoSecret(self, data, where):
        for secret in SECRETS:
            self.assertNotIn(secret.encode(), data, f"{secret} is in {where}")

    def test_none_is_in_the_trace(self):
        run = self.record_script()
        for secret in SECRETS:
            self.assertIn(secret, run.stdout)  # the program itself gets them
        data = everything(self.trace_path())
        self.assertNoSecret(data, "the trace")
        self.assertIn(HARMLESS.encode(), data)  # so this would be found
        self.checked(self.deja("pack", self.trace_path(), "--out", self.dir / "run.deja.zip"))
        self.assertNoSecret((self.dir / "run.deja.zip").read_bytes(), "the bundle")
        shown = self.deja("show", self.trace_path()).stdout + self.deja("info", self.trace_path()).stdout
        self.assertNoSecret(shown.encode(), "a listing")

    def test_none_is_in_the_trace_while_it_is_recorded(self):
        (self.dir / "wait").write_text("")
        before = harness.shm_names()
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable,
                              "-c", SCRIPT, *ARGUMENTS], env=ENVIRONMENT)
        try:
            while not (self.dir / "running").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            self.assertNoSecret(everything(self.trace_path()), "the trace of a running process")
            tails = [name for name in harness.shm_names() - before if "deja" in name]
            self.assertTrue(tails)
            for name in tails:
                try:
                    self.assertNoSecret((Path("/dev/shm") / name).read_bytes(), name)
                except FileNotFoundError:
                    pass  # of another test
        finally:
            (self.dir / "wait").unlink()
            self.finish(process)

    def test_none_of_a_web_service_is_in_the_trace(self):
        """What is sent is kept as a hash; of what comes in, values of secret headers are masked. Bodies are data."""
        class Service(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                self.send_header("Set-Cookie", f"session={PASSWORD}; Path=/")
                self.send_header("X-Api-Key", KEY)
                self.send_header("X-Plain", HARMLESS)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"body")

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            client = ("import http.client, os, sys\n"
                      "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
                      "for _ in range(2):\n"
                      "    c.request('GET', '/?access_token=' + os.environ['MY_TOKEN'],\n"
                      "              headers={'Authorization': 'Bearer ' + os.environ['MY_TOKEN']})\n"
                      "    r = c.getresponse()\n"
                      "    print(r.getheader('Set-Cookie'), r.getheader('X-Api-Key'), r.getheader('X-Plain'), r.read())\n")
            script = self.dir / "client.py"
            script.write_text(client)
            run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", sys.executable,
                                         script, server.server_port, env=ENVIRONMENT))
            server.shutdown()
        self.assertIn(PASSWORD, run.stdout)
        self.assertIn(KEY, run.stdout)
        data = everything(self.trace_path())
        self.assertIn(f"X-Plain: {HARMLESS}".encode(), data)  # so the others would be found
        self.assertNoSecret(data, "the trace")
        # With its token the program sends what it sent.
        replayed = self.checked(self.replay(0, options=["--pass-env", "MY_TOKEN"], env=ENVIRONMENT))
        self.assertIn(HARMLESS, replayed.stdout)
        self.assertNotIn(PASSWORD, replayed.stdout)

    def test_none_is_left_by_a_process_that_was_killed(self):
        (self.dir / "wait").write_text("")
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable,
                              "-c", SCRIPT, *ARGUMENTS], env=ENVIRONMENT)
        while not (self.dir / "running").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        self.finish(process)
        self.assertNoSecret(everything(self.trace_path()), "the trace of a killed process")

    def test_info_says_what_is_masked(self):
        self.record_script()
        masked = self.info_json()["masked"]
        for name in ("MY_TOKEN", "DB_PASSWORD", "PROXY", "argv[4]", "argv[5]"):
            self.assertIn(name, masked)
        self.assertNotIn("JUST_A_NAME", masked)
        self.assertRegex(self.deja("info", self.trace_path()).stdout, r"masked +\d+ values, not stored: .*MY_TOKEN")

    def test_a_replay_gets_masks_of_the_same_length(self):
        run = self.record_script()
        again = self.checked(self.replay(0))
        self.assertEqual(len(again.stdout.splitlines()[0]), len(run.stdout.splitlines()[0]))
        self.assertIn("deja-masked", again.stdout)
        self.assertRegex(again.stderr, r"deja: masked in the trace.*MY_TOKEN")

    def test_a_replay_takes_what_it_is_given(self):
        self.record_script()
        again = self.checked(self.replay(0, options=["--pass-env", "MY_TOKEN"], env={"MY_TOKEN": "mine"}))
        self.assertTrue(again.stdout.startswith("mine deja-masked"), again.stdout)
        again = self.checked(self.replay(0, options=["--pass-env", "MY_TOKEN"]))
        self.assertIn("--pass-env MY_TOKEN: it is not set here", again.stderr)

    def test_the_given_variables_are_kept_and_masked(self):
        self.record_script("--keep-env", "MY_*", "--keep-env", "api-key,access_token", "--mask", "JUST_A_*")
        data = everything(self.trace_path())
        self.assertIn(TOKEN.encode(), data)
        self.assertIn(KEY.encode(), data)
        self.assertNotIn(PASSWORD.encode(), data)
        self.assertNotIn(HARMLESS.encode(), data)
        self.assertIn("JUST_A_NAME", self.info_json()["masked"])


if __name__ == "__main__":
    harness.main()
