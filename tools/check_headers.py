#!/usr/bin/env python3
"""Finds public functions and classes without a comment in the headers of the folders below.

A comment stands above the declaration or on its line. Declarations that follow each other without a blank line share the
comment above the first. The comment at the head of a file serves its first class or function, and classes that it names.
Default constructors, destructors, operators, overrides, and functions whose body is one statement need none; nor do plain structs and enumerations,
whose fields have theirs.

Usage: check_headers.py [FILE…]    (default: every header of FOLDERS)
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("common", "api", "digest", "format", "preload", "include")
# Interfaces of others: their owners document them.
LEFT_OUT = re.compile(r"^include/compat/|^preload/hooks/mpi/mpi_abi")
OPENS = re.compile(r"^(?P<indent>\s*)(?:template\s*<.*>\s*)?(?P<kind>class|struct|enum class|enum|union|namespace|extern \"C\")\b(?P<rest>[^;=(]*)\{")
FUNCTION = re.compile(r"^(?P<indent>\s*)(?!return\b|using\b|typedef\b|friend\b|static_assert\b|else\b|if\b|for\b|while\b|switch\b|case\b|#|\})"
                      r"(?:\[\[[^\]]*\]\]\s*)?(?P<type>[\w:<>,&*\s\[\]]*?[\s&*>])?(?P<name>~?\w+)\((?P<rest>.*)$")
# Names whose meaning the standard library or every message of the format gives.
NAMED_BY_STANDARD = ("lock", "unlock", "try_lock", "Visit")
OBVIOUS = re.compile(r"= (?:default|delete);|\boverride\b|\bfinal\b;|^\s*[A-Z]\w*\(\);")


def headers():
    listed = subprocess.run(["git", "ls-files", *(f"{folder}/*.h" for folder in FOLDERS), "include/*.hpp"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    return [name for name in sorted(set(listed)) if not LEFT_OUT.search(name)]


def public_declarations(text):
    """(line index, what, name) of each public class and function at namespace or class scope."""
    lines = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda m: '"' + "x" * (len(m.group()) - 2) + '"', text).split("\n")
    scopes = []  # (kind, name, is it public now) of each brace; other braces are "code"
    found, index = [], 0
    hidden = 0
    while index < len(lines):
        code = re.sub(r"//.*", "", lines[index])
        code = re.sub(r"/\*.*?\*/", "", code)
        if "/*" in code:
            while "*/" not in lines[index]:
                index += 1
            index += 1
            continue
        if code.lstrip().startswith("#"):
            while code.rstrip().endswith("\\"):
                index += 1
                code = lines[index]
            index += 1
            continue
        first = index
        in_code = any(kind == "code" for kind, _, _ in scopes)
        access = re.match(r"\s*(public|protected|private):", code)
        if access and scopes:
            scopes[-1] = (*scopes[-1][:2], access[1] == "public")
            index += 1
            continue
        if not in_code and code.strip():
            # The whole declaration, up to its end or its body.
            whole = code
            while not re.search(r"[;{}]", whole) and index + 1 < len(lines):
                index += 1
                whole += " " + re.sub(r"//.*", "", lines[index]).strip()
            public = all(shown for _, _, shown in scopes)
            opens = OPENS.match(whole)
            function = None if opens else FUNCTION.match(whole)
            if opens and opens["kind"] in ("class", "struct", "enum class", "enum", "union"):
                name = re.findall(r"\w+", re.sub(r"alignas\([^)]*\)|\[\[.*?\]\]|:.*|\bfinal\b", "", opens["rest"]))
                if public and name:
                    found.append((first, opens["kind"], name[-1]))
            elif function and function["name"] and public and (function["type"] or scopes and function["name"] == scopes[-1][1]):
                if not re.fullmatch(r"(?:DEJA_\w+|alignas|decltype|noexcept|operator)", function["name"]) and " operator" not in whole and "operator" not in (function["type"] or ""):
                    found.append((first, "function", function["name"] + "|" + whole))
            code = whole
            opened = opens
        else:
            opened = None
        for sign in re.findall(r"[{}]", code):
            if sign == "{":
                if opened:
                    name = re.findall(r"\w+", re.sub(r"alignas\([^)]*\)|:.*|\bfinal\b", "", opened["rest"]))
                    anonymous = opened["kind"] == "namespace" and not name
                    scopes.append((opened["kind"], name[-1] if name else "", opened["kind"] != "class" and not anonymous and name[-1:] != ["internal"]))
                    opened = None
                else:
                    scopes.append(("code", "", True))
            elif scopes:
                scopes.pop()
        index += 1
    return found


def head_of(text):
    """The comment at the head of the file: lines of // or a block."""
    found = re.match(r"(?:\s*//[^\n]*\n)+|\s*/\*(?:.|\n)*?\*/", text)
    return found.group() if found else ""


def line_of_end(lines, at):
    """The line on which the body of the function at `at` ends; -1 if it has none."""
    depth, opened = 0, False
    for number in range(at, len(lines)):
        depth += lines[number].count("{") - lines[number].count("}")
        opened = opened or "{" in lines[number]
        if opened and depth == 0:
            return number
        if not opened and ";" in lines[number]:
            return -1
    return -1


def has_comment(lines, at):
    """Above the line, in it, or above the group of lines that it is in."""
    if "//" in lines[at] or "/*" in lines[at]:
        return True
    if at + 1 < len(lines) and lines[at + 1].lstrip().startswith("//") and len(lines[at + 1]) - len(lines[at + 1].lstrip()) > 20:
        return True
    above = at - 1
    while above >= 0 and re.match(r"\s*(?:template\b|\[\[|requires\b|#)", lines[above]):
        above -= 1
    while above >= 0 and lines[above].strip():
        stripped = lines[above].strip()
        if stripped.startswith(("//", "/*", "*")) or stripped.endswith("*/"):
            return True
        if re.match(r"(?:class|struct|namespace|public:|private:|protected:|extern).*[{:]$", stripped):
            return False
        above -= 1
    return False


def missing(name, text):
    lines = text.split("\n")
    head = head_of(text)
    problems = []
    for number, (at, what, who) in enumerate(public_declarations(text)):
        label, _, whole = who.partition("|")
        if what in ("struct", "union", "enum", "enum class"):
            continue
        end = line_of_end(lines, at)
        statements = sum(";" in line for line in lines[at:end + 1])
        if what == "function" and (OBVIOUS.search(whole) or label.startswith("~") or label in NAMED_BY_STANDARD or end >= 0 and statements <= 1):
            continue
        if head and (number == 0 or re.search(rf"\b{label}\b", head)):
            continue
        if not has_comment(lines, at):
            problems.append(f"{name}:{at + 1}: {what} {label}: no comment; say what it takes and gives")
    return problems


def main():
    chosen = [str(pathlib.Path(a).resolve().relative_to(ROOT)) for a in sys.argv[1:]] or headers()
    problems = []
    for name in chosen:
        problems += missing(name, (ROOT / name).read_text(encoding="utf-8"))
    print("\n".join(problems) if problems else f"{len(chosen)} headers: nothing found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
