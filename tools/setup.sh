#!/usr/bin/env bash
# Installs the packages of tools/packages.txt that are missing. Silent and instant when none is.
# --tests: also those that only tests need, as far as there are any.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \(.*\)$/\1/p' | grep -v '(none)')" ]; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

tests=
[ "${1:-}" = --tests ] && tests=1
missing=()
while read -r line; do
  line=${line%%#*}
  line=${line//[[:space:]]/}
  [ -n "$line" ] || continue
  [[ $line != *\? ]] || [ -n "$tests" ] || continue
  IFS='|' read -r -a names <<<"${line%\?}"
  found=
  for name in "${names[@]}"; do installed "$name" && found=1; done
  [ -n "$found" ] || missing+=("$line")
done <"$here/packages.txt"
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || {
  echo "setup: these packages are missing and this is not a Debian or Ubuntu system: ${missing[*]}" >&2
  exit 1
}
echo "setup: installing ${missing[*]}" >&2
as_root apt-get update -qq
install=()
for line in "${missing[@]}"; do
  IFS='|' read -r -a names <<<"${line%\?}"
  chosen=
  for name in "${names[@]}"; do
    if available "$name"; then chosen=$name; break; fi
  done
  [ -n "$chosen" ] || [[ $line != *\? ]] || continue
  [ -n "$chosen" ] || { echo "setup: no package of $line is to be had here" >&2; exit 1; }
  install+=("$chosen")
done
[ ${#install[@]} -gt 0 ] || exit 0
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${install[@]}" >/dev/null
