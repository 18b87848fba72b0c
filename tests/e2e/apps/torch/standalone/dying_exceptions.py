"""Exceptions that are caught, and die in other ways than at the end of their except clause."""
import gc
import sys

import torch.distributed  # noqa: F401: caught exceptions are noted from here on


def kept_in_a_variable():
    """The frame keeps the exception, whose traceback keeps the frame."""
    last = None
    for number in range(3):
        try:
            raise OSError(f"attempt {number}")
        except OSError as error:
            last = error
    return last is not None


def in_a_cycle():
    kept = []
    kept.append(kept)  # the collector clears the oldest first
    try:
        raise KeyError("in a cycle")
    except KeyError as error:
        kept.append(error)


def during_a_note():
    gc.collect()
    gc.disable()
    in_a_cycle()
    try:
        raise ValueError("alone")
    except ValueError as error:
        held = error
    gc.set_threshold(1)
    gc.enable()
    held = None  # noqa: F841: it is noted now; what that allocates makes the collector run
    gc.set_threshold(700)


GROUPS = """
def in_groups():
    class Ours(ExceptionGroup):
        pass

    for group in (ExceptionGroup, Ours):
        try:
            raise group("two of them", [ValueError(1), KeyError(2)])
        except ExceptionGroup:
            pass


def in_parts():
    try:
        raise ExceptionGroup("parts", [ValueError(1)])
    except* ValueError:
        pass
"""


kept_in_a_variable()
during_a_note()
has_groups = sys.version_info >= (3, 11)
if has_groups:
    exec(compile(GROUPS, __file__, "exec"))  # older versions do not read it
    in_groups()  # noqa: F821
    in_parts()  # noqa: F821
print("has groups:", has_groups)
