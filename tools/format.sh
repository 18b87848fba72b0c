#!/usr/bin/env bash
# Formats the C and C++ sources with clang-format 14, also those that git does not have yet; --check only says what it
# would change.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.c' '*.cu')
if [ "${1:-}" = --check ]; then
  "$tool" --dry-run --Werror "${files[@]}"
else
  "$tool" -i "${files[@]}"
fi
