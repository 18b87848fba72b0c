"""Process groups that are given what one recorded rank was given, in a plain process.

    with TracePG("run.deja", rank=2):
        train.main()

`deja serve` has the recording: it compares each operation with the recorded one and sends the recorded result.
"""

import ctypes
import os
import warnings

from deja import engine
from deja.distributed import torch_groups, torch_works
from deja.distributed.torch_dense import Dense, dtype_of, flat
from deja.distributed.torch_operations import operation_name
from deja.serving.divergence import Divergence, RecordingEnds
from deja.serving.installed import Installed
from deja.serving.trace_server import TraceServer
from deja.serving.trace_stores import TraceStore
from deja.torch_dtypes import ELEMENT_BYTES
from deja.trace import TraceError

_STATES = {"done": engine.DONE, "failed": engine.FAILED, "raised": engine.RAISED, "open": engine.UNKNOWN}


class _OpenWork(torch_works.ServedWork):
    """The work of an operation that the recorded rank issued and that never ended."""

    def __init__(self, outcome, outputs, text):
        super().__init__(outcome, outputs)
        self._text = text

    def wait(self, *timeout):
        raise RecordingEnds(self._text)


class TraceGroup(torch_groups.Served):
    """One group of the recorded rank: its `number`-th."""

    def __init__(self, job, number):
        facts = job.group_facts(number)
        torch_groups.Group.__init__(self, facts["rank"], facts["size"], "gloo")
        self._deja_job, self._deja_index = job, number
        self._deja_number = number + 1
        self._deja_store, self._deja_set_values = job.store, {}
        self.options = torch_groups.Options(None)

    def _deja_store_call(self, function, key, _):
        """As engine.store_call."""
        answer, _ = self._deja_job.server.ask({"store": function, "key": key.decode()})
        return None if answer["value"] is None else bytes.fromhex(answer["value"])

    def split_group(self, ranks, *args, **kwargs):
        if self._deja_rank not in ranks:
            return None
        group = self._deja_job.next_group(ranks.index(self._deja_rank), len(ranks))
        return self._deja_like_its_parent(group, args, kwargs)

    def _do(self, name, inputs, outputs, args, kwargs, is_blocking=False, op=0, peer=0, tag=0):
        self._deja_sequence += 1
        in_place = inputs is outputs
        outputs = flat(outputs)
        written = Dense(outputs, read=in_place)
        read = written if in_place else Dense(flat(inputs), read=True)
        number = dtype_of(read.dtype, written.dtype)
        size = ELEMENT_BYTES[number] if number < len(ELEMENT_BYTES) else 1
        sent = [ctypes.string_at(address, count) for address, count in read.runs() if count]
        request = {
            "group": self._deja_index, "operation": operation_name(name), "dtype": number,
            "input_count": sum(len(piece) for piece in sent) // size,
            "output_count": sum(count for _, count in written.runs()) // size,
            "op": op, "root": peer, "src": peer, "dst": peer, "tag": tag,
        }
        answer, data = self._deja_job.server.ask(request, sent)
        self._deja_judge(answer)
        what = f"{name.lstrip('_')} #{answer['number']} of group {self._deja_title()}"
        outcome = _outcome(answer)
        if outcome.state == engine.RAISED:
            raise engine.recorded_error(outcome.error)
        if outcome.state == engine.UNKNOWN:
            text = f"{what}: the recorded rank never got past it"
            return _OpenWork(outcome, outputs, text).wait() if is_blocking else _OpenWork(outcome, outputs, text)
        if "missing" in answer:
            raise RecordingEnds(f"{what}: its result is not in the trace: {answer['missing']}")
        if outcome.state == engine.DONE:
            _fill(written, data, what)
        if is_blocking:
            return torch_works.ServedWork(outcome, outputs).wait()
        return torch_works.served(name, outcome, outputs)

    def _deja_title(self):
        return f"{self._deja_index} ({self._deja_description})" if self._deja_description else str(self._deja_index)

    def _deja_judge(self, answer):
        if "divergence" not in answer:
            return
        found = Divergence(answer["divergence"], self._deja_title(), answer["number"])
        if found.kind != "input" or not self._deja_job.goes_on:
            raise found
        self._deja_job.divergences.append(found)
        warnings.warn(str(found), stacklevel=4)


class TracePG(TraceGroup):
    """The default process group of one recorded rank, for code in this process: without preload, launcher or peers.

        with TracePG("run.deja", rank=2) as group:
            train.main()

    In the block torch.distributed is initialised with this group. Another init_process_group of the code does nothing,
    new_group and DeviceMesh make the groups that the recorded rank made, in its order. RANK, WORLD_SIZE and LOCAL_RANK
    are set. The n-th operation on a group is given the result of the n-th recorded one.

    Needs a trace of level full. Everything else is the code's own: it has to seed its generators as the recorded run
    did, and to read the same data.

    Raises Divergence where the code does something else, RecordingEnds where the recording has no more, TraceError
    where the trace cannot be read.

    trace: a directory or bundle. program: the `deja` to read with. on_divergence: "raise" or "warn". With "warn", other
    bytes that go in are a warning and an entry of `divergences`.

    trust: serve a trace that this user has not recorded or packed here, too. It can run code in this process, since
    torch unpickles objects that a group hands out.
    """

    def __init__(self, trace, rank, on_divergence="raise", program=None, trust=False):
        if on_divergence not in ("raise", "warn"):
            raise ValueError(f"on_divergence: {on_divergence!r}: give 'raise' or 'warn'")
        job = _Job(os.fspath(trace), rank, on_divergence == "warn", program, trust)
        super().__init__(job, 0)
        job.made.append(self)
        self._deja_installed = Installed(job)

    @property
    def divergences(self):
        """Those that were passed over, in order."""
        return self._deja_job.divergences

    def __enter__(self):
        self._deja_installed.begin()
        return self

    def __exit__(self, *_):
        self._deja_installed.end()
        self.close()

    def close(self):
        """Lets go of the trace."""
        self._deja_job.server.close()


class _Job:
    """What the groups of one TracePG share."""

    def __init__(self, path, rank, goes_on, program, trust):
        self.server = TraceServer(path, rank, program, trust)
        self.goes_on, self.divergences, self.made = goes_on, [], []
        self._handed_out = 0
        self.groups = self.server.greeting["groups"]
        if not self.groups:
            self.server.close()
            raise TraceError(f"serving: {path}: rank {rank} " + (
                "called NCCL, without a process group that Deja recorded; TracePG serves those of gloo, MPI, UCC and plug-ins"
                if self.server.greeting["nccl"] else "made no process group"))
        self.store = TraceStore(self.server)

    def group_facts(self, number):
        return self.groups[number]

    def next_group(self, rank, size):
        """The group that the recorded rank made at this point."""
        number = self._handed_out
        recorded = self.groups[number] if number < len(self.groups) else None
        if recorded is None or (recorded["rank"], recorded["size"]) != (rank, size):
            raise Divergence({"kind": "group", "recorded": recorded, "live": {"rank": rank, "size": size}}, number)
        self._handed_out += 1
        if number == len(self.made):
            self.made.append(TraceGroup(self, number))
        return self.made[number]


def _outcome(answer):
    error = answer["message"].encode() if "message" in answer else None
    return engine.Outcome(0, answer["number"], _STATES[answer["state"]], answer["source"], error)


def _fill(written, data, what):
    """The tensors hold the recorded result."""
    wanted = sum(count for _, count in written.runs())
    if wanted != len(data):
        raise RecordingEnds(f"{what}: its result has {len(data):,} bytes in the trace, {wanted:,} here")
    at = 0
    for address, count in written.runs():
        ctypes.memmove(address, data[at : at + count], count)
        at += count
    written.write_back()
