#!/usr/bin/env bash
# Installs what is missing, builds, tests. Without an option: what every contributor runs before a push, the everyday
# build and all its tests, in 20 minutes on two processors.
#
#   --quick    unit and conformance tests alone
#   --all      also the sanitizers, clang, the fuzzers, the release build with its benchmarks, the wheel with the demo
#              run from it, the newest torch, clang-tidy on what changed: what continuous integration runs
#   --nightly  also clang-tidy on everything, each source compiled by itself, 1,000 kills, an hour a fuzzer, each replay 100 times
#
# What runs, and what it may cost, is in docs/TESTING.md.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:---push}" in
  --quick | --push | --all | --nightly) ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
tools/setup.sh --tests
exec tools/run_steps.py "${1:---push}"
