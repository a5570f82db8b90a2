#!/usr/bin/env bash
# The C ABI is what capi/ says that it is: c_abi.sh ROOT LIBTESSERA_C_SO
# The header, the list capi/functions.txt and the library's exports have the same functions; the header and capi/constants.txt the same
# constants; the test program in C and the tests of mistakes call every function; and the header compiles wherever it is to.
set -euo pipefail
root=$1 library=$2
cd "$root"
header=include/tessera.h
failed=0

# same WHAT FILE_A FILE_B
same() {
  local lines
  lines=$(diff "$2" "$3" || true)
  [[ $lines ]] || return 0
  printf '%s:\n%s\n' "$1" "$lines"
  failed=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -oE '\btessera_[a-z_0-9]+\(' "$header" | tr -d '(' | sort -u >"$work/header"
# A function that a comment names may not be there: declarations begin with TESSERA_API.
tr '\n' ' ' <"$header" | grep -oE 'TESSERA_API [^();]*\btessera_[a-z_0-9]+\(' | grep -oE 'tessera_[a-z_0-9]+\($' | tr -d '(' | sort -u >"$work/declared"
same "functions that comments of the header name and nothing declares" "$work/header" "$work/declared"
same "capi/functions.txt (<) and the header (>)" capi/functions.txt "$work/declared"

nm --dynamic --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/exports"
sed 's/@@TESSERA_C_[0-9]*$//' "$work/exports" >"$work/exported"
same "the header (<) and what the library exports (>)" "$work/declared" "$work/exported"
abi=$(awk '$2 == "TESSERA_ABI_VERSION" && $1 == "#define" { print $3 }' "$header")
if grep -vq "@@TESSERA_C_$abi\$" "$work/exports"; then
  echo "exports without the version TESSERA_C_$abi (cmake/tessera_c.map):"
  grep -v "@@TESSERA_C_$abi\$" "$work/exports"
  failed=1
fi
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
[[ $soname == "libtessera-c.so.$abi" ]] || { echo "the library's SONAME is $soname, and the ABI version $abi"; failed=1; }

sed 's,/\*.*\*/,,' "$header" | grep -oE '\bTESSERA_[A-Z_0-9]+ = [0-9]+' | sort >"$work/constants"
same "capi/constants.txt (<) and the header's constants (>)" capi/constants.txt "$work/constants"

while read -r function; do
  grep -qE "\b$function\(" tests/capi/walk.c || { echo "tests/capi/walk.c does not call $function"; failed=1; }
  case $function in
    tessera_*_create | tessera_*_init | tessera_version | tessera_a?i_version | tessera_check_version | tessera_code_name) ;;
    tessera_engine_load | tessera_engine_load_source | tessera_plan) ;;
    *) grep -qE "\b$function\b" tests/capi/test_c_misuse.cpp || { echo "tests/capi/test_c_misuse.cpp does not misuse $function"; failed=1; } ;;
  esac
done <"$work/declared"

# compiles COMPILER OPTION...
compiles() {
  command -v "$1" >/dev/null || return 0
  "$@" -pedantic -Wall -Wextra -Werror -fsyntax-only -include "$header" /dev/null || { echo "$header does not compile: $*"; failed=1; }
}
((!failed)) || exit 1
for compiler in gcc clang; do
  for standard in c99 c11; do compiles "$compiler" -x c -std=$standard; done
  for standard in c++11 c++20; do compiles "$compiler" -x c++ -std=$standard; done
done
echo "$(wc -l <"$work/declared") functions, $(wc -l <"$work/constants") constants"
exit "$failed"
