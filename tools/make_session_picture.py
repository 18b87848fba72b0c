#!/usr/bin/env python3
"""Draws docs/images/session.svg from docs/images/session.txt, the text of a session in a terminal.

A line that starts with "$ " or "(gdb) " is typed; one that starts with "# " is a remark; "*" in front of a line lights
it up.

Usage: make_session_picture.py [--check]    --check: fail if the picture is not the text's
"""
import html
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH, LINE, TOP, LEFT, CHARACTER = 920, 19, 58, 22, 7.83
COLOURS = {"typed": "#f0f6fc", "prompt": "#7ee787", "remark": "#8b949e", "lit": "#ffa657", "said": "#c9d1d9"}


def parts(line):
    """(kind, text) of a line's pieces."""
    for prompt in ("$ ", "(gdb) "):
        if line.startswith(prompt):
            return [("prompt", prompt), ("typed", line[len(prompt):])]
    if line.startswith("# "):
        return [("remark", line[2:])]
    return [("lit", line[1:])] if line.startswith("*") else [("said", line)]


def picture(text):
    lines = text.rstrip("\n").split("\n")
    height = TOP + LINE * len(lines) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">',
           "<title>A job that crashed once, recorded with deja record and replayed in gdb with deja replay</title>",
           f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#0d1117"/>',
           f'<path d="M0 10a10 10 0 0 1 10-10h{WIDTH - 20}a10 10 0 0 1 10 10v24H0z" fill="#21262d"/>']
    for x, colour in ((22, "#ff5f56"), (42, "#ffbd2e"), (62, "#27c93f")):
        out.append(f'<circle cx="{x}" cy="17" r="6" fill="{colour}"/>')
    for number, line in enumerate(lines):
        x = LEFT
        for kind, piece in parts(line):
            if piece.strip():
                out.append(f'<text x="{x:.1f}" y="{TOP + LINE * number}" fill="{COLOURS[kind]}" xml:space="preserve" '
                           f'textLength="{len(piece) * CHARACTER:.1f}">{html.escape(piece)}</text>')
            x += len(piece) * CHARACTER
    return "\n".join(out + ["</svg>", ""])


def main():
    drawn = picture((FOLDER / "session.txt").read_text(encoding="utf-8"))
    target = FOLDER / "session.svg"
    if "--check" not in sys.argv:
        target.write_text(drawn, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != drawn:
        print("drawing: docs/images/session.svg: not drawn from session.txt; run tools/make_session_picture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
