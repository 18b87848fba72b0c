"""A temporary folder that does not outlive its process. For deja.trace; of the standard library alone.

The marks are those of format/trace/temporary_folder.h: a file in the folder, and a lock while its process lives. After
a SIGKILL the next command of Deja's that makes a temporary folder removes this one.
"""
import fcntl
import os
import shutil
import tempfile
import weakref

_MARK = ".deja-temporary"
_MAKING = ".making"  # ending of a name that has no mark yet


class KeptFolder:
    """Made when it is first asked for; removed by `close`, or with the object."""

    def __init__(self, stem: str):
        self._stem = stem
        self._path = ""
        self._remove = None

    @property
    def path(self) -> str:
        while not self._path:
            made = tempfile.mkdtemp(prefix=self._stem, suffix=_MAKING)
            lock = -1
            try:
                # Another process may take it for abandoned until it is locked.
                lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(lock, fcntl.LOCK_EX)
                with open(os.path.join(made, _MARK), "xb"):
                    pass
                path = made[:-len(_MAKING)]
                os.rename(made, path)
            except FileNotFoundError:
                if lock >= 0:
                    os.close(lock)
                continue
            self._path = path
            self._remove = weakref.finalize(self, _remove, path, lock, os.getpid())
        return self._path

    def close(self) -> None:
        if self._remove is not None:
            self._remove()
        self._path, self._remove = "", None


def _remove(path, lock, maker):
    # A forked child has the object, too; the folder is its parent's.
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
