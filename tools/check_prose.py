#!/usr/bin/env python3
"""Checks prose against docs/STYLE.md, as far as a program can. In documents: sentences of at most 25 words, words and
phrases that the project does not use, width, tabs, trailing spaces, links. In the texts of sources, which become
messages: the words and phrases. Help texts are checked in docs/CLI.md.

Usage: check_prose.py [FILE…]    (default: every document and every source of the product)
"""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS = 25
MOST_COLUMNS = 120

# Records of what was decided and measured: their sentences may be long, their words may not be banned ones.
RECORDS = ("docs/decisions/", "docs/measurements/")
# Documents of short tables: a cell has at most two lines.
SHORT_CELLS = ("docs/LIMITATIONS.md",)
# Documents whose sentences are still to be rewritten. A file leaves this list when it passes.
OLD = ()

# Pattern, and what to write instead.
BANNED = [(re.compile(pattern, re.I), instead) for pattern, instead in (
    (r"\banew\b", "again, new"),
    (r"\bnobody\b", "no one, no process, not"),
    (r"\bsomebody\b", "a user, another user"),
    (r"\b(?:comes|came|come) to (?!rest\b|an end\b)", "reaches, is"),
    (r"\bso many\b", "N, this number of"),
    (r"\bits kin\b|\btheir kin\b", "and similar, or the full list"),
    (r"\bone behind the other\b", "one after the other"),
    (r"\bbehind (?:the|that|its|each|this) (?:checkpoint|run|step|call|pass|launch|end|operation)\b", "after"),
    (r"\b(?:is|are|was|were|be) told\b(?! apart| from)", "gets, reads"),
    (r"\b(?:stands|stood|stand) still\b", "hangs"),
    (r"\bas ever\b", "as always"),
    (r"\bfor want of\b", "for lack of"),
)]
# How a sentence must not begin: an "of" phrase in front of the noun that it belongs to; a clause in place of a noun.
BEGINNINGS = [(re.compile(pattern), instead) for pattern, instead in (
    (r"Of (?!course\b)", "begin with the noun"),
    (r"Who\b(?!.*\?$)", "name the actor"),
)]


def documents():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    return [ROOT / name for name in sorted(set(listed.stdout.split())) if (ROOT / name).exists()]


def plain(text):
    """Markdown without its marks: a code span is one word, a link is its text or, of a path, one word."""
    text = re.sub(r"(`+)(?:(?!\1).)+\1", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", lambda m: re.sub(r"^\S*[/.]\S*$", "FILE", m.group(1)), text)
    text = re.sub(r"<https?://[^>]*>", "URL", text)
    return re.sub(r"\*\*?|(?<!\w)_|_(?!\w)", "", text)


def sentences(text, in_cell=False):
    """The sentences of a block; in a table cell or a help text a semicolon ends one, too."""
    ends = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9…])" + (r"|;\s+" if in_cell else "")
    return [part.strip() for part in re.split(ends, plain(text)) if part.strip()]


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def blocks(text):
    """(line number, text, is it a cell) of each paragraph, list item, heading and table cell; no code. A table's first
    column under "before" or "not" holds bad examples and is left out."""
    found, paragraph, first, fenced, column = [], [], 0, False, None

    def close():
        if paragraph:
            found.append((first, " ".join(paragraph), False))
            paragraph.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            close()
            continue
        stripped = line.strip()
        code = line.startswith("    ") and not paragraph
        column = column if stripped.startswith("|") else None
        if fenced or code or not stripped or stripped.startswith("<"):
            close()
        elif stripped.startswith("|"):
            close()
            if not re.fullmatch(r"[|\s:-]+", stripped):
                cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", lambda m: m.group().replace("|", "/"), stripped))
                cells = [cell.strip() for cell in cells[1:-1]]
                column = int(cells[0] in ("before", "not")) if column is None else column
                found += [(number, cell, True) for cell in cells[column:] if cell]
        else:
            if re.match(r"#+ |[-*] |\d+\. ", stripped):
                close()
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"^(?:#+|[-*]|\d+\.) ", "", stripped))
            if stripped.startswith("#"):
                close()
    close()
    return found


def help_blocks(text):
    """The same of docs/CLI.md: descriptions of commands and options, and the closing remarks; no examples."""
    found, fenced, examples = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced, examples = not fenced, False
        elif fenced and re.match(r"Examples:|Start with:", line):
            examples = True
        elif fenced and line.strip() and not line.startswith("Usage:"):
            examples = examples and line.startswith("  ")
            described = re.match(r"  \S.*?\s{2,}(\S.*)|\s{10,}(\S.*)|(\S.*)", line)
            if described and not examples:
                found.append((number, next(part for part in described.groups() if part), True))
    return found


# Sources whose texts a user may read.
SOURCES = ("api", "check", "cli", "common", "digest", "format", "gdb", "loopback", "preload", "python", "recorder", "replayer")
C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\\n]|\\.)*)\"|"""
                     r"""'(?:[^'\\\n]|\\.)+'""", re.S)
ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]+|.)", re.S)


def c_texts(source):
    """(line number, text) of each string literal; literals with nothing but space between them are one."""
    found, end = [], None
    for match in C_TOKEN.finditer(source):
        text = match.group("text") if match.group("text") is not None else match.group("raw")
        if text is None:
            continue
        text = ESCAPE.sub(lambda m: {"\\n": "\n"}.get(m.group(), " "), text)
        if end is not None and not source[end:match.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + text)
        else:
            found.append((source.count("\n", 0, match.start()) + 1, text))
        end = match.end()
    return found


def python_texts(source):
    """The same of a Python file, without docstrings; what an f-string puts in is "{}"."""
    tree = ast.parse(source)
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            found.append((node.lineno, node.value))
    return found


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cc", "*.h", "*.def",
                             "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in sorted(set(listed.stdout.split()))
            if name.split("/")[0] in SOURCES and (ROOT / name).exists()]


def check_source(name, text):
    """Problems of the texts of one source."""
    problems = []
    for line, found in python_texts(text) if name.endswith(".py") else c_texts(text):
        if " " not in found.strip():
            continue
        for pattern, instead in BANNED:
            for word in pattern.findall(" ".join(found.split())):
                problems.append(f"{name}:{line}: \"{word}\": not used in messages; write: {instead}")
    return problems


def check_words(where, sentence, problems):
    for pattern, instead in BANNED:
        for found in pattern.findall(sentence):
            problems.append(f"{where}: \"{found}\": not used here; write: {instead}")
    for pattern, instead in BEGINNINGS:
        if pattern.match(sentence):
            problems.append(f"{where}: \"{sentence[:40]}…\": begins without its noun; {instead}")


def check_length(where, sentence, problems):
    count = len(words(sentence))
    if count > MOST_WORDS:
        problems.append(f"{where}: \"{sentence[:60]}…\": {count} words; at most {MOST_WORDS}")


def check_lines(name, text, problems):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if "\t" in line:
            problems.append(f"{where}: a tab; write spaces")
        if line != line.rstrip():
            problems.append(f"{where}: a space at the end; remove it")
        shown = re.sub(r"\]\([^)]*\)", "]", line)
        code = line.startswith(("|", "    ")) or line.lstrip().startswith("|")
        if len(shown) > MOST_COLUMNS and not (fenced or code):
            problems.append(f"{where}: {len(shown)} columns; at most {MOST_COLUMNS}")


def check_links(name, text, problems):
    folder = (ROOT / name).parent
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
            if "://" not in target and not (folder / target).exists():
                problems.append(f"{name}:{number}: link to {target}; no such file")


def check(name, text):
    """Problems of one document; `name` is its path from the root of the tree."""
    problems = []
    is_help = name == "docs/CLI.md"
    for line, block, in_cell in help_blocks(text) if is_help else blocks(text):
        if in_cell and name in SHORT_CELLS and len(plain(block)) > 2 * MOST_COLUMNS:
            problems.append(f"{name}:{line}: \"{block[:40]}…\": a cell of over two lines; divide the row")
        for sentence in sentences(block, in_cell):
            check_words(f"{name}:{line}", sentence, problems)
            if not name.startswith(RECORDS):
                check_length(f"{name}:{line}", sentence, problems)
    if not is_help:
        check_lines(name, text, problems)
        check_links(name, text, problems)
    return problems


def main():
    chosen = [pathlib.Path(a).resolve() for a in sys.argv[1:]] or documents() + sources()
    problems = []
    for path in chosen:
        name = str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".md":
            problems += check_source(name, text)
        elif name not in OLD or len(sys.argv) > 1:
            problems += check(name, text)
    print("\n".join(problems) if problems else f"{len(chosen)} files: nothing found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
