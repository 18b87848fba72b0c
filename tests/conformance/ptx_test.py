"""ptx_test.py NAME: the GPU code NAME of tools/make_ptx.py is what its source gives; an assembler of NVIDIA's takes it
where there is one."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import make_ptx  # noqa: E402

NAME = sys.argv[1]
SOURCE = (ROOT / make_ptx.SOURCES[NAME]).with_suffix(".h")
PTX = make_ptx.output_of(NAME)
GPUS = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


def check_names(code: str) -> None:
    kernels = re.findall(r"X\(((?:deja_)?%s_\w+)," % NAME, SOURCE.read_text())
    entries = re.findall(r"\.entry (\w+)\(", code)
    if sorted(kernels) != sorted(entries) or not kernels:
        sys.exit(f"the code has {sorted(entries)} and not {sorted(kernels)}")


def check_source(text: str) -> bool:
    """False: the compiler that made the code is not here."""
    made = subprocess.run([sys.executable, ROOT / "tools/make_ptx.py", NAME], capture_output=True, text=True)
    if made.returncode == 77:
        return False
    if made.returncode != 0:
        sys.exit(made.stderr)
    # Another version of the compiler makes other code.
    if made.stdout.splitlines()[0] != text.splitlines()[0]:
        return False
    if made.stdout != text:
        sys.exit(f"{PTX.relative_to(ROOT)} is not what its source gives: tools/make_ptx.py {NAME} --write")
    return True


def check_assembles(code: str) -> list[str]:
    ptxas = shutil.which("ptxas", path="/usr/local/cuda/bin") or shutil.which("ptxas")
    if ptxas is None:
        return []
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{NAME}.ptx"
        source.write_text(code)
        for gpu in GPUS:
            run = subprocess.run([ptxas, f"-arch={gpu}", "-v", source, "-o", Path(folder) / "out"],
                                 capture_output=True, text=True)
            if "is not defined for option" in run.stderr:
                continue  # an assembler that does not know this GPU
            if run.returncode != 0:
                sys.exit(f"{gpu}: {run.stderr}")
            spills = [line for line in run.stderr.splitlines() if "spill" in line and " 0 bytes spill stores" not in line]
            if spills:
                sys.exit(f"{gpu}: registers are spilled: {spills}")
            taken.append(gpu)
    return taken


def main() -> int:
    text = PTX.read_text()
    code = text.split('R"ptx(\n')[1].split(')ptx"')[0]
    check_names(code)
    from_source = check_source(text)
    gpus = check_assembles(code)
    print("made of the source as it is" if from_source else "not compared: its compiler (first line) is not here")
    print(f"assembled for {', '.join(gpus)}" if gpus else "not assembled: there is no ptxas here")
    return 0 if from_source else 77


if __name__ == "__main__":
    sys.exit(main())
