#!/usr/bin/env bash
# The bundle's runner (scripts/gpu/run) on a bundle and a GPU that are shell scripts: gpu_run_test.sh ROOT. What passes,
# fails, is skipped or does not end is told apart, and the table has it.
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIPPED: there is no python3"; exit 77; }
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle="$work/a bundle" programs="$work/programs" tools="$work/tools" out="$work/out"
mkdir -p "$bundle/data/source" "$programs" "$tools"
cp "$root"/scripts/gpu/{run,*.py} "$bundle/"
echo '{"version": "1.2.3", "commit": "abc", "built": "2026-01-01", "nvcc": "CUDA 13.0"}' >"$bundle/bundle.json"
touch "$bundle/limits.cu"
failed=0

# script FILE: from standard input.
script() {
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
# expect TEXT FILE
expect() {
  grep -qF -- "$1" "$2" || { printf 'not in %s: %s\n' "$(basename "$2")" "$1"; failed=1; }
}
# ends STATUS ARGUMENT...: of the runner.
ends() {
  local status=0 wanted=$1
  shift
  "$bundle/run" "$@" >"$work/said" 2>&1 || status=$?
  ((status == wanted)) || { echo "run $*: status $status, expected $wanted"; cat "$work/said"; failed=1; }
}

script "$programs/test_cuda_other" <<'S'
[[ $TESSERA_TEST_CUDA == device && -d $TESSERA_TEST_SOURCE ]] || exit 3
case $1 in
  --list-test-names-only) printf 'what works, always\nwhat fails\nwhat is skipped\nwhat nobody knows\nwhat is not for a device\n'; exit 5 ;;
  'what works\, always') echo 'All tests passed (2 assertions in 1 test case)' ;;
  'what is skipped') exit 77 ;;
  'what nobody knows') echo 'No tests ran' ;;
  'what is not for a device') printf 'test cases: 1 | 1 passed\nassertions: - none -\n' ;;
  *) echo "expected 1 | got 2"; exit 1 ;;
esac
S
script "$programs/test_cuda_small" <<'S'
case $1 in
  --list-test-names-only) printf 'small: good\nsmall: bad\n'; exit 2 ;;
  *) echo 'All tests passed (2 assertions in 1 test case)' ;;
esac
S
script "$programs/tessera-bench" <<'S'
[[ " $* " == *" --limits 3000.5,700.1 "* ]] || { echo "tessera-bench: no limits"; exit 1; }
echo '{"test": "decode", "rows": 1, "depth": 0, "tokens_per_s": 123.4, "min": 120.0, "max": 130.0, "gb_per_s": 1500.0,
"pct_read_bandwidth": 50.0, "tflop_per_s": 0.5, "pct_matrix_peak": null, "family": "cuda-blas"}' | tr -d '\n'
echo
S
script "$tools/nvidia-smi" <<'S'
case "$*" in
  *ecc*) exit 1 ;;
  *=clocks.max.sm*) echo 1980 ;;
  *loop-ms*) while echo "1755, 2619, 400.5, 50"; do sleep 0.1; done ;;
  *compute_cap*) echo "9.0" ;;
  *memory.total*) echo 81559 ;;
  *query*) echo "Some GPU" ;;
  *) echo "| CUDA Version: 13.0 |" ;;
esac
S
script "$tools/nvcc" <<'S'
[[ $1 == --version ]] && { echo "release 13.0, V13"; exit; }
while (($#)); do [[ $1 == -o ]] && out=$2; shift; done
printf '#!/bin/sh\nsleep 0.5; echo '\''{"read_gb_per_s": 3000.5, "matrix_tflop_per_s": 700.1, "copy_gb_per_s": 2500.0,
"read_kernel": "k", "read_buffer_gib": 4, "matrix": "m", "launch_and_wait_us": 6.5, "launch_gap_us": 1.5}'\''\n' >"$out"
chmod +x "$out"
S
script "$tools/compute-sanitizer" <<'S'
tool=$2
[[ $1 == --tool ]] || { echo "2026.1"; exit; }
if [[ $* == *'small: bad'* && $tool == racecheck ]]; then
  echo "========= RACECHECK SUMMARY: 4 hazards displayed (3 errors, 1 warning)"; exit 86
fi
"${@: -2}"
[[ $tool == racecheck ]] && echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ||
  echo "========= ERROR SUMMARY: 0 errors"
S

python3 "$bundle/programs.py" "$programs" "$bundle/programs.tar.xz"
PATH="$tools:$PATH"
ends 1 all "$out"
expect '| test_cuda_other | 1 | 2 | 2 | 0 |' "$out/results.md"
expect '| test_cuda_small | 2 | 0 | 0 | 0 |' "$out/results.md"
expect '| memcheck | 2 | 2 | 0 | 0 |  |' "$out/results.md"
expect '| racecheck | 2 | 1 | 3 | 4 | small: bad: found |' "$out/results.md"
expect '| read bandwidth | 3000 GB/s |' "$out/results.md"
expect '| clocks.sm meanwhile | 1755 |' "$out/results.md"
expect '| llama-8b | Q4_0 | auto | decode | 1 | 0 | 123 | 120 to 130 | 1500 | 50.0 | 0.500 | - | cuda-blas |' "$out/results.md"
expect 'Some GPU, compute capability 9.0, 81559 MiB, ECC unknown' "$out/results.md"
expect 'of 1980 MHz' "$out/results.md"
expect 'expected 1 | got 2' "$out/results.json"

# Parts that ran apart are put together, and go between the marks of a document.
mkdir "$work/first" "$work/second"
mv "$out/conformance.json" "$work/first"
mv "$out"/{sanitizer,benchmark}.json "$work/second"
ends 0 report "$work/first" "$work/second"
cmp "$out/results.md" "$work/first/results.md" || failed=1
printf 'before\n<!-- results -->\nold\n<!-- end of results -->\nafter\n' >"$work/document"
python3 "$bundle/report.py" "$out/results.md" "$work/document"
{ printf 'before\n<!-- results -->\n'; cat "$out/results.md"; printf '<!-- end of results -->\nafter\n'; } |
  cmp - "$work/document" || failed=1

# What does not end is ended; what was asked gently may still say what it has.
script "$work/endless" <<'S'
trap 'echo the rest; exit 0' INT
echo the beginning
while :; do sleep 0.1; done
S
PYTHONPATH="$bundle" python3 - "$work/endless" <<'P' || failed=1
import os, sys, time
from conformance import finish
start = time.monotonic()
assert finish([sys.argv[1]], os.environ, start + 1.5) == (None, "the beginning\n")
assert finish([sys.argv[1]], os.environ, time.monotonic() + 1.5, gently=True) == (None, "the beginning\nthe rest\n")
assert finish([sys.argv[1]], os.environ, time.monotonic()) == (None, "")
assert time.monotonic() - start < 10
P

ends 2
ends 2 everything
ends 2 conformance a b
echo 'exit 9' | script "$tools/nvidia-smi"
ends 2 conformance "$out"
expect 'no GPU' "$work/said"
((failed == 0)) && echo "the runner tells apart what it is to"
exit "$failed"
