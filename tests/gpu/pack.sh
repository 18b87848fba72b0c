#!/usr/bin/env bash
# pack.sh FOLDER: Deja, the programs of its GPU checks and run.sh in one folder. The machine it is copied to needs
# glibc, bash and Python, and (for anything but --simulated) a CUDA driver and NCCL. From the build tree DEJA_BUILD_DIR
# (build/ of the checkout), which must be built.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${DEJA_BUILD_DIR:-$root/build}
out=$1
limit=$((64 * 1024 * 1024))
[ ! -e "$out" ] || [ -z "$(ls -A "$out")" ] || { echo "pack.sh: $out is not empty" >&2; exit 1; }

cmake --install "$build" --prefix "$out" --strip >/dev/null
cmake --install "$build" --prefix "$out" --strip --component gpu >/dev/null
install -s "$build/tests/gpu/deja" "$out/bin/deja"
rm "$out/lib/deja/libdeja_read.so"  # for deja.trace, which no check uses: it wants libraries of its own

# Benchmarks are in the release build, if there is one.
for program in "$build/bin/digest_bandwidth" "$root/build-release/bin/digest_bandwidth"; do
  if [ -x "$program" ]; then
    install -s "$program" "$out/tests/apps/digest_bandwidth"
    break
  fi
done

# What the command line and programs need beside glibc. Found through the build's own links, so that it is what it was
# tested with. The compiler's own libraries apart: they are for machines that have none (machine.py), and want a glibc
# as new as here.
mkdir -p "$out/lib/carried/gcc"
libraries=$(ldd "$build/tests/gpu/deja" "$build/lib/libdeja_record.so" "$build/tests/apps/cuda_digits" |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|ld-linux-x86-64|libcuda|libnccl)\.so' | sort -u)
for library in $libraries; do
  case $library in
  */libstdc++.so.* | */libgcc_s.so.*) cp -L "$library" "$out/lib/carried/gcc/" ;;
  *) cp -L "$library" "$out/lib/carried/" ;;
  esac
done

mkdir -p "$out/tests/e2e/apps"
cp "$root"/tests/e2e/{harness,check_log,stuck,device_jobs,digits}.py "$out/tests/e2e/"
cp -r "$root/tests/e2e/apps/torch" "$out/tests/e2e/apps/"
cp -r "$root/tests/gpu" "$out/tests/"
find "$out" -name __pycache__ -exec rm -rf {} +
cat >"$out/run.sh" <<'EOF'
#!/usr/bin/env bash
exec "$(dirname "${BASH_SOURCE[0]}")/tests/gpu/run.sh" "$@"
EOF
chmod +x "$out/run.sh"

size=$(du -sb "$out" | cut -f1)
needed=$({ objdump -T "$out"/bin/deja "$out"/lib/deja/*.so "$out"/lib/carried/*.so* "$out"/tests/apps/* "$out"/tests/cuda/* \
  2>/dev/null || true; } | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
echo "$out: $((size / 1024)) KiB; needs $needed"
[ "$size" -le "$limit" ] || { echo "pack.sh: that is more than $((limit / 1024)) KiB" >&2; exit 1; }
