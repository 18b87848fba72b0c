"""A profile or the coverage of a replayed rank (`deja replay --profile`, `--coverage`): shown when the program ends.

sitecustomize.py comes here by a name in PYTHONPATH, as to debugger.py. Only the rank's own interpreter is measured.
A profile has the times of this replay: it runs with live monotonic clocks (cli/commands/cmd_replay.cc).
"""

import atexit
import os
import sys

from deja import engine

_MOST_LINES = 30  # of a profile


def _measures_here():
    return engine.mode() == engine.REPLAYING and engine.variable("DEJA_CHILD") is None


def _at_the_end(show):
    """Calls it in this process, and in no fork child."""
    pid = os.getpid()

    def end():
        if os.getpid() != pid:
            return
        sys.stdout.flush()
        show()
        sys.stderr.flush()

    atexit.register(end)


def begin_profile():
    """Profiles the main thread."""
    if not _measures_here():
        return
    import cProfile

    profile = cProfile.Profile()

    def show():
        import pstats
        import re

        from deja.interpreter.debugger import is_own

        profile.disable()
        stats = pstats.Stats(profile, stream=sys.stderr)
        own = {file for file, _, _ in stats.stats if is_own(file) and file != "~"}
        print("deja: profile of the replay: the program's own functions, by cumulative time", file=sys.stderr)
        stats.sort_stats("cumulative").print_stats("|".join(map(re.escape, own)) or "^$", _MOST_LINES)
        print("deja: profile of the replay: all functions, by the time in each", file=sys.stderr)
        stats.sort_stats("tottime").print_stats(_MOST_LINES)

    _at_the_end(show)
    profile.enable()


def begin_coverage():
    """Notes the lines that run, of files outside of packages."""
    if not _measures_here():
        return
    try:
        import coverage
    except ImportError:
        print("deja: --coverage: this Python has no module `coverage`; pip install coverage", file=sys.stderr)
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    measured = coverage.Coverage(data_file=None, config_file=False, omit=["*/site-packages/*", f"{here}/*"])

    def show():
        measured.stop()
        print("deja: coverage of the replay", file=sys.stderr)
        try:
            measured.report(file=sys.stderr, show_missing=True)
        except coverage.CoverageException as error:
            print(f"deja: --coverage: {error}", file=sys.stderr)

    _at_the_end(show)
    measured.start()
