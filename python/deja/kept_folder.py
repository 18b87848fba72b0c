"""A temporary folder that does not outlive its process. For deja.trace; of the standard library alone.

The marks are those of format/trace/temporary_folder.h: a file in the folder, and a lock while its process lives. After
a SIGKILL the next command of Deja's that makes a temporary folder removes this one.
"""
import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref

_MARK = ".deja-temporary"
_MAKING = "deja-making-"  # beginning of a name that has no mark yet


class KeptFolder:
    """Made when it is first asked for; removed by `close`, or with the object."""

    def __init__(self, stem: str):
        self._stem = stem
        self._path = ""
        self._remove = None

    @property
    def path(self) -> str:
        while not self._path:
            made = tempfile.mkdtemp(prefix=_MAKING)
            lock = -1
            try:
                # Another process may take it for abandoned until it is locked.
                lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(lock, fcntl.LOCK_EX)
                with open(os.path.join(made, _MARK), "xb"):
                    pass
                folder, name = os.path.split(made)
                letters = name[len(_MAKING):]
                path = os.path.join(folder, self._stem + letters)
                os.rename(made, path)
            except FileNotFoundError:
                if lock >= 0:
                    os.close(lock)
                continue
            self._path = path
            self._remove = weakref.finalize(self, _remove, path, letters, lock, os.getpid())
        return self._path

    def close(self) -> None:
        if self._remove is not None:
            self._remove()
        self._path, self._remove = "", None


def _remove(path, letters, lock, maker):
    # A forked child has the object, too; the folder is its parent's.
    if os.getpid() == maker:
        with contextlib.suppress(OSError):  # a user may have removed it
            _remove_marked(path, letters)
    os.close(lock)


def _remove_marked(path, letters):
    """The mark goes last, under the name that needs none: the process may be killed at any moment."""
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name != _MARK:
            os.unlink(entry.path)
    last = os.path.join(os.path.dirname(path), _MAKING + letters)
    os.rename(path, last)
    os.unlink(os.path.join(last, _MARK))
    os.rmdir(last)
