#!/usr/bin/env bash
# Kernels of all instruction sets, for the compiler's errors and warnings only: all_sets.sh BUILD_DIR CMAKE_OPTION...
# Code for a set costs twenty times as much, and only the sets that programs of the other tests use are run.
set -euo pipefail
build=$1
shift
cmake -G Ninja -B "$build" "$@" -DTESSERA_KERNEL_SETS=all -DTESSERA_KERNEL_OPTIMISATION=-fsyntax-only
mapfile -t objects < <(ninja -C "$build" -t targets all | grep -oE '^[^:]*/tessera_kernels_[^:]*\.o')
((${#objects[@]} > 1)) || { echo "no kernels in $build"; exit 1; }
ninja -C "$build" "${objects[@]}"
