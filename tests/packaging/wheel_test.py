"""The wheel: made of this tree (or DEJA_WHEEL), installed into a fresh virtual environment, used, removed."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "e2e"), str(ROOT / "packaging")]
import elf_versions  # noqa: E402
import harness  # noqa: E402
from installed import InstalledDeja, project_version  # noqa: E402

GLIBC = (2, 31)
PLATFORM = "manylinux_2_31_x86_64"


class Wheel(InstalledDeja):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="deja-wheel-")
        cls.addClassCleanup(folder.cleanup)
        cls.wheel = Path(os.environ.get("DEJA_WHEEL") or cls.built(Path(folder.name, "out")))
        cls.environment_folder = Path(folder.name, "venv")
        subprocess.run([sys.executable, "-m", "venv", cls.environment_folder], check=True)
        cls.pip("install", "--no-index", cls.wheel)
        cls.package, = cls.environment_folder.glob("lib/python*/site-packages/deja_debugger")

    @staticmethod
    def built(out):
        made = subprocess.run([ROOT / "tools" / "build_wheel.py", out], capture_output=True, text=True, check=False)
        if made.returncode == 77:
            print(made.stderr.strip())
            sys.exit(77)
        if made.returncode != 0:
            raise AssertionError(f"build_wheel.py failed:\n{made.stdout[-8000:]}\n{made.stderr[-4000:]}")
        wheel, = out.glob("*.whl")
        return wheel

    @classmethod
    def pip(cls, *arguments):
        subprocess.run([cls.environment_folder / "bin" / "pip", "--disable-pip-version-check", "--quiet", *arguments],
                       check=True)

    def setUp(self):
        self.use(self.package, self.environment_folder / "bin" / "deja")

    def test_its_name_says_what_auditwheel_found(self):
        self.assertEqual(self.wheel.name, f"deja_debugger-{project_version()}-py3-none-{PLATFORM}.whl")

    def test_no_file_asks_for_a_newer_glibc(self):
        files = [path for path in self.package.rglob("*") if path.is_file() and elf_versions.is_elf(path)]
        self.assertGreaterEqual({path.name for path in files},
                                {"deja", "libdeja_record.so", "libdeja_replay.so", "libdeja_loopback.so", "libnccl.so.2"})
        for path in files:
            self.assertLessEqual(elf_versions.ElfVersions(path).newest(), GLIBC, path)

    def test_one_version(self):
        self.assertOneVersion()
        run = self.checked(self.command([self.environment_folder / "bin" / "python", "-c",
                                         "import deja; print(deja.__version__, deja.__file__)"]))
        version, file = run.stdout.split()
        self.assertEqual(version, project_version())
        self.assertEqual(Path(file).parent, self.package.parent / "deja")

    def test_a_users_program(self):
        said = self.checked(self.command([self.environment_folder / "bin" / "python", "-m", "deja_debugger"]))
        self.assertEqual(said.stdout.strip(), str(self.package))
        for program in (self.built_by_pkg_config(), self.built_by_cmake()):
            self.assertLoadsItsOwnLoopback(program)
            self.assertRecordsAndReplays(program)

    def test_the_demo(self):
        run = self.checked(self.command([ROOT / "tools" / "demo.sh", harness.DEJA, self.dir / "demo"], timeout=900))
        self.assertIn("All of it held", run.stdout)

    def test_with_an_older_glibc(self):
        """In a root folder with Debian 11's glibc, or the one that DEJA_OLD_ROOT names."""
        if os.geteuid() != 0:
            self.skipTest("changing the root folder needs root")
        root = os.environ.get("DEJA_OLD_ROOT")
        if not root:
            root = self.dir / "root"
            made = self.command([ROOT / "tests" / "packaging" / "old_root.sh", root], timeout=300)
            if made.code == 77:
                self.skipTest(made.stderr.strip())
            self.checked(made)
        inside = Path(tempfile.mkdtemp(prefix="deja-", dir=root))
        self.addCleanup(shutil.rmtree, inside)
        shutil.copytree(self.package, inside / "deja", symlinks=True)
        shutil.copy(self.built_by_pkg_config(), inside / "mean")
        elf_versions.ElfVersions(inside / "mean").lower(GLIBC)  # a C program without constructors
        there = Path("/", inside.name)

        def run(*command):
            mounts = f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev"
            return self.checked(self.command(["unshare", "--mount", "sh", "-c", f'{mounts} && exec chroot {root} "$@"', "sh",
                                              there / "deja" / "bin" / "deja", *command]))
        recorded = run("record", "--loopback", "-n", 2, "--out", there / "run.deja", "--", there / "mean", 5)
        lines = sorted(line for line in recorded.stdout.splitlines() if line.startswith("rank "))
        self.assertEqual(len(lines), 2, recorded)
        for rank in range(2):
            self.assertIn(lines[rank], run("replay", there / "run.deja", "--rank", rank).stdout.splitlines())

    def test_zz_nothing_is_left_when_it_is_removed(self):
        self.pip("uninstall", "--yes", "deja-debugger")
        site = self.package.parent
        left = [path for name in ("deja", "deja_debugger") for path in (site / name).rglob("*")
                if path.is_file() and path.suffix != ".pyc"]
        self.assertEqual(left, [])
        self.assertFalse(harness.DEJA.exists())


if __name__ == "__main__":
    if shutil.which("ninja") is None:
        print("no ninja here")
        sys.exit(77)
    unittest.main(verbosity=2)
