"""Handlers of signals, which the interpreter runs between any two bytecodes of the first thread, Deja's included."""


def have_raised(error):
    """Whether the exception came out of a handler of the program's, and so is the program's. It then interrupted
    Deja's code as it would have interrupted the program's."""
    import signal  # it takes some milliseconds, of each start of Python

    found = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in found:
            return True
        traceback = traceback.tb_next
    # The interpreter's own handler of SIGINT has no frame.
    return isinstance(error, KeyboardInterrupt)


def _code_of(handler):
    """The code of a function, method, functools.partial or object that can be called; None: it is not Python's."""
    handler = getattr(handler, "func", handler)
    for function in (handler, getattr(handler, "__func__", None), getattr(type(handler), "__call__", None)):
        code = getattr(function, "__code__", None)
        if code is not None:
            return code
    return None
