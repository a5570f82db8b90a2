#!/usr/bin/env bash
# kernel_symbols.sh accepts what a kernel's object may hold and finds what it may not: kernel_symbols_test.sh COMPILER
set -euo pipefail
compiler=$1
check=$(dirname "$0")/kernel_symbols.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# try STATUS CODE
try() {
  printf '%s\n' "$2" >"$work/code.cpp"
  "$compiler" -std=c++20 -O0 -c "$work/code.cpp" -o "$work/code.o"
  local status=0
  bash "$check" avx2 "$work/code.o" >"$work/out" 2>&1 || status=$?
  if ((status != $1)); then
    printf 'status %s, expected %s: %s\n' "$status" "$1" "$2"
    cat "$work/out"
    failed=1
  fi
}

try 0 'namespace tessera::cpu::avx2 { static int g() { return 1; } int f() { return g(); } }'
try 0 'namespace tessera::cpu::avx2 { inline int g() { return 1; } int (*f())() { return &g; } }'
try 1 'namespace tessera::cpu { inline int g() { return 1; } namespace avx2 { int (*f())() { return &g; } } }'
try 1 'namespace tessera::cpu::avx512 { int f() { return 1; } }'
try 1 '#include <vector>
       namespace tessera::cpu::avx2 { void f(std::vector<int>& v) { v.push_back(1); } }'
try 1 'namespace tessera::cpu::avx2 {}'
exit "$failed"
