#!/usr/bin/env bash
# Configures, builds and runs the consumer project: consume.sh BUILD_DIR [CMAKE OPTION...]
set -euo pipefail
build=$1
shift
cmake -G Ninja -S "$(dirname "$0")/consumer" -B "$build" "$@"
cmake --build "$build"
ctest --test-dir "$build" --output-on-failure --no-tests=error
