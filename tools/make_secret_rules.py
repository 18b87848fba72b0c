#!/usr/bin/env python3
"""Makes the table of forms of secrets (common/secrets/secret_forms.inc) of the rules in common/secrets/secret_rules.

    tools/make_secret_rules.py            prints it
    tools/make_secret_rules.py --write    writes it to its place

Rules are regular expressions as gitleaks writes them (RE2's syntax). Each becomes one or several sequences of sets of
characters, "one of this set, so often to so often", which common/secrets/secret_forms.cc matches without a regular
expression's engine. A rule that asks for a name in front of the value (`adafruit… = VALUE`) becomes a form of values
with that name. What cannot be expressed is an error.
"""
import argparse
import itertools
import re
import sys
import tomllib
from pathlib import Path

try:
    from re import _constants as sre
    from re import _parser as sre_parser
except ImportError:  # before Python 3.11
    import sre_constants as sre
    import sre_parse as sre_parser

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "common" / "secrets" / "secret_rules"
OUTPUT = ROOT / "common" / "secrets" / "secret_forms.inc"

MOST = 0xffff  # of repetitions without an upper limit
ALTERNATIVES = 64
# What gitleaks puts around a token, to say that it ends there; a longer run of the same characters is masked, too.
ENDS = [r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"""(?:$|[\\'"\x60\s<),])""", r"""(?:[^\w-]|\z)""",
        r"""(?:[^a-zA-Z0-9+/]|\z)"""]
STARTS = [r"""(?:^|[\\'"\x60\s>=:(,)])"""]
NAMED_START = re.compile(r"^(\(\?i\))?(?:\[\\w\.-\]\{0,50\}\?)(?:\(\?i:\[\\w\.-\]\{0,50\}\?)?")
NAMED_MIDDLE = r"""[\x60'"\s=]{0,5}"""
CLASSES = {sre.CATEGORY_DIGIT: r"0123456789", sre.CATEGORY_SPACE: " \t\n\r\f\v"}
WORD = set("_") | {chr(c) for c in range(128) if chr(c).isalnum()}
ASCII = {chr(c) for c in range(128)}


class Piece:
    """Characters of a set, from `least` to `most` times; a group's number if it is (a part of) a group."""
    def __init__(self, chars, least, most, group):
        self.chars, self.least, self.most, self.group = frozenset(chars), least, most, group


def scoped_flags(text):
    """RE2's (?i) in the middle holds to the end of its group; Python wants a group of its own."""
    at = text.find("(?i)")
    if at < 0:
        return text
    depth, end = 0, len(text)
    i = at + 4
    in_class = False
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 2
            continue
        if in_class:
            in_class = c != "]"
        elif c == "[":
            in_class = True
        elif c == "(":
            depth += 1
        elif c == ")":
            if depth == 0:
                end = i
                break
            depth -= 1
        i += 1
    return scoped_flags(text[:at] + "(?i:" + text[at + 4:end] + ")" + text[end:])


def as_python(text):
    return scoped_flags(text.replace("[:alnum:]", "A-Za-z0-9").replace(r"\z", r"\Z"))


def folded(chars):
    return {c for char in chars for c in (char.lower(), char.upper()) if c in ASCII}


def set_of(items, ignore_case):
    chars, negated = set(), False
    for op, value in items:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            chars.add(chr(value))
        elif op is sre.RANGE:
            chars |= {chr(c) for c in range(value[0], min(value[1], 127) + 1)}
        elif op is sre.CATEGORY and value is sre.CATEGORY_WORD:
            chars |= WORD
        elif op is sre.CATEGORY and value is sre.CATEGORY_NOT_SPACE:
            chars |= ASCII - set(CLASSES[sre.CATEGORY_SPACE])
        elif op is sre.CATEGORY:
            chars |= set(CLASSES[value])
        else:
            raise ValueError(f"a set with {op}")
    if ignore_case:
        chars = folded(chars)
    return ASCII - chars if negated else chars


def sequences(parsed, ignore_case, group):
    """All alternatives of what was parsed: lists of pieces."""
    result = [[]]

    def append(alternatives):
        nonlocal result
        result = [a + b for a, b in itertools.product(result, alternatives)]
        if len(result) > ALTERNATIVES:
            raise ValueError("too many alternatives")

    for op, value in parsed:
        if op is sre.AT:
            continue  # a boundary: `word` in the table
        if op is sre.LITERAL:
            chars = {chr(value)}
            append([[Piece(folded(chars) if ignore_case else chars, 1, 1, group)]])
        elif op is sre.NOT_LITERAL:
            append([[Piece(ASCII - {chr(value)}, 1, 1, group)]])
        elif op is sre.ANY:
            append([[Piece(ASCII - {"\n"}, 1, 1, group)]])
        elif op is sre.IN:
            append([[Piece(set_of(value, ignore_case), 1, 1, group)]])
        elif op is sre.BRANCH:
            append([s for branch in value[1] for s in sequences(branch, ignore_case, group)])
        elif op is sre.SUBPATTERN:
            number, add, remove, inner = value
            inner_case = (ignore_case or bool(add & re.IGNORECASE)) and not remove & re.IGNORECASE
            append(sequences(inner, inner_case, group if group else number))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inner = value
            most = MOST if most is sre.MAXREPEAT else int(most)
            inner = sequences(inner, ignore_case, group)
            if len(inner) == 1 and len(inner[0]) == 1 and inner[0][0].least == inner[0][0].most == 1:
                append([[Piece(inner[0][0].chars, least, most, group)]])
            else:  # a group this many times
                append([list(itertools.chain.from_iterable(each)) for times in range(least, most + 1)
                        for each in itertools.product(inner, repeat=times)])
        else:
            raise ValueError(f"{op} is not supported")
    return result


def merged(pieces):
    """Neighbours with the same characters as one piece."""
    result = []
    for piece in pieces:
        last = result[-1] if result else None
        if last and last.chars == piece.chars and last.group == piece.group:
            last.least += piece.least
            last.most = min(MOST, last.most + piece.most)
        elif piece.most > 0:
            result.append(Piece(piece.chars, piece.least, piece.most, piece.group))
    return result


def take_ends(text):
    for end in ENDS:
        if text.endswith(end):
            return text[:-len(end)]
        if text.endswith(end + ")"):
            return text[:-len(end) - 1] + ")"
    return text


def names_of(text):
    """The names, in small letters, in the part of a named rule in front of its operator."""
    text = text[:text.index(r"(?:[ \t\w.-]{0,20})")]
    parsed = sre_parser.parse(as_python(text), re.IGNORECASE)
    names = set()
    for pieces in sequences(parsed, True, None):
        for repeats in itertools.product(*[range(p.least, p.most + 1) for p in pieces]):
            for letters in itertools.product(*[sorted({c.lower() for c in p.chars}) for p in pieces]):
                names.add("".join(c * n for c, n in zip(letters, repeats)))
    names = {name.rstrip(",") for name in names}
    return sorted(name for name in names if not any(other in name for other in names - {name}))


class Tables:
    def __init__(self):
        self.sets, self.pieces, self.forms, self.named, self.runs = {}, [], [], [], {}

    def run_of(self, pieces):
        """Where the table of pieces has this sequence."""
        key = tuple((self.sets.setdefault(p.chars, len(self.sets)), p.least, p.most) for p in pieces)
        if key not in self.runs:
            self.runs[key] = len(self.pieces)
            self.pieces += key
        return self.runs[key]

    def add(self, rule, pattern, names, word, digit):
        for pieces in sequences(sre_parser.parse(pattern), False, None):
            pieces = merged(pieces)
            marked = [i for i, piece in enumerate(pieces) if piece.group]
            first, last = (marked[0], marked[-1]) if marked else (0, len(pieces) - 1)
            form = (rule, self.run_of(pieces), len(pieces), first, last + 1, word, digit)
            if names:
                self.named += [(name, form) for name in names]
            else:
                self.forms.append((pieces[0].chars, form))


def read_rules(tables):
    for file in ("own.toml", "gitleaks.toml"):
        for rule in tomllib.loads((RULES / file).read_text())["rules"]:
            regex = rule["regex"]
            names = []
            for start in STARTS:
                if regex.startswith(start):
                    regex = r"\b" + regex[len(start):]
            named = NAMED_START.match(regex)
            try:
                if named:
                    before, value = regex.split(NAMED_MIDDLE, 1)
                    names = names_of(before[named.end():])
                    # (?i) at the beginning holds for the value; (?i: only for the name.
                    regex = (named.group(1) or "") + value
                word = r"\b" in regex
                tables.add(rule["id"], as_python(take_ends(regex)), names, word, rule.get("digit", False))
            except (ValueError, re.error) as error:
                sys.exit(f"{file}: {rule['id']}: {error}: {regex}")


def by_first(entries):
    """For each ASCII character the entries that may begin with it, one list after the other, and where each begins."""
    flat, begins = [], []
    for code in range(128):
        begins.append(len(flat))
        flat += [i for i, chars in enumerate(entries) if chr(code) in chars]
    return flat, begins + [len(flat)]


def numbers(values, per_line=16):
    lines = [", ".join(str(v) for v in values[i:i + per_line]) for i in range(0, len(values), per_line)]
    return "\n".join(f"    {line}," for line in lines)


def rows(values):
    return "\n".join(f"    {value}," for value in values)


def mask(chars):
    bits = [0, 0]
    for char in chars:
        bits[ord(char) // 64] |= 1 << ord(char) % 64
    return f"{{{bits[0]:#x}u, {bits[1]:#x}u}}"


def form_row(form):
    rule, at, count, first, end, word, digit = form
    return f'{{"{rule}", {at}, {count}, {first}, {end}, {str(word).lower()}, {str(digit).lower()}}}'


def make():
    tables = Tables()
    read_rules(tables)
    # Each name once, with all its forms: those of a name lie one after the other.
    tables.named.sort(key=lambda pair: pair[0])
    form_list, form_begins = by_first([chars for chars, _ in tables.forms])
    name_list, name_begins = by_first([{name[0]} for name, _ in tables.named])
    pieces = [f"{{{s}, {least}, {most}}}" for s, least, most in tables.pieces]
    named = [f'{{"{name}", {form_row(form)}}}' for name, form in tables.named]
    return f"""// Made by tools/make_secret_rules.py of common/secrets/secret_rules; see there for the licence of the rules.
// clang-format off
constexpr FormSet kFormSets[] = {{
{rows(mask(chars) for chars in tables.sets)}
}};
constexpr FormPiece kFormPieces[] = {{
{numbers(pieces, 8)}
}};
constexpr Form kForms[] = {{
{rows(form_row(form) for _, form in tables.forms)}
}};
constexpr uint16_t kFormsByFirst[] = {{
{numbers(form_list)}
}};
constexpr uint16_t kFormsBegin[] = {{
{numbers(form_begins)}
}};
constexpr NamedForm kNamedForms[] = {{
{rows(named)}
}};
constexpr uint16_t kNamesByFirst[] = {{
{numbers(name_list)}
}};
constexpr uint16_t kNamesBegin[] = {{
{numbers(name_begins)}
}};
// clang-format on
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        OUTPUT.write_text(make())
    else:
        sys.stdout.write(make())


if __name__ == "__main__":
    main()
