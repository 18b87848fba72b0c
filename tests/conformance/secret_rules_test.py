"""The table of forms of secrets is what its rules give, and each rule of the lists is in it."""
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import make_secret_rules  # noqa: E402


def main():
    text = make_secret_rules.OUTPUT.read_text()
    if text != make_secret_rules.make():
        sys.exit(f"{make_secret_rules.OUTPUT.relative_to(ROOT)} is not what common/secrets/secret_rules gives: "
                 "tools/make_secret_rules.py --write")
    in_table = set(re.findall(r'\{"([\w-]+)", \d+', text))
    for file in ("own.toml", "gitleaks.toml"):
        rules = [rule["id"] for rule in tomllib.loads((make_secret_rules.RULES / file).read_text())["rules"]]
        missing = set(rules) - in_table
        if missing or len(rules) != len(set(rules)):
            sys.exit(f"{file}: not in the table, or twice: {sorted(missing)}")
    licence = (make_secret_rules.RULES / "gitleaks.toml").read_text()
    if "MIT License" not in licence or "Copyright (c) 2019 Zachary Rice" not in licence:
        sys.exit("the licence of gitleaks' rules is not with them")
    print(f"{len(in_table)} rules")


if __name__ == "__main__":
    main()
