#!/usr/bin/env bash
# old_root.sh FOLDER: a root folder with nothing but the C library of Debian 11 (glibc 2.31). Fetched by apt from this
# machine's Debian mirror. Exits 77 and says why where that cannot be had. Nothing else of apt's changes.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
cannot() { echo "old_root.sh: $*" >&2; exit 77; }
command -v apt-get >/dev/null && command -v dpkg >/dev/null || cannot "this is no Debian"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || cannot "$keys: there is no such file; this is no Debian"
mirror=$(sed -n -E 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' \
  $(ls /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null) | head -n 1)
[ -n "$mirror" ] || cannot "apt has no source"

mkdir -p "$1"
root=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
printf 'deb [signed-by=%s] %s bullseye main\n' "$keys" "$mirror" >"$work/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
  -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
cd "$work"
{ "${apt[@]}" update && "${apt[@]}" download libc6/bullseye libgcc-s1/bullseye; } >"$work/log" 2>&1 ||
  cannot "fetching Debian 11's libc6: $(tail -n 1 "$work/log")"
for package in *.deb; do dpkg -x "$package" "$root"; done
mkdir -p "$root/proc" "$root/dev"
