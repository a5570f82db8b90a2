#!/usr/bin/env bash
# examples.sh accepts this tree, and finds a class without an example: examples_test.sh ROOT.
set -euo pipefail
check=$(realpath "$(dirname "$0")/examples.sh")
root=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir -p "$tree/include" "$tree/tests"
cp -r "$root/include/tessera" "$tree/include/"
cp -r "$root/tests/docs" "$tree/tests/"

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

try 0 'have an example'
printf '// A list:\n//\n//   one thing\n//   another (1); a third\nclass Bare {\n public:\n};\n' >"$tree/include/tessera/bare.hpp"
try 1 'tessera/bare.hpp: Bare'
printf '//\n//   auto bare = Bare();\n\nint other;\nclass Bare {\n public:\n};\n' >"$tree/include/tessera/bare.hpp"
try 0 'have an example'
printf '//\n//   auto thing = make();\ntemplate <class T>\nclass Bare final : public Thing {\n public:\n};\n' >"$tree/include/tessera/bare.hpp"
try 0 'have an example'
sed -i '/^\/\/   /d' "$tree/include/tessera/batch.hpp"
try 1 'tessera/batch.hpp: Batch'
exit "$failed"
