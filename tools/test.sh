#!/usr/bin/env bash
# Installs what is missing, builds, runs every test. `tools/test.sh --quick` runs the everyday build's tests only.
#
# In order: formatting; the dev build with all labels (unit, conformance, e2e, crash, golden, fuzz, gpu); the
# sanitizer builds with what can run under them; the release build, and whether the benchmarks run; the clang build with
# the tests that need no processes; the fuzzers, 20 seconds each; clang-tidy. The last line counts the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=
[ "${1:-}" = --quick ] && quick=1
jobs=${DEJA_JOBS:-$(nproc)}
failed=()
reports=()  # of runs in which a test failed
rm -f build-failed.log
# Tests do not care where the sources were when an object was compiled: checkouts share the compiler's cache.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

step() { printf '\n== %s\n' "$*"; }
run() {  # name command…: remembers a failure and goes on, so that one run shows all of them
  local name=$1
  shift
  step "$name"
  "$@" || failed+=("$name")
}
first_of() { for c in "$@"; do command -v "$c" && return; done; echo "$1"; }

step "packages"
tools/setup.sh --tests
clangxx=$(first_of clang++-14 clang++-18 clang++)
clangc=$(first_of clang-14 clang-18 clang)

build() {  # preset [configure options…]
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >"build-$preset.log" 2>&1 || { cat "build-$preset.log"; return 1; }
  cmake --build --preset "$preset" -j "$jobs"
}
passed=0 bad=0 skipped=0
count() {  # report: adds its counts
  local p f s
  read -r p f s < <(tools/test_report.py "$1" --counts)
  passed=$((passed + p)) bad=$((bad + f)) skipped=$((skipped + s))
}
tests() {  # preset: its tests, counted, with the reason of each that was skipped
  # What fails is run again, alone. If it then passes it is named as unstable, which is a bug to be found, but not one
  # of the change that is being tested.
  local report="$PWD/build-$1.xml" again="$PWD/build-$1-again.xml" rc=0 first=$bad
  rm -f "$report" "$again"
  ctest --preset "$1" -j "$jobs" --test-output-size-passed 1000000 --output-junit "$report" || rc=$?
  [ -f "$report" ] || return 1
  count "$report"
  tools/test_report.py "$report" --skipped
  [ "$rc" -ne 0 ] || return 0
  reports+=("$report")
  ctest --preset "$1" --rerun-failed -j 1 --output-junit "$again" && rc=0
  [ -f "$again" ] || return 1
  bad=$first
  count "$again"
  reports+=("$again")
  [ "$rc" -ne 0 ] || printf 'UNSTABLE: these passed only when they ran alone:%s\n' \
    "$(grep -o '<testcase name="[^"]*"' "$again" | cut -d'"' -f2 | sed 's/^/ /' | tr -d '\n')"
  return $rc
}
build_and_test() { build "$@" && tests "$1"; }
finish() {
  local report
  for report in "${reports[@]}"; do
    step "$(basename "$report" .xml)"
    tools/test_report.py "$report" --failed | tee -a build-failed.log
  done
  # Their names again, at the end, where whoever sees only the last lines finds them.
  grep -s '^failed:' build-failed.log || true
  if [ ${#failed[@]} -gt 0 ]; then printf '\nFAILED: %s\n' "$(IFS=,; echo "${failed[*]}")"; fi
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$bad" "$skipped"
  [ ${#failed[@]} -eq 0 ]
}

run "formatting" tools/format.sh --check
run "dev: build" build dev
run "dev: tests" tests dev
if [ -z "$quick" ]; then
  run "asan" build_and_test asan
  run "tsan" build_and_test tsan
  run "release, benchmarks" build_and_test release
  run "clang" build_and_test clang "-DCMAKE_C_COMPILER=$clangc" "-DCMAKE_CXX_COMPILER=$clangxx"
  run "fuzz" build_and_test fuzz "-DCMAKE_C_COMPILER=$clangc" "-DCMAKE_CXX_COMPILER=$clangxx"
  run "clang-tidy" tools/tidy.py
fi

finish
