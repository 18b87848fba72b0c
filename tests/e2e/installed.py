"""What an installed Deja must do, wherever it was installed from: `cmake --install`, a wheel, a Debian package."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import harness

STEPS = 5


class InstalledDeja(harness.DejaTest):
    """`self.prefix` is the folder that has lib/, include/ and share/, `harness.DEJA` its command."""

    def use(self, prefix, command=None):
        self.addCleanup(setattr, harness, "DEJA", harness.DEJA)
        self.prefix = Path(prefix)
        harness.DEJA = Path(command or self.prefix / "bin" / "deja")

    def example(self):
        """Its own copy of examples/mean: what is built lies beside it."""
        copy = self.dir / "mean"
        if not copy.exists():
            shutil.copytree(self.prefix / "share" / "deja" / "examples" / "mean", copy)
        return copy

    def pkg_config_folder(self):
        folder, = {path.parent for path in self.prefix.rglob("deja.pc")}
        return folder

    def built_by_pkg_config(self):
        """The program of the example, by the line of docs/INSTALL.md."""
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config here")
        program = self.dir / "mean_of_line"
        line = f"cc {self.example()}/mean.c $(pkg-config --cflags --libs deja deja-nccl-loopback) -o {program}"
        self.checked(self.command(["sh", "-c", line], env={"PKG_CONFIG_PATH": self.pkg_config_folder()}))
        return program

    def built_by_cmake(self):
        build = self.dir / "mean_of_cmake"
        self.checked(self.command(["cmake", "-S", self.example(), "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}"]))
        self.checked(self.command(["cmake", "--build", build]))
        return build / "mean"

    def assertRecordsAndReplays(self, program):
        """Two ranks of the example: recorded, and each of them replayed alone with the same result."""
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        recorded = self.checked(self.record(str(program), [STEPS], n=2))
        lines = sorted(line for line in recorded.stdout.splitlines() if line.startswith("rank "))
        self.assertEqual([line.split(":")[0] for line in lines], ["rank 0 of 2", "rank 1 of 2"])
        self.assertEqual(*(line.split(": ")[1] for line in lines))
        self.assertEqual([(r["rank"], r["steps"]) for r in self.info_json()["ranks"]], [(0, STEPS), (1, STEPS)])
        for rank in range(2):
            self.assertIn(lines[rank], self.checked(self.replay(rank)).stdout.splitlines())

    def assertLoadsItsOwnLoopback(self, program):
        """Also by itself: the line and the package say where the library is."""
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        where, = re.findall(r"libnccl\.so\.2 => (\S+)", said)
        self.assertTrue(os.path.realpath(where).startswith(os.path.realpath(self.prefix) + os.sep), where)

    def versions(self):
        """Each version that the installation states: they must be one."""
        stated = {
            "the command": self.checked(self.deja("--version")).stdout.split()[-1],
            "deja.pc": re.search(r"(?m)^Version: (.*)$", (self.pkg_config_folder() / "deja.pc").read_text()).group(1),
            "the CMake package": re.search(r'PACKAGE_VERSION "(.*)"', (
                self.pkg_config_folder().parent / "cmake" / "Deja" / "DejaConfigVersion.cmake").read_text()).group(1),
        }
        python = shutil.which("python3")
        if python:
            folder = self.prefix / "share" / "deja" / "python"
            run = self.checked(self.command([python, "-B", "-c", "import deja; print(deja.__version__)"],
                                            env={"PYTHONPATH": folder}))
            stated["deja.__version__"] = run.stdout.strip()
        return stated

    def assertOneVersion(self):
        stated = self.versions()
        self.assertEqual(set(stated.values()), {project_version()}, json.dumps(stated))


def project_version():
    text = (harness.ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(deja VERSION ([0-9.]+)", text).group(1)
