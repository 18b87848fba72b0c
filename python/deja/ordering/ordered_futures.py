"""concurrent.futures where the order of locks is recorded, or kept (`deja record --threads order`).

as_completed() and wait() keep futures in sets, and take their locks in the order of their addresses. Addresses of
Python's objects are not the same in a replay. So futures get a number as they are made, which is their hash and their
place.
"""

import itertools


def install(module):
    """module: concurrent.futures._base, which has been imported."""
    numbers = itertools.count(1)
    make, acquire = module.Future.__init__, module._AcquireFutures.__init__

    def make_numbered(future, *arguments, **named):
        future._deja_number = next(numbers)
        make(future, *arguments, **named)

    def acquire_in_order(holder, futures):
        acquire(holder, futures)
        holder.futures.sort(key=_number_of)

    module.Future.__init__ = make_numbered
    module.Future.__hash__ = _number_of
    module._AcquireFutures.__init__ = acquire_in_order


def _number_of(future):
    # A class of the program's own may not have called Future's __init__.
    number = getattr(future, "_deja_number", None)
    return id(future) if number is None else number
