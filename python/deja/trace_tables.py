"""A trace as tables: Arrow's, and a folder of Parquet files. For deja.trace, and `deja export --format parquet`."""
import json
import os
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

# Rows that are in memory at a time.
_BATCH = 1 << 16

# Tables with their columns and types. docs/COOKBOOK.md says what they mean.
SCHEMAS: Dict[str, Dict[str, str]] = {
    "ranks": {"rank": "int64", "host": "string", "pid": "int64", "end": "string", "ended_well": "bool", "last_ns": "int64",
              "events": "int64", "bytes": "int64", "payload_bytes": "int64"},
    "steps": {"rank": "int64", "step": "int64", "begin_ns": "int64"},
    "operations": {"rank": "int64", "comm": "int64", "seq": "int64", "begin_ns": "int64", "end_ns": "int64", "state": "string",
                   "operation": "string", "dtype": "string", "count": "int64", "root": "int64", "peer": "int64",
                   "step": "int64", "thread": "int64", "nan_in": "bool", "nan_out": "bool", "input_digest": "string",
                   "output_digest": "string", "communicator": "int64", "number": "int64", "agrees": "bool",
                   "entered_last": "bool", "site": "string"},
    "tensors": {"rank": "int64", "comm": "int64", "seq": "int64", "is_result": "bool", "dtype": "string", "count": "int64",
                "bytes": "int64", "digest": "string", "nan_count": "int64", "inf_count": "int64", "min": "double",
                "max": "double", "sum": "double", "sum_squares": "double"},
    "findings": {"kind": "string", "sentence": "string", "ranks": "list<int64>", "step": "int64", "facts": "string"},
    "events": {"rank": "int64", "thread": "string", "seq": "int64", "time_ns": "int64", "kind": "string", "call": "string",
               "comm": "int64", "seq_on_comm": "int64", "step": "int64", "result": "int64", "path": "string",
               "fields": "string"},
}


def schema_of(table: str):
    """The pyarrow.Schema of a table."""
    import pyarrow

    def of(name: str):
        return pyarrow.list_(of(name[5:-1])) if name.startswith("list<") else pyarrow.type_for_alias(name)

    return pyarrow.schema([(column, of(name)) for column, name in SCHEMAS[table].items()])


def batches(table: str, rows: Iterator[Dict[str, Any]]) -> Iterator[Any]:
    """The rows as pyarrow.RecordBatches."""
    import pyarrow

    schema = schema_of(table)
    columns: Dict[str, List[Any]] = {name: [] for name in schema.names}
    count = 0
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
        count += 1
        if count == _BATCH:
            yield pyarrow.RecordBatch.from_pydict(columns, schema)
            columns, count = {name: [] for name in schema.names}, 0
    if count:
        yield pyarrow.RecordBatch.from_pydict(columns, schema)


def write(trace, folder: str, tables: Tuple[str, ...] = tuple(SCHEMAS)) -> Dict[str, int]:
    """Writes FOLDER/TABLE.parquet of each table and returns their numbers of rows."""
    import pyarrow.parquet

    os.makedirs(folder, exist_ok=True)
    counts = {}
    for table in tables:
        counts[table] = 0
        with pyarrow.parquet.ParquetWriter(os.path.join(folder, f"{table}.parquet"), schema_of(table)) as writer:
            for batch in batches(table, _ROWS[table](trace)):
                writer.write_batch(batch)
                counts[table] += batch.num_rows
    return counts


def rank_rows(trace) -> Iterator[Dict[str, Any]]:
    return (vars(rank) for rank in trace.ranks)


def step_rows(trace) -> Iterator[Dict[str, Any]]:
    return ({"rank": rank.rank, **vars(step)} for rank in trace.ranks for step in rank.steps)


def operation_rows(trace) -> Iterator[Dict[str, Any]]:
    """A row for each rank's part in an operation; `site` is the innermost frame."""
    for one in trace.operations:
        last = one.last
        for part in one.parts:
            row = dict(vars(part))
            stack = row.pop("stack")
            row.update(communicator=one.communicator, number=one.number, agrees=one.agrees, entered_last=part is last,
                       site=f"{stack[0].file}:{stack[0].line}" if stack else None)
            yield row


def tensor_rows(trace) -> Iterator[Dict[str, Any]]:
    for rank in trace.ranks:
        for one in trace.statistics(rank.rank):
            yield {**one.info._asdict(), **one._asdict()}


def finding_rows(trace) -> Iterator[Dict[str, Any]]:
    for one in trace.findings:
        yield {"kind": one.kind, "sentence": one.sentence, "ranks": one.ranks, "step": one.facts.get("step"),
               "facts": json.dumps(one.facts)}


def event_rows(trace) -> Iterator[Dict[str, Any]]:
    """Events as `deja show --all --json` prints them; `fields` has what no column has."""
    columns = set(SCHEMAS["events"])
    for rank in trace.ranks:
        with subprocess.Popen([trace.program, "show", trace.path, "--all", "--json", "--rank", str(rank.rank)],
                              stdout=subprocess.PIPE, encoding="utf-8") as shown:
            for line in shown.stdout:
                event = json.loads(line)
                # Numbers of 64 bits without a sign are left to `fields`.
                row = {name: event.pop(name) for name in columns & event.keys() if _fits(event[name], name)}
                yield {**row, "rank": rank.rank, "fields": json.dumps(event) if event else None}


def _fits(value: Any, column: str) -> bool:
    if SCHEMAS["events"][column] == "int64":
        return isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return isinstance(value, str)


_ROWS: Dict[str, Callable[[Any], Iterator[Dict[str, Any]]]] = {
    "ranks": rank_rows, "steps": step_rows, "operations": operation_rows, "tensors": tensor_rows,
    "findings": finding_rows, "events": event_rows}


def main() -> int:
    """TRACE FOLDER PROGRAM: writes all tables and prints a line of JSON, or why not."""
    from .trace import Trace, TraceError

    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        print(json.dumps({"error": f"{sys.executable} has no pyarrow; install it, or put a Python that has it first in PATH"}))
        return 1
    path, folder, program = sys.argv[1:]
    try:
        with Trace(path, program=program) as trace:
            print(json.dumps({"rows": write(trace, folder), "damaged": trace.is_damaged}))
    except (TraceError, OSError) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
