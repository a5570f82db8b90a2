#!/usr/bin/env bash
# The amalgamation is made, and its files are valid on their own: amalgamation.sh SOURCE_DIR WORK_DIR COMPILER.
# Compiling them takes minutes: `scripts/amalgamate --check` does it, and runs tests/package/amalgamation/smoke.cpp.
set -euo pipefail
source_dir=$1 work=$2 compiler=$3
command -v python3 >/dev/null || { echo "SKIPPED the amalgamation: no python3"; exit 77; }
mkdir -p "$work"
"$source_dir/scripts/amalgamate" -o "$work" >"$work/command.txt"
grep -q 'tessera.cpp' "$work/command.txt"

cd "$work"
check() { "$compiler" -std=c++20 -fsyntax-only -ffp-contract=off "$@"; }
check tessera.cpp &
if [[ $(uname -m) == x86_64 ]]; then
  check -fno-exceptions -fno-rtti -mavx2 -mfma -mf16c tessera_avx2.cpp
  check -fno-exceptions -fno-rtti -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16 -mavx512vbmi -mavx2 -mfma -mf16c \
    -mamx-tile -mamx-int8 -mamx-bf16 tessera_amx.cpp
else
  check -fno-exceptions -fno-rtti tessera_neon.cpp
fi
wait $!
check -include ./tessera.hpp "$source_dir/tests/package/amalgamation/smoke.cpp"
