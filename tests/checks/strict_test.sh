#!/usr/bin/env bash
# strict.sh accepts this tree, and finds an operation of Backend that StrictBackend does not override: strict_test.sh ROOT.
set -euo pipefail
check=$(realpath "$(dirname "$0")/strict.sh")
root=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/src/backend" "$tree/tests/engine"
  cp "$root/src/backend/backend.hpp" "$tree/src/backend/"
  cp "$root/tests/engine/strict_backend.hpp" "$tree/tests/engine/"
}

# try STATUS WORDS: what the check of the tree comes to, and says.
try() {
  local status=0
  bash "$check" "$tree" >"$tree/out" 2>&1 || status=$?
  if ((status != $1)) || ! grep -q "$2" "$tree/out"; then
    printf 'status %s, expected %s and "%s":\n' "$status" "$1" "$2"
    cat "$tree/out"
    failed=1
  fi
}

fresh
try 0 operations
sed -i 's/^  virtual Status end() = 0;/&\n  virtual Status halve(Act x,\n                       float by);/' "$tree/src/backend/backend.hpp"
try 1 'does not check halve'
fresh
sed -i 's/^  Status set_tokens(.*override {/  Status set_words(std::span<const Token> tokens) {/' "$tree/tests/engine/strict_backend.hpp"
try 1 'does not check set_tokens'
fresh
sed -i 's/^class Backend {/class Nothing {/' "$tree/src/backend/backend.hpp"
try 1 '^0 operations'
exit "$failed"
