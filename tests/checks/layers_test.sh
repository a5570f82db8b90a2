#!/usr/bin/env bash
# layers.sh accepts a good tree and finds each planted violation.
set -euo pipefail
check=$(dirname "$0")/layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# try STATUS PATH INCLUDE
try() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/src/files" "$tree/$(dirname "$2")"
  printf '#include <tessera/core/result.hpp>\n#include "core/guard.hpp"\n#include <vector>\n' >"$tree/src/files/good.cpp"
  printf '#pragma once\n#include %s\n' "$3" >"$tree/$2"
  local status=0
  bash "$check" "$tree" >"$tree/out" 2>&1 || status=$?
  if ((status != $1)); then
    printf 'status %s, expected %s: %s in %s\n' "$status" "$1" "$3" "$2"
    cat "$tree/out"
    failed=1
  fi
}

try 0 include/tessera/extend/files/gguf.hpp '<tessera/formats/rows.hpp>'
try 0 include/tessera/extend/files/gguf.hpp '<string_view>'
try 0 include/tessera/engine.hpp '<tessera/model/model_spec.hpp>'
try 0 src/cpu/matmul.cpp '"matmul.hpp"'
try 0 src/engine/load/engine.cpp '"cpu/backend.hpp"'
try 0 src/engine.cpp '"cpu/backend.hpp"'
try 0 examples/generate/main.cpp '<tessera/tessera.hpp>'
try 0 examples/generate/main.cpp '"options.hpp"'
try 0 python/src/types/figures.cpp '"values/figure_fields.hpp"'
try 0 python/src/types/figures.cpp '<tessera/engine.hpp>'
try 1 python/src/types/figures.cpp '"describe.hpp"'
try 1 python/src/types/figures.cpp '"capi/values/figure_fields.hpp"'
try 1 python/src/types/figures.cpp '<tessera/unstable/kv/page_cost.hpp>'
try 1 include/tessera/core/result.hpp '<tessera/files/gguf.hpp>'
try 1 include/tessera/core/result.hpp '<fmt/format.h>'
try 1 include/tessera/core/result.hpp '<stdint.h>'
try 1 include/tessera/core/result.hpp '"core/guard.hpp"'
try 1 include/tessera/sampling/chain.hpp '"formats/f32.hpp"'
try 1 src/cpu/matmul.cpp '"model/forward.hpp"'
try 1 src/cpu/matmul.cpp '<tessera/engine.hpp>'
try 1 src/cpu/matmul.cpp '"cuda/stream.hpp"'
try 1 src/kv/kv_cache.cpp '"backend/backend.hpp"'
try 1 src/files/gguf/gguf.cpp '"../core/guard.hpp"'
try 1 src/model/forward.cpp '"engine/engine.hpp"'
try 1 src/elsewhere/thing.cpp '<vector>'
try 0 src/files/model_source.cpp '<tessera/extend/files/model_file.hpp>'
try 1 src/model/spec/spec_reader.cpp '<tessera/extend/files/model_file.hpp>'
try 1 src/text/tokenizer.cpp '<tessera/extend/files/gguf.hpp>'
try 1 src/model/load/roles.hpp '"files/gguf/gguf_settings.hpp"'
try 0 src/text/tokenizer.cpp '<tessera/extend/files/settings.hpp>'
try 0 include/tessera/sampling/chain.hpp '<tessera/extend/sampling/stage.hpp>'
try 1 include/tessera/sampling/chain.hpp '<tessera/extend/files/gguf.hpp>'
try 0 tools/simulate/main.cpp '<tessera/unstable/scheduler/plan_step.hpp>'
try 1 include/tessera/scheduler/scheduler.hpp '<tessera/unstable/scheduler/plan_step.hpp>'
try 1 examples/batch/main.cpp '<tessera/unstable/scheduler/plan_step.hpp>'
try 0 src/engine/run/run.cpp '"engine/states.hpp"'
try 1 src/engine/run/run.hpp '"engine/states.hpp"'
try 1 src/scheduler/setup.cpp '"engine/states.hpp"'
try 1 src/decoding/decoding.hpp '"engine/states.hpp"'
try 1 tools/inspect/main.cpp '"engine/states.hpp"'
try 0 tests/engine/inside.cpp '"engine/states.hpp"'
try 1 tests/engine/inside.hpp '"engine/states.hpp"'
try 1 tests/decoding/test_decoding.cpp '"engine/states.hpp"'
try 1 cuda/backend.cu '"cpu/kernels.hpp"'
try 1 examples/generate/main.cpp '"core/guard.hpp"'
exit "$failed"
