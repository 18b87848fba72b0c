#!/usr/bin/env bash
# The story of Deja in two minutes: a training job fails somewhere else each time it is run; Deja records it, and
# from then on one rank of it fails at the same place as often as one likes, alone, in a debugger.
#
# Installs what is missing, builds, and checks every claim it prints: exits 1 when one does not hold. What it
# recorded stays in build/demo. `tools/demo.sh DEJA FOLDER`: with an installed Deja; the trainer alone is built.
set -euo pipefail
deja=${1:+$(realpath -s "$1")}
demo=${2:+$(realpath -m "$2")}
cd "$(dirname "$0")/.."
root=$PWD
jobs=${DEJA_JOBS:-$(nproc)}
targets=digits_train
if [ -z "$deja" ]; then
  deja=$root/build/bin/deja
  targets+=" deja deja_record deja_replay deja_loopback"
fi
demo=${demo:-$root/build/demo}
train=$root/build/examples/digits/digits_train
ranks=4
replays=10
tries=6
# As in test.sh: checkouts share the compiler's cache.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

heading() { printf '\n== %s\n\n' "$*"; }
show() { printf '$ %s\n' "$*"; }
claim_failed() { printf '\nFAILED: %s\n' "$*" >&2; exit 1; }
# json FILE EXPRESSION: the value of a Python expression about the document `d` (the last one in the file).
json() {
  python3 - "$@" <<'PYTHON'
import json, sys
text = open(sys.argv[1]).read()
d, at = None, text.find("{")
while at >= 0:
    try:
        d, end = json.JSONDecoder().raw_decode(text, at)
        at = text.find("{", end)
    except ValueError:
        at = text.find("{", at + 1)
if d is None:
    sys.exit(f"no JSON in {sys.argv[1]}:\n{text}")
print(eval(sys.argv[2], {"d": d}))
PYTHON
}

heading "Packages and build"
tools/setup.sh
mkdir -p build
{ cmake --preset dev && cmake --build build -j "$jobs" --target $targets; } \
  >build/demo-build.log 2>&1 || { tail -n 40 build/demo-build.log; claim_failed "the build; see build/demo-build.log"; }
echo "$("$deja" --version), $deja"
rm -rf "$demo"
mkdir -p "$demo"
cd "$demo"

heading "Without Deja: the same job three times, and never the same"
echo "A trainer with $ranks ranks, unseeded. Its loader has a bug that shows for one random number in 36,000."
show "deja launch -n $ranks -- digits_train --fault=crash"
outcomes=
for run in 1 2 3; do
  code=0
  "$deja" launch -n "$ranks" --json -- "$train" --fault=crash --log-every=1 >launch.log 2>launch.err || code=$?
  step=$(sed -n 's/^step \([0-9]*\) .*/\1/p' launch.log | tail -n 1)
  case $code in
    0) outcome="ends well after ${step:-0} steps" ;;
    139) outcome="SIGSEGV on rank $(json launch.log "next(r['rank'] for r in d['ranks'] if r['signal'] == 11)") after ${step:-0} steps" ;;
    *) cat launch.err; claim_failed "the job ended with exit code $code" ;;
  esac
  echo "run $run: $outcome"
  outcomes+="$outcome"$'\n'
done
[ "$(sort -u <<<"${outcomes%$'\n'}" | wc -l)" -gt 1 ] || claim_failed "three runs that were all the same"

heading "Recorded: until it fails"
trace=run.deja
for ((try = 1; ; ++try)); do
  [ "$try" -le "$tries" ] || claim_failed "no failure in $tries recorded runs"
  show "deja record --loopback -n $ranks --out $trace -- digits_train --fault=crash"
  code=0
  "$deja" record --loopback -n "$ranks" --force --out "$trace" -- "$train" --fault=crash || code=$?
  [ "$code" = 0 ] || break
  echo "(no failure this time)"
done
[ "$code" = 139 ] || claim_failed "the recorded job ended with exit code $code instead of a SIGSEGV"

heading "What was recorded"
show "deja info $trace"
"$deja" info "$trace"
"$deja" info "$trace" --json >info.json
rank=$(json info.json "next((r['rank'] for r in d['ranks'] if 'crash' in r), '')")
[ -n "$rank" ] || claim_failed "deja info knows of no crash"
ended=$(json info.json "next(r['ended'] for r in d['ranks'] if r['rank'] == $rank)")
place=$(grep -o 'sampler\.cc:[0-9]*' <<<"$ended" | head -n 1) || claim_failed "rank $rank's end names no line: $ended"

heading "Rank $rank again, alone, $replays times"
show "deja replay $trace --rank $rank"
for ((i = 1; i <= replays; ++i)); do
  "$deja" replay "$trace" --rank "$rank" --json >"replay-$i.json" 2>replay.err ||
    { cat "replay-$i.json" replay.err; claim_failed "replay $i did not end as the recorded run"; }
  echo "replay $i: $(json "replay-$i.json" "d['ranks'][0]['summary']")"
  cmp -s replay-1.json "replay-$i.json" || claim_failed "replay $i differs from the first: see $demo/replay-$i.json"
done
[ "$(json replay-1.json "d['ranks'][0]['verdict']")" = same ] || claim_failed "the replays are not as recorded"
[ "$(json replay-1.json "d['ranks'][0]['digests_different']")" = 0 ] || claim_failed "the replays' data differ"
grep -q "$place" replay-1.json || claim_failed "the replays do not end at $place"
echo "$replays of $replays: the same place, the same bytes."

heading "In gdb, stopped at the fault, the recorded stack beside the live one"
show "deja replay $trace --rank $rank --gdb"
"$deja" replay "$trace" --rank "$rank" --gdb --gdb-command 'deja until end' --gdb-command 'backtrace 4' \
  --gdb-command 'print draw_' --gdb-command 'deja recorded-stack' >gdb.log 2>&1 ||
  { cat gdb.log; claim_failed "the gdb session"; }
cat gdb.log
grep -q 'SIGSEGV' gdb.log || claim_failed "gdb did not stop at the SIGSEGV"
grep -q 'contrast = -' gdb.log || claim_failed "gdb does not show the number that the loader drew"
[ "$(grep -c "$place" gdb.log)" -ge 2 ] || claim_failed "gdb does not show $place in both stacks"

heading "Packed, to be attached to a bug report"
show "deja pack $trace"
"$deja" pack "$trace"
"$deja" replay "$trace.zip" --rank "$rank" --json >bundle.json 2>replay.err ||
  { cat bundle.json replay.err; claim_failed "the bundle does not replay"; }
[ "$(json bundle.json "d['ranks'][0]['summary']")" = "$(json replay-1.json "d['ranks'][0]['summary']")" ] ||
  claim_failed "the bundle replays differently"
echo "$trace.zip: $(du -h --apparent-size "$trace.zip" | cut -f 1), replays like the directory. Both are in $demo."

heading "All of it held"
