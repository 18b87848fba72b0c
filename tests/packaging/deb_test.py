"""The Debian package: made of the build tree, installed by dpkg, used, removed. Needs root for all but its contents."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from installed import InstalledDeja, project_version  # noqa: E402

NAME = "deja-debugger"


def installed():
    said = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", NAME], capture_output=True, text=True, check=False)
    return said.stdout.strip() not in ("", "not-installed")


class Deb(InstalledDeja):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="deja-deb-")
        cls.addClassCleanup(folder.cleanup)
        made = subprocess.run(["cpack", "-G", "DEB", "--config", harness.BUILD / "CPackConfig.cmake", "-B", folder.name],
                              cwd=folder.name, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise AssertionError(f"cpack failed:\n{made.stdout}\n{made.stderr}")
        cls.package, = Path(folder.name).glob("*.deb")

    def field(self, name):
        return subprocess.run(["dpkg-deb", "--field", self.package, name], capture_output=True, text=True,
                              check=True).stdout.strip()

    def test_fields(self):
        self.assertEqual((self.field("Package"), self.field("Version")), (NAME, project_version()))
        self.assertEqual(self.field("Architecture"), "amd64")
        depends = [re.split(r"[ (:]", one.strip())[0] for one in self.field("Depends").split(",")]
        for library in ("libc6", "libgcc-s1", "libstdc++6", "libzip4", "libdw1"):
            self.assertTrue(any(one.startswith(library) for one in depends), (library, depends))

    def test_installed_used_removed(self):
        if os.geteuid() != 0:
            self.skipTest("dpkg needs root")
        if installed():
            self.skipTest(f"{NAME} is installed on this machine already")
        self.addCleanup(subprocess.run, ["dpkg", "--purge", NAME], capture_output=True, check=False)
        self.checked(self.command(["dpkg", "--install", self.package]))
        listed = [Path(line) for line in self.checked(self.command(["dpkg-query", "-L", NAME])).stdout.splitlines()]
        self.use("/usr", "/usr/bin/deja")
        self.assertOneVersion()
        program = self.built_by_pkg_config()
        self.assertRecordsAndReplays(program)
        self.assertRecordsAndReplays(self.built_by_cmake())
        run = self.checked(self.command([ROOT / "tools" / "demo.sh", harness.DEJA, self.dir / "demo"], timeout=900))
        self.assertIn("All of it held", run.stdout)

        self.checked(self.command(["dpkg", "--purge", NAME]))
        self.assertFalse(installed())
        self.assertEqual([str(path) for path in listed if "deja" in str(path).lower() and os.path.lexists(path)], [])

    def pkg_config_folder(self):
        return Path("/usr/lib/pkgconfig")


if __name__ == "__main__":
    missing = [tool for tool in ("cpack", "dpkg", "dpkg-deb", "dpkg-shlibdeps") if shutil.which(tool) is None]
    if missing:
        print(f"not here: {', '.join(missing)}")
        sys.exit(77)
    unittest.main(verbosity=2)
