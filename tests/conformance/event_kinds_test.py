"""Each row of format/wire/event_kinds.def is in trace.proto under its number, and in the table of docs/FORMAT.md."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def compare(place, rows, found):
    return [f"{name}: {rows.get(name)} in event_kinds.def, {found.get(name)} in {place}"
            for name in sorted(rows.keys() | found.keys()) if rows.get(name) != found.get(name)]


def main():
    table = (ROOT / "format/wire/event_kinds.def").read_text()
    rows = {kind: (number, name)
            for kind, number, name in re.findall(r'^DEJA_EVENT\((\w+), (\d+), "([\w-]+)",', table, re.M)}
    bodies = re.search(r"oneof body \{(.*?)\}", (ROOT / "format/proto/trace.proto").read_text(), re.S).group(1)
    fields = dict(re.findall(r"^\s*(\w+) \w+ = (\d+);", bodies, re.M))
    documented = {kind: (number, name) for number, kind, name in re.findall(
        r"^\| (\d+) \| `(\w+)` \| ([\w-]+) \| [^|]+\|$", (ROOT / "docs/FORMAT.md").read_text(), re.M)}
    problems = compare("trace.proto", {kind: number for kind, (number, _) in rows.items()}, fields)
    problems += compare("docs/FORMAT.md", rows, documented)
    if problems or len(rows) < 20:
        sys.exit("\n".join(problems) or "the table was not found")
    print(f"{len(rows)} kinds of events")


if __name__ == "__main__":
    main()
