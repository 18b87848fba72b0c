"""The rows of the API tables (api/tables/*.def), for the tests of names."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "api" / "tables"


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def rows(name, macro, prefix):
    """Names that begin with `prefix` in the table's rows of this macro."""
    text = without_comments((API / name).read_text())
    skip = r"[^,]+,[^,]+," if macro == "DEJA_FN" else ""
    return re.findall(macro + r"\(" + skip + r"\s*(" + prefix + r"\w+)\s*,", text)


def check_reasons(test, name, functions):
    text = (API / name).read_text()
    for function in functions:
        test.assertRegex(text, rf'DEJA_FORWARD\({function}, \d+,\s+"[^"]{{10,}}"\)')
