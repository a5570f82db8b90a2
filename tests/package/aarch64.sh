#!/usr/bin/env bash
# The library compiled for aarch64, and programs run under emulation: aarch64.sh SOURCE_DIR WORK_DIR MODEL OTHER_MODEL
set -euo pipefail
source=$1 work=$2 models=("$3" "$4")
compiler=aarch64-linux-gnu-g++
if ! command -v "$compiler" >/dev/null; then
  echo "SKIPPED compiling for aarch64: no $compiler"
  exit 77
fi
cmake -G Ninja -S "$(dirname "$0")/aarch64" -B "$work" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DTESSERA_ROOT="$source"
cmake --build "$work"
if ! command -v qemu-aarch64 >/dev/null; then
  echo "SKIPPED running for aarch64: no qemu-aarch64"
  exit
fi
qemu-aarch64 "$work/plain" "${models[0]}"
qemu-aarch64 "$work/two_engines" "${models[@]}"
