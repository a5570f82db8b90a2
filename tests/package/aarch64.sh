#!/usr/bin/env bash
# The library compiled for aarch64, and programs run under emulation, which compute the same bits as here:
# aarch64.sh SOURCE_DIR WORK_DIR HOST_LIBRARY MODEL OTHER_MODEL
set -euo pipefail
source=$1 work=$2 library=$3 models=("$4" "$5")
compiler=aarch64-linux-gnu-g++
if ! command -v "$compiler" >/dev/null; then
  echo "SKIPPED compiling for aarch64: no $compiler"
  exit 77
fi
here=$(dirname "$0")
options=(-S "$here/aarch64" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER="$compiler"
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DTESSERA_ROOT="$source"
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DTESSERA_UNITS=2)
cmake -G Ninja -B "$work" "${options[@]}" -DTESSERA_KERNEL_SETS=neon_dotprod -DTESSERA_KERNEL_OPTIMISATION=-O0
cmake --build "$work"
bash "$here/all_sets.sh" "$work/all_sets" "${options[@]}"
if ! command -v qemu-aarch64 >/dev/null; then
  echo "SKIPPED running for aarch64: no qemu-aarch64"
  exit
fi
qemu-aarch64 "$work/plain" "${models[0]}"
two_here=$work/two_engines_here
# shellcheck disable=SC2046  # words are wanted
g++ -std=c++20 -I"$source/include" "$source/tests/package/consumer/two_engines.cpp" "$library" -o "$two_here" \
  $(pkg-config --libs fmt libpcre2-8 libutf8proc) -pthread
there=$(qemu-aarch64 "$work/two_engines" "${models[@]}")
[[ $there == "$("$two_here" "${models[@]}")" ]] || { echo "other bits than here: $there"; exit 1; }
echo "$there"
