#!/usr/bin/env bash
# c_abi.sh and c_abidiff.sh accept the header, and find each planted change: c_abi_test.sh ROOT LIBTESSERA_C_SO
set -euo pipefail
root=$1 library=$2
here=$root/tests/checks
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# try STATUS CHECK SED_EXPRESSION: the header after the expression.
try() {
  rm -rf "$work/root"
  mkdir -p "$work/root/include" "$work/root/tests"
  cp -r "$root/capi" "$work/root/capi"
  cp -r "$root/tests/capi" "$work/root/tests/capi"
  sed -E "$3" "$root/include/tessera.h" >"$work/root/include/tessera.h"
  local status=0
  case $2 in
    abi) bash "$here/c_abi.sh" "$work/root" "$library" >"$work/out" 2>&1 || status=$? ;;
    abidiff) bash "$here/c_abidiff.sh" "$work/root" >"$work/out" 2>&1 || status=$? ;;
    renew) bash "$here/c_abidiff.sh" "$work/root" --renew >"$work/out" 2>&1 || status=$? ;;
  esac
  if ((status != $1)) && ! { [[ $2 != abi ]] && ((status == 77)); }; then
    echo "status $status, expected $1: $2, $3"
    cat "$work/out"
    failed=1
  fi
}

try 0 abi ''
try 1 abi 's/^(TESSERA_API const char\* tessera_version)/TESSERA_API void tessera_more(void);\n\1/'
try 1 abi '/ tessera_abi_version\(/d'
try 1 abi 's/TESSERA_BUSY = 15/TESSERA_BUSY = 25/'
try 1 abi 's/, TESSERA_TOO_LATE = 16//'
try 1 abi 's/^#define TESSERA_ABI_VERSION 0/#define TESSERA_ABI_VERSION 1/'
try 1 abi 's/^typedef struct tessera_text .*/typedef struct tessera_text {} tessera_text;/'
try 0 abidiff ''
try 1 abidiff 's/void tessera_stop_request\(tessera_stop\* stop/void tessera_stop_request(tessera_stop* stop, int32_t how/'
try 1 abidiff 's/^  int32_t every_row;/  int64_t every_row;/'
try 1 abidiff 's/^  const size_t\* rows;/  size_t rows;/'
try 1 renew 's/void tessera_stop_request\(tessera_stop\* stop/void tessera_stop_request(tessera_stop* stop, int32_t how/'
exit "$failed"
