#!/usr/bin/env python3
"""Checks the comments of sources against docs/STYLE.md, as far as a program can: sentences of at most 25 words, banned
words and phrases, width.

Usage: check_comments.py [FILE…]    (default: every source of the tree)
"""
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_prose  # noqa: E402

ROOT = check_prose.ROOT
C_NAMES = (".c", ".cc", ".h", ".cu", ".def", ".inc", ".S", ".map", ".ld")
HASH_NAMES = (".cmake", ".sh", ".yml", ".yaml", ".cfg", ".toml")
# Made by a program, data, or another project's text.
LEFT_OUT = re.compile(r"\.ptx\.inc$|^tests/golden/data/|^examples/digits/data/digits\.txt$|^common/secrets/secret_rules/")


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in sorted(set(listed))
            if (name.endswith(C_NAMES + HASH_NAMES + (".py", "CMakeLists.txt")) and not LEFT_OUT.search(name) and
                (ROOT / name).is_file())]


def c_comments(text):
    """(line number, text) of each line of a comment in C or C++; strings and characters are passed over."""
    pattern = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'(?!\w)'
                         r'|//([^\n]*(?:\\\n[^\n]*)*)|/\*((?:.|\n)*?)\*/')
    for found in pattern.finditer(text):
        comment = found[2] if found[2] is not None else found[3]
        if comment is None:
            continue
        first = text.count("\n", 0, found.start()) + 1
        alone = not text[text.rfind("\n", 0, found.start()) + 1:found.start()].strip()
        for offset, line in enumerate(comment.split("\n")):
            yield first + offset, re.sub(r"^\s?\*(?=\s|$)", "", line), alone


def hash_comments(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"(?P<before>(?:[^#\"']|\"[^\"]*\"|'[^']*'|#(?<=\$#)|#(?<=\{#))*?)(?:(?<=\s)|^)#(?!!)(?P<text>.*)", line)
        if found:
            yield number, found["text"], not found["before"].strip()


def python_comments(text):
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
                yield token.start[0], token.string[1:], not token.line[:token.start[1]].strip()
    except tokenize.TokenError:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = node.body and node.body[0]
            if isinstance(doc, ast.Expr) and isinstance(getattr(doc, "value", None), ast.Constant) and isinstance(doc.value.value, str):
                for offset, line in enumerate(text.split("\n")[doc.lineno - 1:doc.end_lineno]):
                    yield doc.lineno + offset, re.sub(r'^\s*[rR]?"""|"""\s*$', "", line) if not offset else (
                        re.sub(r'"""\s*$', "", line[min(doc.col_offset, len(line) - len(line.lstrip())):])), True
                yield doc.end_lineno + 1, "", True


def comments(name, text):
    if name.endswith(C_NAMES):
        return c_comments(text)
    return python_comments(text) if name.endswith(".py") else hash_comments(text)


def paragraphs(lines):
    """(line number, text) of each paragraph and list item; indented lines are code, and no prose. A comment after code
    stands alone, unless the next line's goes on."""
    found, paragraph, last, first, last_alone = [], [], 0, 0, True

    def close():
        if paragraph:
            found.append((first, " ".join(paragraph)))
            paragraph.clear()

    for number, line, alone in lines:
        stripped = line.strip()
        item = re.match(r"[-*] |\d+\. ", stripped)
        code = re.match(r"\s{3,}\S", line) and not (paragraph and not alone) or re.search(r"\S\s{4,}\S", line)
        if number != last + 1 or alone != last_alone or not alone or not stripped or item or code:
            close()
        last, last_alone = number, alone
        if stripped and not code and not re.match(r"clang-format|NOLINT|noqa|type:|namespace\b|[-=]{3,}|[A-Z_0-9]+_H_$", stripped):
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"^(?:[-*]|\d+\.) ", "", stripped))
    close()
    return found


def check(name, text):
    problems = []
    for line, block in paragraphs(comments(name, text)):
        block = re.sub(r'"[^"]*"', "QUOTE", block)
        for sentence in check_prose.sentences(block, in_cell=True):
            check_prose.check_words(f"{name}:{line}", sentence, problems)
            check_prose.check_length(f"{name}:{line}", sentence, problems)
    lines = text.split("\n")
    for number in sorted({line for line, shown, alone in comments(name, text)
                          if alone and shown.strip() and line <= len(lines) and not re.match(r"\s{3,}\S", shown)}):
        columns = len(lines[number - 1])
        if columns > check_prose.MOST_COLUMNS and "://" not in lines[number - 1]:
            problems.append(f"{name}:{number}: {columns} columns; at most {check_prose.MOST_COLUMNS}")
    return problems


def main():
    chosen = [str(pathlib.Path(a).resolve().relative_to(ROOT)) for a in sys.argv[1:]] or sources()
    problems = []
    for name in chosen:
        problems += check(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
    print("\n".join(problems) if problems else f"{len(chosen)} sources: nothing found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
