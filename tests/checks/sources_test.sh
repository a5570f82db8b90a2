#!/usr/bin/env bash
# sources.sh accepts a good tree and finds each planted violation.
set -euo pipefail
check=$(dirname "$0")/sources.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# try STATUS TEXT: of include/a.hpp
try() {
  mkdir -p "$tree/include" "$tree/tests"
  printf '%b\n' "$2" >"$tree/include/a.hpp"
  local status=0
  bash "$check" "$tree" >"$tree/out" 2>&1 || status=$?
  if ((status != $1)); then
    printf 'status %s, expected %s: %.60s\n' "$status" "$1" "$2"
    cat "$tree/out"
    failed=1
  fi
}

try 0 '#pragma once\n// See the paper; a / b, src/work/x'
try 1 'int x;'
try 1 "#pragma once\n$(printf '//\\n%.0s' {1..600})"
try 1 '#pragma once\n// TO''DO: more'
try 1 '#pragma once\n// see /ho''me/somebody/x'
try 1 '#pragma once\nint x; '
try 1 '#pragma once\n\tint x;'
try 1 '#pragma once\n#if defined(_WIN32)\n#endif'
try 1 '#pragma once\n#ifdef __APPLE__\n#endif'
mkdir -p "$tree/src/os"
printf '#pragma once\n#ifdef _WIN32\n#endif\n' >"$tree/src/os/c.hpp"
try 0 '#pragma once'
rm -r "$tree/src"
echo '#pragma once' >"$tree/tests/b.hpp"
try 0 '#pragma once\nbool x = std::ranges::equal(a, b);'
echo 'bool x = std::equal(a.begin(), a.end(), b.begin());' >>"$tree/tests/b.hpp"
try 1 '#pragma once'
rm "$tree/tests/b.hpp"
# shellcheck disable=SC2016  # Markdown's
echo 'See `include/a.hpp` and write `src/NAME.hpp`.' >"$tree/README.md"
try 0 '#pragma once'
# shellcheck disable=SC2016
echo 'See `include/b.hpp`.' >"$tree/README.md"
try 1 '#pragma once'
# Links are looked at in each page, also behind one that has none.
mkdir -p "$tree/docs" "$tree/bench/results"
echo 'Nothing.' >"$tree/README.md"
echo '[a page](../bench/results/b.md#there), and [&](const char* user)' >"$tree/docs/a.md"
echo '[back](../../docs/a.md)' >"$tree/bench/results/b.md"
try 0 '#pragma once'
echo '[nowhere](../../docs/c.md)' >"$tree/bench/results/b.md"
try 1 '#pragma once'
echo '[back](../../docs/a.md)' >"$tree/bench/results/b.md"
# Each page is in the menu of the site.
printf '%s\n' 'nav:' '  - How to:' '      - docs/a.md' '      - bench/results/b.md' >"$tree/mkdocs.yml"
try 0 '#pragma once'
sed -i /docs/d "$tree/mkdocs.yml"
try 1 '#pragma once'
exit "$failed"
