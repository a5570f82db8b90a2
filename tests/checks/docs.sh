#!/usr/bin/env bash
# The reference of the public headers is made without a warning: docs.sh SOURCE_DIR WORK_DIR COMPILER
set -euo pipefail
command -v doxygen >/dev/null || { echo "SKIPPED the reference of the headers: no doxygen"; exit 77; }
cmake -G Ninja -S "$1" -B "$2" -DCMAKE_CXX_COMPILER="$3" -DTESSERA_BUILD_DOCS=ON -DTESSERA_CUDA=OFF \
  -DTESSERA_BUILD_EXAMPLES=OFF -DTESSERA_BUILD_TOOLS=OFF
cmake --build "$2" --target docs
[[ -s $2/docs/html/index.html ]]
