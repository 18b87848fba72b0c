"""What `deja doctor` asks the job's own Python: prints {"findings": […], "libraries": […]}.

python doctor.py SCRIPT WORD…: the script that the job would run ("" if none was seen), and the words of its command.
Started by its path, with the options of the job's Python, since some of them keep Deja from being found.
"""

import glob
import json
import os
import sys

_findings = []


def found(id, severity, what, fix=""):
    _findings.append({"id": id, "severity": severity, "what": what, "fix": fix})


def check_python(here):
    version = "%d.%d" % sys.version_info[:2]
    ours = getattr(sys.modules.get("sitecustomize"), "__file__", None)
    if ours and os.path.realpath(os.path.dirname(ours)) == here:
        found("python", "ok", f"{sys.executable} {version} loads Deja's sitecustomize")
        return
    flags = [name for flag, name in (("isolated", "-I"), ("ignore_environment", "-E"), ("no_site", "-S"))
             if getattr(sys.flags, flag)]
    why = "started with " + ", ".join(flags) if flags else f"a sitecustomize of its own comes first ({ours})"
    found("python", "problem", f"{sys.executable} {version} does not load Deja's sitecustomize: {why}",
          "without these options; or `python -I -m deja.run SCRIPT`, with Deja's python/ where it finds modules")


def check_torch(words):
    """Versions, backends, devices. Returns the libraries that may have an NCCL inside."""
    try:
        import torch
        import torch.distributed as dist
    except Exception as error:
        found("torch", "note", f"torch cannot be imported here: {type(error).__name__}: {error}")
        return []
    if not dist.is_available():
        found("torch", "problem", f"torch {torch.__version__} is built without torch.distributed")
        return []
    from deja import torch_versions

    if torch_versions.of(torch) < torch_versions.OLDEST:
        found("torch", "warning", f"torch {torch.__version__} is older than what was tried (1.13)", "torch 2")
    newer = torch_versions.newer(torch)
    if newer:
        found("torch", "warning", newer, "torch %d.%d; or replay a short recording of the job first" % torch_versions.NEWEST)
    has = [name for name in ("gloo", "nccl", "mpi", "ucc") if getattr(dist, f"is_{name}_available", bool)()]
    found("torch", "ok", f"torch {torch.__version__}, backends: {', '.join(has) or 'none'}")
    if torch.cuda.is_available():
        check_devices(torch)
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    return sorted(glob.glob(os.path.join(folder, "libtorch_cuda*.so")))


def check_devices(torch):
    """Settings of the environment that matter where there is a GPU."""
    if os.environ.get("CUBLAS_WORKSPACE_CONFIG") not in (":4096:8", ":16:8"):
        found("cublas-workspace", "warning", "cuBLAS may choose another workspace, and with it other sums",
              "CUBLAS_WORKSPACE_CONFIG=:4096:8")
    if os.environ.get("NCCL_NVLS_ENABLE") != "0":
        found("nvls", "note", "NCCL may sum in the switch (NVLS), in an order of its own. A solo replay is given the "
              "recorded sums; another run of the job differs", "NCCL_NVLS_ENABLE=0")
    if torch.backends.cudnn.benchmark:
        found("cudnn-benchmark", "warning", "cuDNN chooses its algorithms by their times",
              "torch.backends.cudnn.benchmark = False")
    allows = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
    if allows and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0":
        found("tf32", "note", "TF32 is allowed: a replay on another kind of GPU has other bits",
              "NVIDIA_TF32_OVERRIDE=0")


def main():
    here = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
    script, words = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    check_python(here)
    sys.path[0] = os.path.dirname(os.path.abspath(script)) if script else os.getcwd()
    sys.path.append(here)
    libraries = check_torch(words)
    from deja.doctor import doctor_source

    doctor_source.check(script, words, found)
    print(json.dumps({"findings": _findings, "libraries": libraries}))


if __name__ == "__main__":
    main()
