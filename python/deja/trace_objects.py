"""What a trace holds, as objects: ranks, communicators, operations, tensors, findings. For deja.trace; values."""
import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional


@dataclass(frozen=True)
class Frame:
    """A frame of the program's own code."""
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


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

    @property
    def lasted_ns(self) -> int:
        """From its begin to its end on this rank, waits for other ranks included."""
        return self.end_ns - self.begin_ns

    @property
    def where(self) -> str:
        """The innermost frame of the program's own code, "train.py:81 in step"; empty if it is not known."""
        return str(self.stack[0]) if self.stack else ""


@dataclass(frozen=True, repr=False)
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
        """From the first begin to the last: how long the first rank waited."""
        return self.last.begin_ns - min(part.begin_ns for part in self.parts)

    @property
    def lasted_ns(self) -> int:
        """From the first begin to the last end."""
        return max(part.end_ns for part in self.parts) - min(part.begin_ns for part in self.parts)

    def part_of(self, rank: int) -> Optional[Part]:
        """The part of a rank; None: it has none."""
        return next((part for part in self.parts if part.rank == rank), None)

    def __repr__(self) -> str:
        first = self.parts[0]
        tensor = "" if first.dtype is None else f" {first.dtype}[{'' if first.count is None else first.count}]"
        some = ", ".join(str(part.rank) for part in self.parts[:8]) + (", …" if len(self.parts) > 8 else "")
        return f"<{self.name}{tensor} on communicator {self.communicator}, ranks {some}>"


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
    _trace: "Trace" = field(repr=False, compare=False)

    @property
    def steps(self) -> List[Step]:
        """In their order. Reads the trace's events the first time."""
        return self._trace._steps_of(self.rank)


@dataclass(frozen=True)
class Communicator:
    name: str  # "comm 0 of ranks 0-3"
    given_name: str  # as the program calls it; may be empty
    size: int
    ranks: List[int]  # those of the trace


class TensorInfo(NamedTuple):
    """A tensor that an operation of a rank read or produced."""
    rank: int
    comm: int
    seq: int
    is_result: bool  # else an input
    dtype: str  # "float32", "bfloat16"
    count: int  # elements
    bytes: int  # that are kept; 0: none
    digest: str  # hexadecimal; equal digests, equal bytes


class TensorStatistics(NamedTuple):
    """The statistics of a tensor, which recordings of level digest have, too. NaNs and infinities are left out of all
    but their counts."""
    info: TensorInfo
    nan_count: int
    inf_count: int
    min: float
    max: float
    sum: float
    sum_squares: float

    @property
    def norm(self) -> float:
        """The Euclidean norm."""
        return math.sqrt(self.sum_squares)


class Scalar(NamedTuple):
    """A result of one element, as a loss is."""
    step: Optional[int]
    value: float
    operation: str  # AllReduce
    comm: int
    seq: int
    where: str  # "train.py:81 in step"


class TensorDifference(NamedTuple):
    """A tensor that differs between two recordings; None: the operation or the tensor is not in that one."""
    a: Optional[TensorInfo]
    b: Optional[TensorInfo]


@dataclass(frozen=True)
class Finding:
    """A finding of `deja check`; `facts` has all its fields as `deja check --json` prints them."""
    kind: str
    sentence: str
    ranks: List[int]
    facts: Dict[str, Any]
