#!/usr/bin/env bash
# Deja on a machine with a GPU: every check one line, then a count. See README.md here, and --help.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$here/run.py" "$@"
