"""What is raised where code does something else than the recorded rank did, or where the recording has no more."""

_REDUCTIONS = {0: "sum", 1: "product", 2: "max", 3: "min", 4: "avg", -1: "band", -2: "bor", -3: "bxor"}


class RecordingEnds(RuntimeError):
    """The recorded rank never got past this operation, or its result is not in the trace."""


class Divergence(RuntimeError):
    """The code does something else than the recorded rank did.

    kind: what differs.
        "signature": the operation, its type, size, root or peer.
        "input": the bytes that go in.
        "end": the recorded rank made no further operation on the group.
        "group": the rank or size of a new group.
    operation, group: names of the live ones.
    number: the operation's in its group, from 1.
    recorded, live: dictionaries of operation, dtype, input_count, op, root, …; recorded is None where there is none.
    element: first (index), different, count, recorded, live, ulps. None where the trace lacks the recorded input's
        bytes.
    recorded_numbers, live_numbers: nan, inf, min, max and sum of an input.
    stack: the recorded rank's frames at the operation, innermost first: file, line, function.
    """

    def __init__(self, facts, group, number=0):
        self.kind, self.group, self.number = facts["kind"], group, number
        self.recorded, self.live = facts.get("recorded"), facts.get("live")
        self.operation = _name_of(self.live) if self.live and "operation" in self.live else "new_group"
        self.element = facts.get("element")
        self.recorded_numbers, self.live_numbers = facts.get("recorded_numbers"), facts.get("live_numbers")
        self.stack = facts.get("stack") or []
        super().__init__(self._text())

    def _text(self):
        what = f"{self.operation} #{self.number} of group {self.group}"
        if self.kind == "group":
            return f"group {self.group}: recorded {group_text(self.recorded)}, live {group_text(self.live)}"
        if self.kind == "end":
            return f"{what}: the recorded rank made {self.number - 1} operations on this group, live {signature(self.live)}"
        if self.kind == "signature":
            text = f"{what}: recorded {signature(self.recorded)}, live {signature(self.live)}"
        else:
            text = f"{what}: its input, {signature(self.live).partition(' ')[2]}, differs{self._difference()}"
        return text + self._place()

    def _difference(self):
        if self.element is not None:
            one = self.element
            ulps = f", {one['ulps']:,} ULPs apart" if "ulps" in one else ""
            return (f" in {one['different']:,} of {one['count']:,} elements, first [{one['first']}]: "
                    f"recorded {one['recorded']}, live {one['live']}{ulps}")
        return f": recorded {_numbers(self.recorded_numbers)}, live {_numbers(self.live_numbers)}"

    def _place(self):
        if not self.stack:
            return ""
        frame = self.stack[0]
        return f"; recorded at {frame['file'].rsplit('/', 1)[-1]}:{frame['line']} in {frame['function']}"


def _name_of(facts):
    name = facts["operation"]
    return name[5:] if name.startswith("c10d_") else name


def signature(facts):
    """'allreduce float32[640] sum'."""
    text = _name_of(facts)
    if "dtype" in facts:
        inputs, outputs = facts.get("input_count", 0), facts.get("output_count", 0)
        text += f" {facts['dtype']}[{inputs or outputs}]"
        if inputs and outputs and inputs != outputs:
            text += f" to [{outputs}]"
    if "op" in facts:
        text += f" {_REDUCTIONS.get(facts['op'], facts['op'])}"
    for name, word in (("root", "root"), ("dst", "to"), ("src", "from"), ("tag", "tag")):
        if name in facts and not (name == "tag" and facts[name] == 0):
            text += f" {word} {facts[name]}"
    return text


def group_text(facts):
    """'rank 1 of 4'; 'none'."""
    return "none" if facts is None else f"rank {facts['rank']} of {facts['size']}"


def _numbers(facts):
    text = ", ".join(f"{name} {float(facts[name]):.9g}" for name in ("sum", "min", "max"))
    for name, word in (("nan", "NaN"), ("inf", "infinite")):
        if facts[name]:
            text += f", {facts[name]:,} {word}"
    return text
