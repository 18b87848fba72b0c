"""What a rank reads of files is recorded, compared in a replay, and, where it was kept, served from the trace.

DEJA_REPLAYS says how often each recording is replayed (default 2).
"""
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "2"))
PYTHON_APPS = Path(__file__).resolve().parents[2] / "apps" / "python"
SIZES = {"a": 10000, "b": 1300000}


class InputFiles(harness.DejaTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.data.mkdir()
        rng = random.Random(7)
        for name, size in SIZES.items():
            (self.data / name).write_bytes(rng.randbytes(size))
        (self.data / "c").write_text("".join(f"line {i} of a text\n" for i in range(3000)))
        for path in self.data.iterdir():  # a file that has just been written may change again unseen
            os.utime(path, (1700000000, 1700000000))

    def ran(self, *ways, options=(), code=0):
        """The program alone and recorded: the same output."""
        plain = self.command([harness.app("input_readers"), self.data, *ways])
        run = self.record_single(harness.app("input_readers"), self.data, *ways, options=options)
        self.assertEqual(run.code, code, f"\n{run}")
        self.assertEqual(plain.stdout, run.stdout)
        return run

    def change(self, name, at):
        path = self.data / name
        info = path.stat()
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def files(self):
        return {Path(f["path"]).name: f for f in self.info_json()["ranks"][0]["inputs"]["files"]}

    def assertSame(self, run, replayed):
        self.checked(replayed)
        self.assertEqual(replayed.stdout.splitlines()[:len(run.stdout.splitlines())], run.stdout.splitlines())

    def assertReplays(self, run):
        for _ in range(REPLAYS):
            self.assertSame(run, self.replay(0))

    def assertDiverges(self, *words):
        replayed = self.checked(self.replay(0), harness.EXIT_DIVERGED)
        text = replayed.stdout + replayed.stderr
        for word in words:
            self.assertIn(word, text)
        return replayed


class Digest(InputFiles):
    def test_each_way_of_reading_is_attributed(self):
        for ways, expected in ((("read",), {"a": 10000}), (("whole",), {"b": 1300000}), (("pread",), {"b": 19904}),
                               (("readv",), {"b": 20400}), (("preadv",), {"b": 4 * 5100}),
                               (("fgets",), {"c": None}), (("getline",), {"c": None}), (("fgetc",), {"c": None}),
                               (("fread",), {"c": None}), (("ifstream",), {"c": None}), (("seek",), {"b": 3000})):
            with self.subTest(ways):
                run = self.ran(*ways)
                self.assertVerifies()
                found = {name: file["read"] for name, file in self.files().items()}
                whole = {name: size or (self.data / name).stat().st_size for name, size in expected.items()}
                if ways == ("pread",):
                    self.assertGreaterEqual(found["b"], 14904)
                elif ways == ("seek",):
                    self.assertEqual(found, {"b": 3000})
                else:
                    self.assertEqual(found, whole)
                self.assertReplays(run)
                shutil.rmtree(self.trace_path())

    def test_a_changed_byte_is_named_before_anything_else(self):
        for ways, name, at, words in (
                (("read",), "a", 9999, ("/data/a", "bytes 0 to 9999")),
                (("small",), "b", 1200000, ("/data/b", "bytes 1048576 to 1299999")),
                (("ifstream",), "c", 4000, ("/data/c", "bytes 0 to")),
                (("pread",), "b", 70001, ("/data/b", "bytes 70000 to 74999"))):
            with self.subTest(ways):
                self.ran(*ways)
                self.change(name, at)
                replayed = self.assertDiverges("differs in", *words)
                self.assertNotIn(f"{ways[0]} ", replayed.stdout.split("deja")[0])
                warned = self.checked(self.replay(0, options=["--on-divergence", "warn"]), harness.EXIT_DIVERGED)
                self.assertIn("bytes", warned.stdout)
                self.change(name, at)
                self.checked(self.replay(0))
                shutil.rmtree(self.trace_path())

    def test_a_byte_that_was_not_read_does_not_matter(self):
        self.ran("seek")
        self.change("b", 100)
        self.checked(self.replay(0))

    def test_a_missing_shorter_or_longer_file_is_named(self):
        self.ran("read")
        content = (self.data / "a").read_bytes()
        (self.data / "a").write_bytes(content[:5000])
        self.assertDiverges("/data/a", "ends within bytes 0 to 9999", "it has 5000 bytes")
        (self.data / "a").write_bytes(content + b"more")
        self.assertDiverges("/data/a", "another size", "10004")
        (self.data / "a").unlink()
        self.assertDiverges("/data/a", "cannot be opened", "No such file")

    def test_reading_again_costs_nothing(self):
        self.ran("small")
        reads = self.show_json("--kind", "file-read")
        self.assertLessEqual(len(reads), 4)

    def test_many_small_reads_are_few_events(self):
        self.ran("small", "whole", "threads")
        self.assertLessEqual(len(self.show_json("--kind", "file-read")), 40)

    def test_threads_and_children(self):
        run = self.ran("threads", "children")
        self.assertEqual(self.files()["a"]["read"], 10000)
        self.assertReplays(run)
        children = list(self.trace_path().rglob("child-*"))
        self.assertEqual(len(children), 2)
        self.change("b", 90000)  # only the first child has read it
        self.assertDiverges("/data/b")

    def test_a_crash_and_a_kill(self):
        run = self.ran("crash", code=134)
        self.assertEqual({n: f["read"] for n, f in self.files().items()}, {"a": 10000, "b": 1000})
        replayed = self.replay(0)
        self.assertEqual(replayed.stdout.splitlines()[0], run.stdout.splitlines()[0])
        shutil.rmtree(self.trace_path())
        self.ran("kill", code=137)
        self.assertEqual(self.files()["b"]["read"], 1 << 20)  # up to the last whole range

    def test_a_mapped_file_that_differs_is_named_before_it_is_used(self):
        size = 16 << 20  # a page that is touched brings its neighbours along, up to 2 MiB
        (self.data / "m").write_bytes(random.Random(8).randbytes(size))
        os.utime(self.data / "m", (1700000000, 1700000000))
        code = ("import mmap, sys\n"
                "with open(sys.argv[1] + '/m', 'rb') as f:\n"
                "    m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n"
                "print('used', sum(m[400000:400100]))\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data))
        touched = self.files()["m"]["read"]
        self.assertGreaterEqual(touched, 4096)
        self.assertLess(touched, size // 2)
        self.assertReplays(run)
        self.change("m", 400050)
        replayed = self.assertDiverges("/data/m", "differs in bytes")
        self.assertNotIn("used", replayed.stdout)
        self.change("m", 400050)
        self.change("m", size - 1)  # what no page of the recorded run's was
        self.assertReplays(run)

    def test_off_and_patterns(self):
        self.ran("read", options=["--inputs", "off"])
        self.assertEqual(self.info_json()["ranks"][0]["inputs"]["mode"], "off")
        self.assertEqual(self.files(), {})
        shutil.rmtree(self.trace_path())
        self.ran("read", "small", options=["--inputs-exclude", "*/data/a"])
        self.assertEqual(sorted(self.files()), ["b"])

    def test_the_program_writes_and_reads_its_own_files(self):
        code = ("import sys, os\n"
                "os.chdir(sys.argv[1])\n"
                "open('own', 'w').write('mine')\n"
                "print(open('own').read(), open('c').readline().strip())\n"
                "os.rename('own', 'moved')\n"
                "print(open('moved').read())\n"
                "os.unlink('moved')\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data))
        self.assertEqual(sorted(self.files()), ["c"])
        self.assertReplays(run)

    def test_python_reads(self):
        code = ("import sys, mmap\n"
                "p = sys.argv[1]\n"
                "print(sum(open(p + '/a', 'rb').read()), len(open(p + '/c').readlines()))\n"
                "f = open(p + '/b', 'rb'); f.seek(1000); print(sum(f.read(100)))\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data))
        self.assertEqual(self.files()["a"]["read"], 10000)
        self.assertNotIn("__init__.py", self.files())
        self.assertReplays(run)
        self.change("c", 30000)
        self.assertDiverges("/data/c")

    def test_info_and_show_tell_of_it(self):
        self.ran("read", "seek")
        text = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn("inputs: 2 files", text)
        self.ran("read", options=["--force"])
        self.assertIn("inputs: 1 file,", self.checked(self.deja("info", self.trace_path())).stdout)
        self.ran("read", "seek", options=["--force"])
        self.assertIn("digests", text)
        listed = self.checked(self.deja("show", self.trace_path(), "--kind", "file,file-read")).stdout
        self.assertIn("data/a of 10000 bytes", listed)
        self.assertIn("read: 0+10000", listed)


class Full(InputFiles):
    FULL = ("--inputs", "full")

    def gone(self):
        shutil.rmtree(self.data)

    def test_a_replay_needs_none_of_the_files(self):
        ways = ("read", "whole", "pread", "readv", "preadv", "fread", "fgets", "getline", "fgetc", "ifstream", "seek",
                "threads", "walk", "mmap")
        run = self.ran(*ways, options=self.FULL)
        self.assertVerifies()
        self.gone()
        self.assertReplays(run)

    def test_files_that_changed_are_served_as_they_were(self):
        run = self.ran("read", "small", "walk", options=self.FULL)
        for name in SIZES:
            self.change(name, 5)
        (self.data / "new").write_text("later")
        self.assertReplays(run)

    def test_children_read_what_their_parent_opened(self):
        run = self.ran("children", options=self.FULL)
        self.gone()
        self.assertReplays(run)

    def test_children_of_which_nothing_is_recorded_write_where_the_working_directory_was(self):
        code = ("import os, sys\n"
                "os.chdir(sys.argv[1])\n"
                "os.system('cat a > f; (exec echo more) >> f; (exec echo new) > g; (exec echo end) >> small.txt;'\n"
                "          'tail -c 9 f; cat g; tail -c 9 small.txt')\n")
        (self.data / "a").write_text("first\n")
        (self.data / "small.txt").write_text("begin\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertEqual(run.stdout, "rst\nmore\nnew\negin\nend\n")
        self.gone()
        self.assertReplays(run)

    def test_numbers_of_files_are_the_same_in_listings(self):
        code = ("import os, sys\n"
                "for entry in os.scandir(sys.argv[1]):\n"
                "    print(entry.name, entry.inode(), entry.inode() == os.lstat(entry.path).st_ino)\n")
        os.symlink("a", self.data / "link")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertNotIn("False", run.stdout)
        self.gone()
        self.assertReplays(run)

    def test_owners_links_and_times_of_files(self):
        code = ("import os, subprocess, sys\n"
                "def told(info):\n"
                "    print(info.st_uid, info.st_gid, info.st_nlink, info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns)\n"
                "name = sys.argv[1] + '/a'\n"
                "told(os.stat(name)); told(os.lstat(sys.argv[1] + '/again'))\n"
                "print(subprocess.run(['stat', '-c', '%u %g %h %X %Y %Z', name], stdout=subprocess.PIPE).stdout, flush=True)\n"
                "with open(name, 'rb') as file:\n    told(os.fstat(file.fileno()))\n")
        os.link(self.data / "a", self.data / "again")
        os.utime(self.data / "a", ns=(1600000000123456789, 1700000000987654321))
        if os.geteuid() == 0:
            os.chown(self.data / "a", 1234, 5678)
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertIn(" 2 1600000000123456789 1700000000987654321 ", run.stdout)
        self.gone()
        self.assertReplays(run)

    def test_a_data_set_costs_what_was_read_of_it(self):
        with open(self.data / "large", "wb") as large:
            large.truncate(2 << 30)
            for at in range(0, 2 << 30, 256 << 20):
                large.seek(at)
                large.write(random.Random(at).randbytes(1 << 20))
        code = ("import sys, hashlib\n"
                "f = open(sys.argv[1] + '/large', 'rb', 0); h = hashlib.sha1()\n"
                "for at in range(0, 2 << 30, 256 << 20):\n"
                "    f.seek(at)\n"
                "    for _ in range(320): h.update(f.read(4096))\n"
                "print(h.hexdigest())\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        size = sum(p.stat().st_size for p in self.trace_path().rglob("*") if p.is_file())
        self.assertGreater(size, 8 << 20)
        self.assertLess(size, 11 << 20)
        self.gone()
        scratch = self.dir / "scratch"
        self.assertSame(run, self.replay(0, options=["--scratch", scratch]))
        taken = sum(p.lstat().st_blocks * 512 for p in scratch.rglob("*"))
        self.assertLess(taken, 64 << 20)

    def test_a_read_of_what_was_not_read_is_a_divergence(self):
        code = ("import ctypes, os, sys\n"
                "f = os.open(sys.argv[1] + '/b', os.O_RDONLY)\n"
                "at = 4096 if ctypes.CDLL(None).deja_impl_mode() == 2 else 0\n"
                "print(len(os.pread(f, 1000, at)))\n")
        self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertDiverges("/data/b", "bytes 4096 to 5095", "did not read")

    def test_the_program_changes_files_that_were_there(self):
        code = ("import os, sys\n"
                "os.chdir(sys.argv[1])\n"
                "with open('a', 'r+b') as f:\n"
                "    f.seek(100); f.write(b'changed'); f.seek(0); print(f.read(200))\n"
                "open('c', 'a').write('one more\\n')\n"
                "print(open('c').readlines()[-2:])\n"
                "os.remove('b'); print(os.path.exists('b'))\n"
                "open('b', 'w').write('new'); print(open('b').read(), os.path.exists('absent'))\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertReplays(run)
        self.gone()
        self.assertReplays(run)

    def test_links_and_which_file_is_which(self):
        for name in ("real", "blobs"):
            (self.data / name).mkdir()
        for name in ("a", "b"):
            (self.data / "real" / name).write_text(name * 50)
        os.link(self.data / "real" / "a", self.data / "real" / "same")
        for name, text in (("blobs/model", "../real/a"), ("folder", "real"), ("nowhere", "gone"), ("loop", "loop")):
            (self.data / name).symlink_to(text)
        script = harness.ROOT / "tests" / "e2e" / "apps" / "inputs" / "links.py"
        plain = self.checked(self.command([sys.executable, script, self.data]))
        run = self.checked(self.record_single(sys.executable, script, self.data, options=self.FULL))
        self.assertEqual(plain.stdout, run.stdout)
        listed = self.checked(self.deja("show", self.trace_path(), "--kind", "file")).stdout
        self.assertIn("blobs/model -> ../real/a", listed)
        self.assertReplays(run)
        (self.data / "blobs" / "model").unlink()
        (self.data / "blobs" / "model").symlink_to("../real/b")
        self.assertReplays(run)
        self.gone()
        self.assertReplays(run)

    def test_a_link_that_is_moved_on_while_the_program_runs(self):
        code = ("import os, sys, time\n"
                "os.chdir(sys.argv[1])\n"
                "def look(): print(os.readlink('latest'), os.path.realpath('latest'), open('latest').read(4), flush=True)\n"
                "look(); input(); look()\n")
        (self.data / "latest").symlink_to("a")
        (self.data / "a").write_text("first")
        (self.data / "b").write_text("second")
        process = self.start([harness.DEJA, "record", "--single", *self.FULL, "--out", self.trace_path(), "--",
                              sys.executable, "-c", code, self.data], stdin=subprocess.PIPE)
        first = process.stdout.readline()
        (self.data / "latest").unlink()
        (self.data / "latest").symlink_to("b")
        rest, _ = process.communicate(b"\n", timeout=120)
        self.assertIn(b"b ", rest)
        self.gone()
        replayed = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(replayed.stdout), (first + rest).decode())

    def test_a_link_that_the_program_makes_itself(self):
        code = ("import os, sys\n"
                "os.chdir(sys.argv[1])\n"
                "print(os.path.lexists('own'))\n"
                "os.symlink('a', 'own'); print(os.readlink('own'), os.path.getsize('own'))\n"
                "print(open('own', 'rb').read(5), os.path.realpath('own'))\n"
                "os.remove('own'); print(os.path.lexists('own'))\n")
        run = self.checked(self.record_single(sys.executable, "-c", code, self.data, options=self.FULL))
        self.assertReplays(run)
        self.gone()
        self.assertReplays(run)

    def test_a_killed_rank_replays_as_far_as_it_was_recorded(self):
        code = ("import os, signal, sys\n"
                "f = os.open(sys.argv[1] + '/b', os.O_RDONLY)\n"
                "print(sum(os.read(f, 262144)), flush=True)\n"
                "print(sum(os.read(f, 1000)), flush=True)\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n")
        run = self.record_single(sys.executable, "-c", code, self.data, options=self.FULL)
        self.assertEqual(run.code, 137)
        self.assertEqual(self.files()["b"]["read"], 262144)
        self.gone()
        replayed = self.assertDiverges("/data/b", "bytes 262144 to 263143", "was killed, and what it read last is lost")
        self.assertEqual(replayed.stdout.splitlines()[0], run.stdout.splitlines()[0])

    def test_a_folder_for_a_while_is_the_same_by_name_and_by_descriptor(self):
        """shutil.rmtree asks, before it removes anything."""
        program = [sys.executable, "-c", "import tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
                   "    open(folder + '/x', 'w').write('1')\nprint('removed')"]
        run = self.checked(self.record_single(*program, options=["--inputs", "full"]))
        self.assertEqual(run.stdout, self.checked(self.command(program)).stdout)
        self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)

    def replays_with_and_without_what_it_made(self, name):
        """With digests and bytes, with what the run has made still there and gone."""
        cache = self.dir / "cache"
        program = [sys.executable, PYTHON_APPS / name, cache]
        plain = self.checked(self.command(program))
        for options in ([], self.FULL):
            with self.subTest(options):
                shutil.rmtree(cache)
                run = self.checked(self.record_single(*program, options=[*options, "--force"]))
                self.assertEqual(run.stdout, plain.stdout)
                for left in True, False:
                    if not left:
                        shutil.rmtree(cache)
                    replayed = self.checked(self.replay(0))
                    self.assertEqual(harness.without_report(replayed.stdout), run.stdout, str(replayed))
                self.checked(self.command(program))

    def test_a_folder_that_gets_its_name_when_it_is_complete(self):
        """The program looks for the name before. What it finds there later is its own."""
        self.replays_with_and_without_what_it_made("moves.py")

    def test_a_child_looks_for_what_its_parent_makes_later(self):
        self.replays_with_and_without_what_it_made("looks_first.py")

    def test_files_of_other_ranks_in_a_folder_that_this_one_made(self):
        folder = self.dir / "shared"
        plain = self.checked(self.launch("input_shared_folder", [folder], n=3))
        shutil.rmtree(folder)
        run = self.checked(self.record("input_shared_folder", [folder], n=3, options=["--inputs", "full"]))

        def without_numbers(text):
            return sorted(re.sub(r"process \d+", "process N", text).splitlines())
        self.assertEqual(without_numbers(run.stdout), without_numbers(plain.stdout))
        for _ in range(2):  # with what the run has left, and without
            for rank in range(3):
                replayed = self.checked(self.replay(rank))
                own = [line for line in run.stdout.splitlines() if line.startswith(f"rank {rank} ")]
                self.assertEqual([line for line in replayed.stdout.splitlines() if "finds" in line], own)
                self.assertEqual(len(own), 6)
            shutil.rmtree(folder, ignore_errors=True)

    def test_a_program_that_asks_until_another_has_made_a_file(self):
        """Each look finds what it found, so the replay asks as many times. With digests the folder has to be there."""
        for options in (self.FULL, ()):
            with self.subTest(options):
                self.check_polls(options, f"{len(options)}.deja")

    def check_polls(self, options, trace):
        folder = self.dir / "shared"
        program = [sys.executable, PYTHON_APPS / "polls.py", folder]

        def run_beside_its_maker(run):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            maker = self.start([*program, "make"])
            ended = self.checked(run())
            self.checked(self.finish(maker))
            return ended

        plain = run_beside_its_maker(lambda: self.command(program))
        run = run_beside_its_maker(lambda: self.record_single(*program, options=options, trace=trace))
        self.assertEqual(*(re.sub(r"\(\d+, \d+, \d+, \d+\)", "polls", ended.stdout) for ended in (run, plain)))
        for left in True, False:
            if not left:
                shutil.rmtree(folder)
                if not options:
                    folder.mkdir()
            for _ in range(REPLAYS):
                replayed = self.checked(self.replay(0, trace=trace))
                self.assertEqual(harness.without_report(replayed.stdout), run.stdout, str(replayed))

    def test_a_file_that_the_program_removes(self):
        script = ("import os\n"
                  "for _ in range(2): print(os.path.lexists('a'), os.path.exists('a'), os.path.islink('a'))\n"
                  "os.remove('a'); print(os.path.lexists('a'), os.path.exists('a'))\n"
                  "os.symlink('b', 'a'); print(os.path.islink('a'), os.path.exists('a'))\n")
        run = self.checked(self.record_single(sys.executable, "-c", script, options=self.FULL, cwd=self.data))
        self.assertEqual(run.stdout.split(), ["True", "True", "False"] * 2 + ["False", "False", "True", "True"])
        for _ in range(REPLAYS):
            replayed = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(replayed.stdout), run.stdout, str(replayed))

    def test_a_checkpoint_that_was_not_there_yet(self):
        """Another rank writes it after this one has looked. A replay comes after both."""
        folder = self.dir / "checkpoints"
        program = [sys.executable, PYTHON_APPS / "resumes.py", folder]
        plain = self.checked(self.command(program))
        for options in (self.FULL, ()):
            with self.subTest(options):
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(f"{folder}.own")
                run = self.checked(self.record_single(*program, options=options, trace=f"{len(options)}.deja"))
                self.assertEqual(run.stdout, plain.stdout)
                folder.mkdir()
                (folder / "newest").write_text("weights")
                for _ in range(REPLAYS):
                    replayed = self.checked(self.replay(0, trace=f"{len(options)}.deja"))
                    self.assertEqual(harness.without_report(replayed.stdout), run.stdout, str(replayed))

    def test_one_file_that_all_ranks_write(self):
        state = self.dir / "state"
        plain = self.checked(self.launch("input_state_file", [state], n=3))
        for options in ([], self.FULL):
            with self.subTest(options):
                state.unlink(missing_ok=True)
                run = self.checked(self.record("input_state_file", [state], n=3, options=[*options, "--force"]))

                def without_numbers(text):
                    return sorted(re.sub(r"draws \d+", "draws N", text).splitlines())
                self.assertEqual(without_numbers(run.stdout), without_numbers(plain.stdout))
                for left in ("gone", "something else"):
                    state.unlink(missing_ok=True)
                    if left != "gone":
                        state.write_text(left)
                    for rank in range(3):
                        replayed = self.checked(self.replay(rank))
                        own = [line for line in run.stdout.splitlines() if line.startswith(f"rank {rank}, ")]
                        self.assertEqual([line for line in replayed.stdout.splitlines() if line.startswith(f"rank {rank}, ")], own)
                        self.assertEqual(len(own), 6)

    def test_a_file_that_another_rank_has_made(self):
        """It could not be made then, whether it is there now or not, and is gone for who waits for that."""
        claimed = self.dir / "claimed"
        for options in ([], self.FULL):
            with self.subTest(options):
                run = self.checked(self.record("input_claimed_file", [claimed], n=2, options=[*options, "--force"]))
                self.assertEqual(sorted(run.stdout.splitlines()),
                                 ["rank 0: made it"] * 2 + ["rank 1: File exists", "rank 1: made it"])
                for left in (False, True):
                    if left:
                        claimed.touch()
                    for rank in range(2):
                        replayed = self.checked(self.replay(rank, timeout=30))
                        self.assertEqual(harness.without_report(replayed.stdout).splitlines(),
                                         [line for line in run.stdout.splitlines() if line.startswith(f"rank {rank}: ")])
                claimed.unlink()

    def test_relative_names_in_another_folder(self):
        run = self.checked(self.record_single(harness.app("input_readers"), "data", "read", "walk", options=self.FULL))
        moved = self.dir / "elsewhere"
        moved.mkdir()
        shutil.move(self.trace_path(), moved / "run.deja")
        self.gone()
        self.checked(self.deja("replay", moved / "run.deja", "--rank", 0, cwd=moved))
        self.assertIn("read a", run.stdout)

    def test_sqlite_makes_its_data_base_again(self):
        if shutil.which("sqlite3") is None:
            self.skipTest("there is no sqlite3")
        base = self.data / "x.db"
        script = ("import os, sqlite3, sys\n"
                  "p = sys.argv[1]\n"
                  "if os.path.exists(p): print('was', sqlite3.connect(p).execute('select * from t').fetchall()); os.remove(p)\n"
                  "c = sqlite3.connect(p); c.execute('create table t(x)')\n"
                  "c.execute('insert into t values (42)'); c.commit(); print(c.execute('select * from t').fetchall())\n")
        self.command([sys.executable, "-c", script.replace("42", "1"), base])
        run = self.checked(self.record_single(sys.executable, "-c", script, base, options=self.FULL))
        self.assertIn("was [(1,)]", run.stdout)
        self.assertReplays(run)
        base.unlink()
        self.assertReplays(run)


if __name__ == "__main__":
    harness.main()
