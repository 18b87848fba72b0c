"""Reads recordings: ranks, communicators, operations, findings and tensors of a trace or bundle.

    from deja.trace import Trace

    with Trace("run.deja") as trace:
        for operation in trace.operations:
            print(operation.name, operation.last.rank, operation.waited_ns)
        gradients = trace.tensor(rank=2, comm=0, seq=412)

The program `deja` reads the trace (`deja export`), and the library `libdeja_read.so` its tensors: there is one reader.
Neither torch nor a recording is needed. Tables need pandas or pyarrow, tensors NumPy or torch. bfloat16 and float8 are
types of torch, and of NumPy with ml_dtypes. With NumPy alone `as_bits` gives them as unsigned integers. Times are
nanoseconds of each machine's wall clock.
"""
import json
import math
import os
import shutil
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import element_types, reading, trace_tables
from .kept_folder import KeptFolder
from .trace_objects import (Communicator, Finding, Frame, Operation, Part, Rank, Scalar, Step, TensorDifference, TensorInfo,
                            TensorStatistics)
from .trace_operations import Operations

__all__ = ["Communicator", "Finding", "Frame", "Operation", "Part", "Rank", "Scalar", "Step", "TensorDifference", "TensorInfo",
           "TensorStatistics", "Trace", "TraceError", "find_program"]


class TraceError(Exception):
    """A trace cannot be read, or does not hold what was asked for. The message is that of `deja`."""


class _Ahead(NamedTuple):
    """Tensors that were looked up with others."""
    tensors: Dict[int, reading.Tensor]  # by the operation's number; the first one of each
    count: int  # operations that were asked for
    end: int  # the number of the first one that is not there


def _known(kind, facts):
    """An object of `kind`; fields that the program left out are None, unknown ones are passed over."""
    return kind(**{name: facts.get(name) for name in kind.__dataclass_fields__})


class Trace:
    """A recording: a trace directory or a bundle. `program`: the `deja` to read it with (default: that in PATH)."""

    def __init__(self, path, program: Optional[str] = None):
        self.path = os.fspath(path)
        self.program = program or find_program()
        self._library = reading.library_beside(self.program)
        self._folder = KeptFolder("deja-trace-")
        self._heads: Optional[Dict[str, Any]] = None  # ranks and communicators
        self._read: Optional[Dict[str, Any]] = None  # steps and findings, too
        self._operations: Optional[Operations] = None
        self._ranks: Optional[List[Rank]] = None
        self._reader: Optional[reading.Reader] = None
        self._ahead: Dict[Tuple[int, int, bool], _Ahead] = {}  # by rank, comm and whether of inputs
        if not os.path.exists(self.path):
            raise TraceError(f"opening: {self.path}: it is not there")

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trace({self.path!r})"

    def close(self) -> None:
        """Removes temporary files. Tensors that were returned stay valid."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._folder.close()

    @property
    def ranks(self) -> List[Rank]:
        """By their numbers. Reads headers, indexes and a few events; a rank reads its steps when they are asked for."""
        if self._ranks is None:
            self._ranks = [_known(Rank, {**facts, "_trace": self}) for facts in self._head()["ranks"]]
        return list(self._ranks)

    @property
    def communicators(self) -> List[Communicator]:
        return [_known(Communicator, facts) for facts in self._head()["communicators"]]

    @property
    def operations(self) -> Sequence[Operation]:
        """By their begin. Objects are made when an operation is asked for."""
        if self._operations is None:
            path = self._exported()
            self._operations = Operations(path)
            os.unlink(path)
            self._read = self._operations.others
        return self._operations

    @property
    def findings(self) -> List[Finding]:
        """What `deja check` finds, the first cause first."""
        return [Finding(one["kind"], one["sentence"], one["ranks"], one) for one in self._checked()["check"]["findings"]]

    @property
    def notes(self) -> List[str]:
        return list(self._checked()["check"]["notes"])

    @property
    def is_damaged(self) -> bool:
        """Events of some ranks are missing."""
        return bool(self._checked()["check"]["damaged"])

    def tensors(self, rank: int, comm: int, seq: int) -> List[Dict[str, Any]]:
        """Type, statistics and histogram of the inputs and results of an operation, as `deja show --tensor --json`."""
        done = self._run("show", self.path, "--tensor", f"{comm}:{seq}", "--rank", str(rank), "--json")
        return json.loads(done)

    def tensor_infos(self, rank: int, comm: Optional[int] = None) -> List[TensorInfo]:
        """What the trace says of each tensor of the rank's operations (of one communicator), in the order of events."""
        return [_info(rank, fields) for fields in self._tensors_of(rank, -1 if comm is None else comm, (-1, -1))]

    def statistics(self, rank: int, comm: Optional[int] = None) -> List[TensorStatistics]:
        """The same with statistics, which are there without the bytes, too: norms, NaN counts."""
        read = _said(self._opened().statistics, rank, -1 if comm is None else comm)
        return [TensorStatistics(_info(rank, fields), *statistics) for fields, statistics in read]

    def scalars(self, rank: int, comm: Optional[int] = None) -> List[Scalar]:
        """Results of one floating-point element, as a loss is, in the order of events. A sum is one over all ranks."""
        parts = {(part.comm, part.seq): part for one in self.operations for part in one.parts if part.rank == rank}
        made = []
        for one in self.statistics(rank, comm):
            info, part = one.info, parts.get((one.info.comm, one.info.seq))
            if not info.is_result or info.count != 1 or "float" not in info.dtype or part is None:
                continue
            value = math.nan if one.nan_count else math.inf if one.inf_count else one.sum
            made.append(Scalar(part.step, value, part.operation, info.comm, info.seq, part.where))
        return made

    def tensor(self, rank, comm: Optional[int] = None, seq: Optional[int] = None, of_input: bool = False,
               as_bits: bool = False, out=None):
        """The result (or input) of an operation as a NumPy array of shape (elements,), decoded into its own memory.

        `rank`: its number, with `comm` and `seq`; or a `Part` of an operation, which has all three.
        bfloat16 and float8 have the types of ml_dtypes; without it they are a TraceError. `as_bits`: all elements as
        unsigned integers of their size, which needs NumPy alone. `out`: a contiguous array of as many bytes, decoded
        into instead. Several threads may read tensors at a time.
        """
        if comm is None:
            rank, comm, seq = _place_of(rank)
        if self._library is None:
            return _kept_in(out, self._exported_tensor(rank, comm, seq, of_input, as_bits))
        found = self._find(rank, comm, seq, of_input)
        return self._decoded(rank, found.hash, found.bytes, element_types.NAMES.get(found.dtype, "bytes"), as_bits, out)

    def read(self, info: TensorInfo, as_bits: bool = False, out=None):
        """The tensor of an entry of `tensor_infos`, as `tensor` returns it."""
        if info.bytes == 0:
            raise TraceError(f"tensor {info.comm}:{info.seq} of rank {info.rank}: its bytes were not kept")
        return self._decoded(info.rank, bytes.fromhex(info.digest), info.bytes, info.dtype, as_bits, out)

    def torch_tensor(self, rank, comm: Optional[int] = None, seq: Optional[int] = None, of_input: bool = False):
        """The same as a tensor of torch, of one dimension and in host memory; bfloat16 and float8 need nothing else."""
        import torch

        if comm is None:
            rank, comm, seq = _place_of(rank)
        found = self._find(rank, comm, seq, of_input)
        dtype = _type_of(element_types.torch_type, element_types.NAMES.get(found.dtype, "bytes"))
        tensor = torch.empty(found.bytes, dtype=torch.uint8).view(dtype)
        self._read_into(rank, found.hash, found.bytes, tensor.data_ptr())
        return tensor

    def diff(self, other: "Trace", rank: Optional[int] = None) -> Dict[str, Any]:
        """The first difference to another recording, of each rank or of one: `deja diff --json`.

        It may be an input, as a seed is; `tensor_differences` has all tensors.
        """
        chosen = [] if rank is None else ["--rank", str(rank)]
        # 4: they differ.
        return json.loads(self._run("diff", self.path, other.path, "--json", *chosen, allowed=(0, 3, 4)))

    def tensor_differences(self, other: "Trace", rank: Optional[int] = None) -> List[TensorDifference]:
        """Inputs and results of operations that are not the same bytes in another recording, of each rank or of one.

        Operations are matched by rank, communicator and number. The first one of a rank is where it went another way.
        """
        ranks = [one.rank for one in self.ranks] if rank is None else [rank]
        differences = []
        for number in ranks:
            own, others = _by_place(self.tensor_infos(number)), _by_place(other.tensor_infos(number))
            for place in {**own, **others}:
                a, b = own.get(place), others.get(place)
                if a is None or b is None or a.digest != b.digest:
                    differences.append(TensorDifference(a, b))
        return differences

    def rows(self) -> List[Dict[str, Any]]:
        """A row for each rank's part in an operation, for tables; `site` is the innermost frame."""
        return list(trace_tables.operation_rows(self))

    def pandas(self):
        """`rows` as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def arrow(self):
        """`rows` as a pyarrow.Table."""
        import pyarrow

        return pyarrow.Table.from_batches(trace_tables.batches("operations", trace_tables.operation_rows(self)),
                                          trace_tables.schema_of("operations"))

    def write_parquet(self, folder) -> Dict[str, int]:
        """Writes FOLDER/TABLE.parquet of ranks, steps, operations, tensors, findings and events; returns the numbers of
        rows. Needs pyarrow. `deja export --format parquet` does the same."""
        return trace_tables.write(self, os.fspath(folder))

    # ----

    def _opened(self) -> reading.Reader:
        if self._reader is None:
            if self._library is None:
                raise TraceError(f"reading tensors: there is no libdeja_read.so beside {self.program}; install Deja whole")
            directory = self.path
            if not os.path.isdir(directory):
                directory = os.path.join(self._folder.path, "unpacked.deja")
                self._run("unpack", self.path, "--out", directory, allowed=(0, 3))
            self._reader = _said(reading.Reader, self._library, directory)
        return self._reader

    def _exported_tensor(self, rank, comm, seq, of_input, as_bits):
        """A tensor by way of a file, where the library is not installed."""
        import numpy

        path = os.path.join(self._folder.path, f"{rank}-{comm}-{seq}-{int(of_input)}.npy")
        if not os.path.exists(path):
            self._run("export", self.path, "--tensor", f"{comm}:{seq}", "--rank", str(rank), "--out", path,
                      *(["--input"] if of_input else []))
        dtype = next(one["dtype"] for one in self.tensors(rank, comm, seq) if one["is_result"] != of_input)
        return numpy.load(path, mmap_mode="r", allow_pickle=False).view(_type_of(element_types.numpy_type, dtype, as_bits))

    def _tensors_of(self, rank, comm, operations, which=reading.BOTH):
        return _said(self._opened().tensor_fields, rank, comm, operations, which)

    def _find(self, rank, comm, seq, of_input):
        """The tensor of an operation. Those of the next operations are looked up with it: a look-up decodes whole
        batches of events. Their number doubles while the caller goes through operations in order."""
        ahead = self._ahead.get((rank, comm, of_input))
        if ahead is not None:
            found = ahead.tensors.get(seq)
            if found is not None:
                return found
        count = _LOOKED_UP if ahead is None or seq != ahead.end else min(2 * ahead.count, _MOST_LOOKED_UP)
        which = reading.INPUTS if of_input else reading.RESULTS
        tensors: Dict[int, reading.Tensor] = {}
        for one in map(reading.Tensor._make, self._tensors_of(rank, comm, (seq, seq + count - 1), which)):
            tensors.setdefault(one.seq, one)
        found = tensors.get(seq) or self._find_any(rank, comm, seq)
        # What is not kept yet, or has no result, may be of a running job.
        last = max(tensors, default=seq)
        kept = {number: one for number, one in tensors.items() if number < last and one.bytes}
        self._ahead[rank, comm, of_input] = _Ahead(kept, count, last)
        if found is None or found.bytes == 0:
            # The program says why.
            self._run("export", self.path, "--tensor", f"{comm}:{seq}", "--rank", str(rank), "--out",
                      os.path.join(self._folder.path, "none.npy"), *(["--input"] if of_input else []))
            raise TraceError(f"tensor {comm}:{seq} of rank {rank}: its bytes were not kept")
        return found

    def _find_any(self, rank, comm, seq):
        """The tensor of an operation that has no such one: of a send, which has no result."""
        found = self._tensors_of(rank, comm, (seq, seq))
        return reading.Tensor._make(found[0]) if found else None

    def _decoded(self, rank, digest, size, dtype, as_bits, out):
        import numpy

        kind = _type_of(element_types.numpy_type, dtype, as_bits)
        array = numpy.empty(size // kind.itemsize, dtype=kind) if out is None else _room_in(out, size)
        self._read_into(rank, digest, size, reading.address_of(array))
        return array

    def _read_into(self, rank, digest, size, address):
        reader = self._reader or self._opened()
        try:
            reader.read_into(rank, digest, size, address)
        except OSError as error:
            raise TraceError(str(error)) from error

    def _head(self) -> Dict[str, Any]:
        """Ranks and communicators."""
        if self._heads is None:
            self._heads = self._read or self._exported_json("--only-ranks")
        return self._heads

    def _checked(self) -> Dict[str, Any]:
        """Everything but the operations, which may be very many."""
        if self._read is None:
            self._read = self._exported_json("--no-operations")
        return self._read

    def _steps_of(self, rank: int) -> List[Step]:
        facts = next(one for one in self._checked()["ranks"] if one["rank"] == rank)
        return [Step(**step) for step in facts["steps"]]

    def _exported(self, *options: str) -> str:
        path = os.path.join(self._folder.path, "trace.json")
        # 3: events are missing, which the findings say, too.
        self._run("export", self.path, "--format", "json", "--out", path, *options, allowed=(0, 3))
        return path

    def _exported_json(self, *options: str) -> Dict[str, Any]:
        path = self._exported(*options)
        with open(path, encoding="utf-8") as file:
            read = json.load(file)
        os.unlink(path)
        return read

    def _run(self, *words: str, allowed=(0,)) -> str:
        done = subprocess.run([self.program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
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


# Operations whose tensors are looked up at a time.
_LOOKED_UP = 256
_MOST_LOOKED_UP = 16384


def _info(rank, fields) -> TensorInfo:
    comm, dtype, seq, count, size, digest, is_result = fields
    return TensorInfo(rank, comm, seq, is_result, element_types.NAMES.get(dtype, "bytes"), count, size, digest.hex())


def _place_of(part) -> Tuple[int, int, int]:
    try:
        return part.rank, part.comm, part.seq
    except AttributeError:
        raise TypeError(f"a tensor is named by rank, comm and seq, or by a Part of an operation; not by {part!r}") from None


def _by_place(infos: List[TensorInfo]) -> Dict[tuple, TensorInfo]:
    """By communicator, operation and side; an operation may have several tensors of a side."""
    found: Dict[tuple, TensorInfo] = {}
    seen: Dict[tuple, int] = {}
    for one in infos:
        side = one.comm, one.seq, one.is_result
        seen[side] = seen.get(side, -1) + 1
        found[(*side, seen[side])] = one
    return found


def _said(call, *arguments):
    """What `call` returns; its OSError is a TraceError."""
    try:
        return call(*arguments)
    except OSError as error:
        raise TraceError(str(error)) from error


def _type_of(find, *names):
    """What `find`, of element_types, returns; a type that is not there is a TraceError."""
    try:
        return find(*names)
    except element_types.UnknownType as error:
        raise TraceError(str(error)) from error


def _room_in(out, size: int):
    """`out`, if `size` bytes can be written to it."""
    if out.nbytes != size or not (out.flags.c_contiguous and out.flags.writeable):
        raise TraceError(f"reading a tensor of {size} bytes: out has {out.nbytes}; give a contiguous, writable array of its size")
    return out


def _kept_in(out, array):
    if out is None:
        return array
    _room_in(out, array.nbytes).reshape(-1).view("uint8")[:] = array.view("uint8")
    return out
