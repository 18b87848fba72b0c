"""The operations of a trace as a sequence that reads each one when it is asked for. For deja.trace."""
import json
import os
from array import array
from collections.abc import Sequence
from typing import Any, Dict

from .trace_objects import Frame, Operation, Part

_HEAD = b'"operations":[\n'
_PART_FIELDS = tuple(Part.__dataclass_fields__)
# Parts that stay in memory, of all operations together: about 1 kB each. More of them cost the garbage collector time.
_MOST_KEPT_PARTS = 1 << 15


class Operations(Sequence):
    """The operations of a file that `deja export --format json` has written, one a line.

    The file may be removed. Where there are very many parts, an operation that is asked for again is made again, and is
    equal. One thread at a time.
    """

    def __init__(self, path: str):
        self._begins = array("Q")
        self._sizes = array("Q")
        self._kept: Dict[int, Operation] = {}
        self._kept_parts = 0
        self._frames: Dict[tuple, Frame] = {}
        self._file = open(path, "rb")  # as long as the sequence is there
        self.others = self._find()  # all but the operations

    def __del__(self):
        self._file.close()

    def __len__(self) -> int:
        return len(self._begins)

    def __repr__(self) -> str:
        return f"<{len(self)} operations>"

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"operation {index} of {len(self)}")
        found = self._kept.get(number)
        return self._read(number) if found is None else found

    def _find(self) -> Dict[str, Any]:
        """Notes where each operation is."""
        rest = []
        inside, begin = False, 0
        for line in self._file:
            if inside and not line.startswith(b"]"):
                self._begins.append(begin)
                self._sizes.append(len(line))
            else:
                inside = line == _HEAD
                rest.append(line)
            begin += len(line)
        return json.loads(b"".join(rest))

    def _read(self, number: int) -> Operation:
        line = os.pread(self._file.fileno(), self._sizes[number], self._begins[number])
        facts = json.loads(line.rstrip(b",\n"))
        made = Operation(facts["communicator"], facts["number"], facts["agrees"], [self._part(one) for one in facts["parts"]])
        if self._kept_parts > _MOST_KEPT_PARTS:
            self._kept.clear()
            self._kept_parts = 0
        self._kept[number] = made
        self._kept_parts += len(made.parts)
        return made

    def _part(self, facts: Dict[str, Any]) -> Part:
        values = {name: facts.get(name) for name in _PART_FIELDS}
        values["stack"] = [self._frame(one) for one in facts.get("stack") or ()]
        # Millions of parts are made: the constructor of a frozen class takes six times as long.
        part = object.__new__(Part)
        part.__dict__.update(values)
        return part

    def _frame(self, facts: Dict[str, Any]) -> Frame:
        """Few places are in very many stacks."""
        place = facts["file"], facts["line"], facts["function"]
        frame = self._frames.get(place)
        if frame is None:
            frame = self._frames[place] = Frame(*place)
        return frame
