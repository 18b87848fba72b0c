"""Which releases of torch Deja was tested with."""

OLDEST, NEWEST = (1, 13), (2, 15)


def of(torch):
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def newer(torch):
    """What to say of a release that is newer than all that were tested; "": it is not."""
    if of(torch) <= NEWEST:
        return ""
    return f"torch {torch.__version__} is newer than the newest that Deja was tested with (%d.%d)" % NEWEST
