#!/usr/bin/env bash
# clang-tidy over the product's sources, with the dev build's compile commands. Arguments: files, or none for all.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-tidy-14 || command -v clang-tidy-18 || command -v clang-tidy)
[ -f build/compile_commands.json ] || cmake --preset dev >/dev/null
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(git ls-files 'common/*.cc' 'format/*.cc' 'preload/*.cc' 'recorder/*.cc' 'replayer/*.cc' \
    'loopback/*.cc' 'cli/*.cc')
fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 "$tool" -p build --quiet 2> >(grep -v 'warnings generated\|^$' >&2)
