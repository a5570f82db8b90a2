#!/usr/bin/env bash
# handles.sh accepts this tree, and finds a function and a class that the tables do not have, and one that the headers do not:
# handles_test.sh ROOT.
set -euo pipefail
check=$(realpath "$(dirname "$0")/handles.sh")
root=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include" "$tree/tests/chat"
  cp -r "$root/include/tessera" "$tree/include/"
  cp "$root/tests/chat/test_empty_handles.cpp" "$tree/tests/chat/"
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
try 0 functions
sed -i 's/^  \[\[nodiscard\]\] bool edited() const noexcept;/&\n  Status mend() noexcept;/' "$tree/include/tessera/session.hpp"
try 1 'does not call Session::mend'
fresh
printf '#pragma once\nclass Forgotten final {\n public:\n  int touch(int (*of)());\n};\n' >"$tree/include/tessera/forgotten.hpp"
try 1 'does not call Forgotten::touch'
fresh
sed -i 's/FAILS(Session, fork)/FAILS(Session, knife)/' "$tree/tests/chat/test_empty_handles.cpp"
try 1 'names Session::knife'
try 1 'does not call Session::fork'
exit "$failed"
