"""Reads recordings: ranks, communicators, operations, findings and tensors of a trace or bundle.

    from deja.trace import Trace

    with Trace("run.deja") as trace:
        for operation in trace.operations:
            print(operation.name, operation.last.rank, operation.waited_ns)
        gradients = trace.tensor(rank=2, comm=0, seq=412)

The program `deja` reads the trace (`deja export`), so there is one reader. Neither torch nor a recording is needed.
Tables need pandas or pyarrow, tensors NumPy; bfloat16 and float8 also ml_dtypes. Times are nanoseconds of each
machine's wall clock.
"""
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional


class TraceError(Exception):
    """A trace cannot be read, or does not hold what was asked for. The message is that of `deja`."""


@dataclass(frozen=True)
class Frame:
    """A frame of the program's own code."""
    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Part:
    """One rank's part in an operation."""
    rank: int
    comm: int  # the rank's number of the communicator
    seq: int  # the number of the operation for `Trace.tensor`
    begin_ns: int
    end_ns: int  # of one that was never done: the rank's last event
    state: str  # done, open (never done), failed
    operation: str  # AllReduce
    dtype: Optional[str]
    count: Optional[int]  # elements
    root: Optional[int]
    peer: Optional[int]  # of a send or receive, in the communicator; -1: any
    step: Optional[int]
    thread: int
    nan_in: bool
    nan_out: bool
    input_digest: Optional[str]  # equal digests, equal bytes
    output_digest: Optional[str]
    stack: List[Frame] = field(default_factory=list)  # innermost first


@dataclass(frozen=True)
class Operation:
    """A collective with all its ranks, or a send with its receive."""
    communicator: int  # index of Trace.communicators
    number: int  # from 1
    agrees: bool  # the ranks' calls fit each other
    parts: List[Part]

    @property
    def name(self) -> str:
        return f"{self.parts[0].operation} #{self.number}"

    @property
    def last(self) -> Part:
        """The part that began last."""
        return max(self.parts, key=lambda part: part.begin_ns)

    @property
    def waited_ns(self) -> int:
        """From the first begin to the last."""
        return self.last.begin_ns - min(part.begin_ns for part in self.parts)


@dataclass(frozen=True)
class Step:
    step: int
    begin_ns: int


@dataclass(frozen=True)
class Rank:
    rank: int
    host: str
    pid: int
    end: str  # "exit 0", "SIGSEGV"
    ended_well: bool
    last_ns: int  # the last event
    events: int
    bytes: int  # on disk
    payload_bytes: int
    steps: List[Step]


@dataclass(frozen=True)
class Communicator:
    name: str  # "comm 0 of ranks 0-3"
    given_name: str  # as the program calls it; may be empty
    size: int
    ranks: List[int]  # those of the trace


@dataclass(frozen=True)
class Finding:
    """A finding of `deja check`; `facts` has all its fields as `deja check --json` prints them."""
    kind: str
    sentence: str
    ranks: List[int]
    facts: Dict[str, Any]


def _known(kind, facts):
    """An object of `kind`; fields that the program left out are None, unknown ones are passed over."""
    names = kind.__dataclass_fields__
    values = {name: facts.get(name) for name in names}
    return kind(**{**values, "stack": [Frame(**frame) for frame in facts.get("stack") or []]} if "stack" in names else values)


class Trace:
    """A recording: a trace directory or a bundle. `program`: the `deja` to read it with (default: that in PATH)."""

    def __init__(self, path, program: Optional[str] = None):
        self.path = os.fspath(path)
        self._program = program or find_program()
        self._folder = tempfile.TemporaryDirectory(prefix="deja-trace-")
        self._read: Optional[Dict[str, Any]] = None
        self._operations: Optional[List[Operation]] = None
        if not os.path.exists(self.path):
            raise TraceError(f"opening: {self.path}: it is not there")

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Removes temporary files. Tensors that were returned stay valid."""
        self._folder.cleanup()

    @property
    def ranks(self) -> List[Rank]:
        made = []
        for facts in self._all()["ranks"]:
            rank = _known(Rank, facts)
            made.append(Rank(**{**rank.__dict__, "steps": [Step(**step) for step in facts["steps"]]}))
        return made

    @property
    def communicators(self) -> List[Communicator]:
        return [_known(Communicator, facts) for facts in self._all()["communicators"]]

    @property
    def operations(self) -> List[Operation]:
        """By their begin."""
        if self._operations is None:
            self._operations = [
                Operation(one["communicator"], one["number"], one["agrees"], [_known(Part, part) for part in one["parts"]])
                for one in self._all()["operations"]]
        return self._operations

    @property
    def findings(self) -> List[Finding]:
        """What `deja check` finds, the first cause first."""
        return [Finding(one["kind"], one["sentence"], one["ranks"], one) for one in self._all()["check"]["findings"]]

    @property
    def notes(self) -> List[str]:
        return list(self._all()["check"]["notes"])

    @property
    def is_damaged(self) -> bool:
        """Events of some ranks are missing."""
        return bool(self._all()["check"]["damaged"])

    def tensors(self, rank: int, comm: int, seq: int) -> List[Dict[str, Any]]:
        """Type, statistics and histogram of the inputs and results of an operation, as `deja show --tensor --json`."""
        done = self._run("show", self.path, "--tensor", f"{comm}:{seq}", "--rank", str(rank), "--json")
        return json.loads(done)

    def tensor(self, rank: int, comm: int, seq: int, of_input: bool = False):
        """The result (or input) of an operation as a NumPy array of one dimension, mapped from a file."""
        import numpy

        path = os.path.join(self._folder.name, f"{rank}-{comm}-{seq}-{int(of_input)}.npy")
        dtype = self._type_of(path)
        if dtype is None:
            facts = json.loads(self._run("export", self.path, "--tensor", f"{comm}:{seq}", "--rank", str(rank), "--out", path,
                                         "--json", *(["--input"] if of_input else [])))
            dtype = facts["dtype"]
            with open(path + ".dtype", "w", encoding="utf-8") as file:
                file.write(dtype)
        array = numpy.load(path, mmap_mode="r", allow_pickle=False)
        return _with_type(array, dtype)

    def rows(self) -> List[Dict[str, Any]]:
        """A row for each rank's part in an operation, for tables; `site` is the innermost frame."""
        rows = []
        for one in self.operations:
            last = one.last
            for part in one.parts:
                row = asdict(part)
                stack = row.pop("stack")
                row.update(communicator=one.communicator, number=one.number, agrees=one.agrees, entered_last=part is last,
                           site=f"{stack[0]['file']}:{stack[0]['line']}" if stack else None)
                rows.append(row)
        return rows

    def pandas(self):
        """`rows` as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def arrow(self):
        """`rows` as a pyarrow.Table; pyarrow.parquet.write_table makes a Parquet file of it."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    # ----

    @staticmethod
    def _type_of(path):
        try:
            with open(path + ".dtype", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _all(self) -> Dict[str, Any]:
        if self._read is None:
            path = os.path.join(self._folder.name, "trace.json")
            # 3: events are missing, which the findings say, too.
            self._run("export", self.path, "--format", "json", "--out", path, allowed=(0, 3))
            with open(path, encoding="utf-8") as file:
                self._read = json.load(file)
            os.unlink(path)
        return self._read

    def _run(self, *words: str, allowed=(0,)) -> str:
        done = subprocess.run([self._program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              check=False)
        if done.returncode not in allowed:
            raise TraceError(done.stderr.strip() or f"deja {words[0]}: exit {done.returncode}")
        return done.stdout


def find_program() -> str:
    """The `deja` of the installation that this module is part of, else that in PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for beside in (os.path.join(here, "..", "..", "..", "..", "bin", "deja"),):
        if os.access(beside, os.X_OK):
            return os.path.normpath(beside)
    found = shutil.which("deja")
    if found is None:
        raise TraceError("opening a trace: there is no program deja in PATH; give Trace(path, program=…)")
    return found


def _with_type(array, dtype: str):
    """NumPy has no bfloat16 and float8: ml_dtypes has."""
    names = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}
    if dtype not in names:
        return array
    try:
        import ml_dtypes
    except ImportError as error:
        raise TraceError(f"a tensor of {dtype} needs ml_dtypes: pip install ml_dtypes") from error
    return array.view(getattr(ml_dtypes, names[dtype]))
