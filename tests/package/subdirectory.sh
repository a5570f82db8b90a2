#!/usr/bin/env bash
# tessera inside another project, and under another compiler, warnings as errors:
# subdirectory.sh SOURCE_DIR WORK_DIR COMPILER CMAKE_OPTION...
set -euo pipefail
source=$1 work=$2 compiler=$3
shift 3
if ! command -v "$compiler" >/dev/null; then
  echo "SKIPPED compiling with $compiler: not installed"
  exit 77
fi
options=(-DHOW=subdirectory -DTESSERA_ROOT="$source" -DTESSERA_WERROR=ON -DCMAKE_CXX_COMPILER="$compiler"
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DTESSERA_UNITS=2 "$@")
here=$(dirname "$0")
bash "$here/consume.sh" "$work/built" "${options[@]}" -DTESSERA_KERNEL_SETS=native -DTESSERA_KERNEL_OPTIMISATION=-O0
bash "$here/all_sets.sh" "$work/all_sets" -S "$here/consumer" "${options[@]}"
