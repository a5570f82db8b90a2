#!/usr/bin/env bash
# symbols.sh accepts what a library may hold and finds each planted violation: symbols_test.sh COMPILER AR
set -euo pipefail
compiler=$1 ar=$2
check=$(dirname "$0")/symbols.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# try STATUS CODE
try() {
  rm -f "$work"/*
  printf '%s\n' "$2" >"$work/code.cpp"
  "$compiler" -std=c++20 -O1 -c "$work/code.cpp" -o "$work/code.o"
  "$ar" rcs "$work/lib.a" "$work/code.o"
  local status=0
  bash "$check" "$work/lib.a" >"$work/out" 2>&1 || status=$?
  if ((status != $1)); then
    printf 'status %s, expected %s: %s\n' "$status" "$1" "$2"
    cat "$work/out"
    failed=1
  fi
}

try 0 '#include <vector>
       namespace tessera { struct T { virtual ~T(); std::vector<int> v; }; T::~T() {} void f(T& t) { t.v.push_back(1); } }'
try 0 'extern "C" int tessera_version() { return 1; }'
try 1 'extern "C" int version() { return 1; }'
try 1 'void f() {}'
try 1 'namespace Eigen { inline int f() { return 1; } } namespace tessera { auto p() { return &Eigen::f; } }'
try 1 '#include <cstdlib>
       namespace tessera { void f() { std::abort(); } }'
try 1 '#include <cstdlib>
       namespace tessera { char* f() { return std::getenv("X"); } }'
try 1 '#include <iostream>
       namespace tessera { void f() { std::cout << 1; } }'
try 1 '#include <cassert>
       namespace tessera { void f(int i) { assert(i > 0); } }'
try 1 'namespace tessera { int f(); int x = f(); }'

# export STATUS CODE: of a shared library whose public header declares f, and S with a member.
try_export() {
  rm -rf "${work:?}"/*
  mkdir "$work/include"
  echo 'namespace tessera { class Hidden; struct S { S(Hidden*); int member(); }; int f(); /* */ }  // g()' >"$work/include/a.hpp"
  printf '#include "include/a.hpp"\n%s\n' "$2" >"$work/code.cpp"
  "$compiler" -std=c++20 -O1 -shared -fPIC -o "$work/lib.so" "$work/code.cpp"
  local status=0
  bash "$check" "$work/lib.so" "$work/include" >"$work/out" 2>&1 || status=$?
  if ((status != $1)); then
    printf 'status %s, expected %s: %s\n' "$status" "$1" "$2"
    cat "$work/out"
    failed=1
  fi
}

try_export 0 'namespace tessera { int f() { return 1; } S::S(Hidden*) {} int S::member() { return 1; } }'
try_export 1 'namespace tessera { int g() { return 1; } }'
try_export 1 'namespace tessera { class Hidden { public: int member(); }; int Hidden::member() { return 1; } }'
try_export 1 'int f() { return 1; }'
exit "$failed"
