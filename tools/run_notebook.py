#!/usr/bin/env python3
"""Runs the code cells of a notebook in this process, in the working directory. Compares their output with the file's.

    tools/run_notebook.py NOTEBOOK            exit 1: another output, shown as a difference
    tools/run_notebook.py NOTEBOOK --write    puts the outputs into the file
"""
import argparse
import contextlib
import difflib
import io
import json
import sys
from pathlib import Path


def run(source, names):
    """What the cell prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<cell>", "exec"), names)  # pylint: disable=exec-used
    return printed.getvalue()


def text_of(outputs):
    return "".join("".join(output.get("text", [])) for output in outputs)


def as_output(text):
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(True)}] if text else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    notebook = json.loads(options.notebook.read_text(encoding="utf-8"))
    sys.path.insert(0, str(Path.cwd()))  # as Jupyter has it
    names, differences = {"__name__": "__main__"}, []
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        printed, kept = run("".join(cell["source"]), names), text_of(cell["outputs"])
        differences += difflib.unified_diff(kept.splitlines(), printed.splitlines(), f"cell {number}, in the notebook",
                                            f"cell {number}, now", lineterm="")
        cell["outputs"], cell["execution_count"] = as_output(printed), number + 1
    if options.write:
        options.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    print("\n".join(differences) or f"{options.notebook.name}: prints what it says")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
