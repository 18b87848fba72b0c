"""What each loader hands to the training loop, batch by batch: which rows, in which order, and a digest of them."""

import collections
import itertools
import sys
import weakref

from deja.evidence import seen

_MOST_ROWS = 512  # of a batch, that are named one by one
_numbers = weakref.WeakKeyDictionary()  # by loader
_next_number = itertools.count()


class _Pass:
    """One way of a loader through its data."""

    def __init__(self, number, passed, loader):
        self.number, self.passed, self.batches = number, passed, 0
        self.rows = collections.deque()  # of batches that were asked for and not given yet
        sampler = getattr(loader, "sampler", None)
        self.sampler = type(sampler).__name__
        self.shuffles = int(self.sampler == "RandomSampler" or bool(getattr(sampler, "shuffle", False)))
        self.epoch = getattr(sampler, "epoch", "none")
        self.seed = getattr(sampler, "seed", "none")
        try:
            self.size = len(loader.dataset)
        except (AttributeError, TypeError):  # it does not know
            self.size = "unknown"


_passes = weakref.WeakKeyDictionary()  # by iterator


def install(module):
    """module: torch.utils.data.dataloader."""
    if not seen.is_on():
        return
    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    begin, rows_of, advance = loader.__iter__, iterator._next_index, iterator.__next__

    def seen_iter(self):
        if sys.modules["torch"].utils.data.get_worker_info() is not None:
            return begin(self)
        _begin_pass(self)
        return begin(self)

    def seen_rows(self):
        rows = rows_of(self)
        known = _passes.get(self)
        if known is not None:
            known.rows.append(rows)
        return rows

    def seen_next(self):
        if self not in _passes and self._deja_pass is not None:
            _passes[self] = self._deja_pass
        known = _passes.get(self)
        try:
            batch = advance(self)
        except StopIteration:
            if known is not None:
                _tell_end(known)
            raise
        if known is not None:
            _tell_batch(known, batch)
        return batch

    make = iterator.__init__

    def seen_init(self, loader, *args, **kwargs):
        self._deja_pass = None
        _join(self, loader)
        make(self, loader, *args, **kwargs)

    reset = iterator._reset

    def seen_reset(self, loader, first_iter=False):
        if not first_iter:
            _join(self, loader)
        reset(self, loader, first_iter)

    loader.__iter__, iterator.__init__, iterator._reset = seen_iter, seen_init, seen_reset
    iterator._next_index, iterator.__next__ = seen_rows, seen_next


@seen.safely
def _join(iterator, loader):
    held = _numbers.get(loader)
    if held is not None:
        _passes[iterator] = iterator._deja_pass = _Pass(*held, loader)


@seen.safely
def _begin_pass(loader):
    number, passed = _numbers.get(loader) or (next(_next_number), -1)
    _numbers[loader] = number, passed + 1


@seen.safely
def _tell_batch(known, batch):
    rows = known.rows.popleft() if known.rows else None
    known.batches += 1
    seen.tell(
        "batch",
        loader=known.number,
        passed=known.passed,
        batch=known.batches,
        rows=_text_of(rows),
        size=known.size,
        sampler=known.sampler,
        shuffles=known.shuffles,
        epoch=known.epoch,
        seed=known.seed,
        trains=int(sys.modules["torch"].is_grad_enabled()),
        digest=seen.text_of(_digest_of(batch)),
        at=seen.place(2),
    )


@seen.safely
def _tell_end(known):
    seen.tell("pass", loader=known.number, passed=known.passed, batches=known.batches, at=seen.place(2))


def _text_of(rows):
    """'3,5,7-12'; 'unknown' where they have no numbers."""
    if isinstance(rows, int):
        rows = [rows]
    if not isinstance(rows, (list, tuple)) or not rows or len(rows) > _MOST_ROWS:
        return "unknown"
    try:
        numbers = [int(row) for row in rows]
    except (TypeError, ValueError):
        return "unknown"
    return ",".join(map(str, numbers))


def _digest_of(batch):
    """The tensors, numbers and texts in it; None where there is something else."""
    torch = sys.modules["torch"]
    if isinstance(batch, torch.Tensor):
        return seen.digest(batch.detach())
    if isinstance(batch, dict):
        return seen.together(_digest_of(value) for value in batch.values())
    if isinstance(batch, (list, tuple)):
        return seen.together(_digest_of(value) for value in batch)
    if isinstance(batch, (int, float, str, bool)):
        return seen.digest_of_bytes(repr(batch).encode())
    return None
