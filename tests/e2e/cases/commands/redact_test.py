"""`deja pack --redact`: nothing of who and where is in the bundle, in any of its bytes, and it replays all the same."""
import json
import pickle
import random
import shlex
import socketserver
import stat
import string
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "conformance" / "trace"))
import harness  # noqa: E402
import independent_reader  # noqa: E402

RANKS = 2
USER, HOST, ADDRESS, PROJECT = "alice-smith", "trainbox17.lab.example", "10.44.7.193", "falcon-project-9000"
LETTERS = string.ascii_letters + string.digits


class Secrets:
    """Made for each test, from a fixed seed: strings that are nowhere else."""
    def __init__(self):
        self.random = random.Random(4711)
        self.all = []

    def new(self, form="{}", length=24, letters=LETTERS):
        # With digits, as keys have them.
        secret = form.format("".join(self.random.choice(letters) for _ in range(length - 2)) + "72")
        self.all.append(secret)
        return secret

    def hex(self, form="{}", length=32):
        return self.new(form, length, "0123456789abcdef")


def variables(secrets):
    named = {f"TELL_{name}": secrets.new() for name in (
        "PGPASSWORD", "SSHPASS", "DBPASSWORD", "MYSQLPASS", "CLIENTSECRET", "PASS", "DB_PW", "KAGGLE_KEY", "COMET_KEY", "GITHUB_PAT",
        "AZURE_DEVOPS_EXT_PAT", "HF_TOKEN_OLD", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "SESSION_SECRET", "REDIS_AUTH", "SLURM_JWT",
        "STORAGE_ACCOUNT_KEY", "SMTP_PASSWD", "GPG_PASSPHRASE", "WEBHOOK")}
    formed = {
        "TELL_TOKEN": secrets.new("hf_{}", 34), "TELL_A": secrets.new("ghp_{}", 36), "TELL_B": secrets.new("sk_live_{}"),
        "TELL_C": secrets.new("glpat-{}", 20), "TELL_D": secrets.new("AKIA{}", 16, string.ascii_uppercase + "234567"),
        "TELL_E": "https://hooks.slack.com/services/" + secrets.new("T01234567/B01234567/{}"),
        "TELL_F": f"https://{secrets.new()}@o1.ingest.sentry.io/42", "TELL_G": f"Bearer {secrets.new()}",
        "TELL_H": f"https://s3.example/x?X-Amz-Signature={secrets.new()}&b=1", "TELL_I": f"postgres://joe:{secrets.new()}@db/x",
        "TELL_J": json.dumps({"auths": {"r.io": {"auth": secrets.new()}}}), "TELL_K": secrets.new("npm_{}", 36),
        "TELL_L": secrets.new("xoxb-0123456789-0123456789{}"), "TELL_M": secrets.hex("dapi{}"),
        "TELL_N": f"host=db user=joe password={secrets.new()} port=5", "TELL_ALGOLIA": secrets.hex(),
    }
    return {**named, **formed}


def arguments(secrets):
    return ["-p", secrets.new(), "--auth", secrets.new(), "--api-key", secrets.new(), f"--password={secrets.new()}", "-u",
            "joe:" + secrets.new(), f"--url=https://joe:{secrets.new()}@host/x", f"--hub_token={secrets.new()}", secrets.new("ghs_{}", 36),
            "--header", f"Authorization: Basic {secrets.new()}", f"--db=password={secrets.new()}", secrets.new("github_pat_{}", 40)]


def files(secrets):
    """Name to contents; those that begin with / are of the home folder."""
    private = "\n".join(secrets.new(length=64) for _ in range(4))
    return {
        "/.netrc": f"machine example.org login joe password {secrets.new()}\n",
        "/.aws/credentials": f"[default]\naws_access_key_id = {secrets.new('ASIA{}', 16, string.ascii_uppercase)}\naws_secret_access_key = {secrets.new()}\n",
        "/.ssh/id_ed25519": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{private}\n-----END OPENSSH PRIVATE KEY-----\n",
        "/.kaggle/kaggle.json": json.dumps({"username": "joe", "key": secrets.hex()}),
        "/.config/gh/hosts.yml": f"github.com:\n    user: joe\n    oauth_token: {secrets.new('gho_{}', 36)}\n",
        "/.pgpass": f"db:5432:train:joe:{secrets.new()}\n",
        "settings.json": json.dumps({"api_key": secrets.new(), "db": {"password": secrets.new()}, "lr": 0.1, "tokens": [1, 2],
                                     "client_secret": secrets.new(), "note": f"by {USER} on {HOST}"}),
        "log.txt": (f"{USER} at {HOST} ({ADDRESS}) in /home/{USER}/data\n" + "x" * 70000 + f"\ntoken={secrets.new()}\n"
                    f"curl -H 'Authorization: Bearer {secrets.new()}' https://joe:{secrets.new()}@h/\n{secrets.new('sk-ant-{}', 40)}\n"),
        "env.sh": "".join(f"export {name}={secrets.new()}\n" for name in (
            "DB_PASSWORD", "OPENAI_API_KEY", "NGC_API_KEY", "HF_TOKEN", "WANDB_API_KEY", "CI_JOB_TOKEN", "VAULT_SECRET_ID", "SENTRY_AUTH_TOKEN",
            "ROOT_PASSWD", "COOKIE_SECRET", "ENCRYPTION_KEY", "MY_CREDENTIALS")),
        "state2.pkl": pickle.dumps({"epoch": 3, "password": secrets.new(), "api_key": secrets.new().encode()}, protocol=2),
        "state4.pkl": pickle.dumps({"auth": {"user": "joe", "auth_token": secrets.new()}, "client_secret": secrets.new()}, protocol=4),
    }


def answer(secrets):
    """As of a web service: headers and a body."""
    body = json.dumps({"access_token": secrets.new(), "refresh_token": secrets.new(), "expires_in": 3600, "items": ["a", "b"] * 10,
                       "upload": f"https://b.example/x?sig={secrets.new()}&X-Amz-Security-Token={secrets.new()}", "owner": USER,
                       "node": HOST, "key": secrets.hex(), "webhook_secret": secrets.new(), "logins": [{"user": "joe", "password": secrets.new()} for _ in range(14)], "other": secrets.new("ghu_{}", 36),
                       "jwt": "eyJhbGciOiJIUzI1NiJ9." + secrets.new(length=30) + "." + secrets.new(length=30)})
    return (f"HTTP/1.0 200 OK\r\nSet-Cookie: session={secrets.new()}\r\nX-Api-Key: {secrets.new()}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


class Redacted(harness.DejaTest):
    def setUp(self):
        self.secrets = Secrets()
        self.home = self.dir / "home" / USER
        self.work = self.dir / "work"
        self.work.mkdir()
        self.env = {**variables(self.secrets), "HOME": str(self.home), "USER": USER, "HOSTNAME": HOST, "TELL_PROJECT": PROJECT,
                    "TELL_DATA": f"/home/{USER}/data/{PROJECT}", "TELL_HOST": HOST, "NCCL_IB_HCA": "mlx5_0", "NCCL_COMM_NODE": ADDRESS}
        self.arguments = arguments(self.secrets)
        for name, text in files(self.secrets).items():
            path = Path(f"{self.home}{name}") if name[0] == "/" else self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            self.arguments.append(f"FILE={path if name[0] == '/' else name}")
        said = answer(self.secrets)

        class Service(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.recv(4096)
                for at in range(0, len(said), 50):
                    self.request.sendall(said[at:at + 50])

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Service)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.arguments.insert(0, f"PORT={self.server.server_address[1]}")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def record_job(self):
        return self.checked(self.record("tells", self.arguments, n=RANKS, options=["--inputs", "full"], env=self.env, cwd=self.work))

    def everything(self, bundle):
        """All bytes of a bundle: as it is, its members, the frames in them, and what payloads are when they are
        decoded."""
        found = bundle.read_bytes()
        folder = self.dir / "members"
        with zipfile.ZipFile(bundle) as archive:
            names = archive.namelist()
            found += " ".join(names).encode()
            archive.extractall(folder)
        for name in names:
            path = folder / name
            data = path.read_bytes()
            found += data
            if data[:8] == independent_reader.MAGIC:
                file = independent_reader.File(str(path))
                found += b"".join(payload for _, payload, _ in file.frames())
                found += b"".join(independent_reader.read_payloads([file]).values())
        return found

    def assertNone(self, data, strings):
        left = [text for text in strings if text.encode() in data]
        self.assertEqual(left, [])

    def test_nothing_is_left_and_it_replays(self):
        run = self.record_job()
        self.assertGreaterEqual(len(self.secrets.all), 100)
        self.assertEqual(len(set(self.secrets.all)), len(self.secrets.all))
        for secret in self.secrets.all[:40]:
            self.assertIn(secret, run.stdout)  # the program itself had them
        self.assertIn("recording: " + str(self.home / ".netrc") + ": a file of secrets by its name", run.stderr)

        plain = self.dir / "plain.zip"
        packed = self.checked(self.deja("pack", self.trace_path(), "-o", plain))
        self.assertIn(f"{self.home}/.netrc: the bundle holds its contents: a file of secrets, by its name", packed.stderr)
        self.assertIn(f"{self.work}/settings.json: the bundle holds its contents: bytes that look like a secret (name)", packed.stderr)
        everything = self.everything(plain)
        in_plain = [secret for secret in self.secrets.all if secret.encode() in everything]
        self.assertGreater(len(in_plain), 20)  # so they would be found
        self.assertIn(HOST.encode(), everything)

        bundle = self.dir / "redacted.zip"
        packed = self.checked(self.deja("pack", self.trace_path(), "-o", bundle, "--redact", "--json"))
        everything = self.everything(bundle)
        self.assertNone(everything, self.secrets.all)
        self.assertNone(everything, [USER, HOST, HOST.split(".")[0], ADDRESS, PROJECT, str(self.dir), self.dir.name])
        self.assertIn(b"NCCL_IB_HCA=mlx5_0", everything)

        self.checked(self.deja("verify", bundle))
        info = self.checked(self.deja("info", bundle, "--json")).json()
        self.assertTrue(info["redacted"])
        by = dict(zip(info["masked"], info["masked_by"]))
        self.assertEqual(by["TELL_PGPASSWORD"], "name")
        self.assertEqual(by["TELL_PROJECT"], "redact")
        self.assertRegex(self.deja("info", bundle).stdout, r"TELL_PGPASSWORD \(name\)")

        # Where nothing of it is: no files, no service.
        self.server.shutdown()
        subprocess.run(["rm", "-r", self.home, self.work], check=True)
        with zipfile.ZipFile(bundle) as archive:
            manifest = json.loads(archive.read("trace.deja/manifest.json"))
            readme = archive.read("trace.deja/README.md").decode()
        words = shlex.split(manifest["replay"])
        self.assertIn(manifest["replay"], readme)
        self.assertEqual(words[:4], ["deja", "replay", "redacted.zip", "--rank"])
        words[words.index("PROGRAM")] = harness.app("tells")
        for rank in range(RANKS):
            words[words.index("--rank") + 1] = str(rank)
            replayed = self.checked(self.command([harness.DEJA, *words[1:]]))
            self.assertIn("the same as recorded", replayed.stdout)
            self.assertIn(f"rank {rank}: answer:", replayed.stdout)
            self.assertNotIn(USER, replayed.stdout)
            # As many bytes as there were.
            for line in run.stdout.splitlines():
                if line.startswith(f"rank {rank}: answer:"):
                    self.assertIn(line.split(" bytes")[0], replayed.stdout)

    def test_a_preview_shows_the_contents(self):
        self.record_job()
        bundle = Path(f"{self.trace_path()}.zip")
        plain = self.checked(self.deja("pack", self.trace_path(), "--dry-run", "--json")).json()
        self.assertFalse(bundle.exists())
        self.assertIn("rank-00001/events.deja", [file["name"] for file in plain["files"]])
        contents = {entry["path"]: entry["warning"] for entry in plain["contents"]}
        self.assertEqual(contents[f"{self.home}/.netrc"], "a file of secrets, by its name")
        self.assertIn("(name)", contents[f"{self.work}/settings.json"])
        self.assertIn(f"TELL_PROJECT={PROJECT}", plain["strings"]["variables"])
        self.assertIn(USER, json.dumps(plain["strings"]))
        self.assertGreater(plain["bytes"]["received by connections"], 0)
        redacted = self.checked(self.deja("pack", self.trace_path(), "--redact", "--dry-run", "--json")).json()
        self.assertNone(json.dumps([redacted["strings"], redacted["files"]]).encode(), [*self.secrets.all, USER, HOST, ADDRESS, PROJECT])
        self.assertEqual(len(redacted["strings"]["variables"]), len(plain["strings"]["variables"]))
        text = self.checked(self.deja("pack", self.trace_path(), "--dry-run")).stdout
        self.assertRegex(text, r"contents .*\.netrc \(.*\): a file of secrets")
        self.assertRegex(text, r"strings +\d+ variables: ")


class Parts(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("replay_trainer", ["--steps", 3, "--fault", "abort", "--fault-step", 2, "--fault-rank", 1], n=2), 134)

    def test_a_bundle_in_parts(self):
        bundle = self.dir / "b.zip"
        packed = self.checked(self.deja("pack", self.trace_path(), "-o", bundle, "--split", 4000, "--json")).json()
        self.assertFalse(bundle.exists())
        self.assertGreater(len(packed["parts"]), 2)
        self.assertTrue(all(Path(part).stat().st_size <= 4000 for part in packed["parts"]))
        self.assertEqual(packed["parts"][0], f"{bundle}.001")
        self.checked(self.deja("verify", f"{bundle}.001"))
        self.assertEqual(self.deja("info", f"{bundle}.001", "--json").json()["job"], self.info_json()["job"])
        self.checked(self.deja("unpack", f"{bundle}.001", "-o", self.dir / "back.deja"))
        self.checked(self.deja("verify", self.dir / "back.deja"))
        Path(packed["parts"][-1]).unlink()
        self.assertEqual(self.deja("info", f"{bundle}.001").code, harness.EXIT_FAILURE)

    def test_the_manifest_answers_the_forms(self):
        bundle = self.dir / "b.zip"
        self.checked(self.deja("pack", self.trace_path(), "-o", bundle))
        with zipfile.ZipFile(bundle) as archive:
            manifest = json.loads(archive.read("run.deja/manifest.json"))
            readme = archive.read("run.deja/README.md").decode()
        nccl = {line["question"]: line["answer"] for line in manifest["nccl_bug_form"]}
        self.assertRegex(nccl["NCCL version"], r"^\d+\.\d+\.\d+ \(/")
        self.assertIn("2 ranks on 1 node", nccl["Ranks and nodes"])
        self.assertIn("rank 1: SIGABRT", nccl["First warning or error"])
        self.assertEqual(nccl["How often it happens"], "1 of 1 recorded attempt of the job failed")
        self.assertEqual(manifest["replay"], "deja replay b.zip --rank 1")
        for question in ("GPUs", "Topology", "NCCL variables", "CUDA driver"):
            self.assertIn(question, nccl)
        self.assertIn("PyTorch version", [line["question"] for line in manifest["pytorch_bug_form"]])
        self.assertIn("deja replay b.zip --rank 1", readme)

    def test_a_bundle_for_one_recipient(self):
        tools = self.dir / "bin"
        tools.mkdir()
        age = tools / "age"
        age.write_text("#!/bin/sh\n# --recipient R --output OUT IN\n(echo \"for $2\"; tac \"$5\") > \"$4\"\n")
        age.chmod(age.stat().st_mode | stat.S_IXUSR)
        env = {"PATH": f"{tools}:/usr/bin:/bin"}
        bundle = self.dir / "b.zip"
        packed = self.checked(self.deja("pack", self.trace_path(), "-o", bundle, "--encrypt-to", "age1abc", "--json", env=env)).json()
        self.assertEqual(packed["bundle"], f"{bundle}.age")
        self.assertFalse(bundle.exists())
        self.assertTrue(Path(f"{bundle}.age").read_bytes().startswith(b"for age1abc\n"))
        age.unlink()
        refused = self.deja("pack", self.trace_path(), "-o", bundle, "--encrypt-to", "age1abc", env=env)
        self.assertEqual(refused.code, harness.EXIT_FAILURE)
        self.assertIn("encrypting: age1abc: age is not in PATH; install it", refused.stderr)
        self.assertFalse(bundle.exists())


if __name__ == "__main__":
    harness.main()
