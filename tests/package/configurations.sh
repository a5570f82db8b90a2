#!/usr/bin/env bash
# How files are compiled where nobody said how: configurations.sh SOURCE_DIR WORK_DIR COMPILER CMAKE_OPTION...
# A plain top-level build is optimised. In a host's debug build our kernels are, and nothing else. Warnings stop neither.
set -euo pipefail
source=$1 work=$2 compiler=$3
shift 3
failed=0

# commands BUILD_DIR: the compiler's command lines of the library's files, one a line.
commands() { sed -n 's/^ *"command": "\(.*\)",*$/\1/p' "$1/compile_commands.json" | grep -E -- ' -c [^ ]*/(src|tessera\.dir/Unity)/'; }
# expect WHAT FLAG: each command on standard input has the flag, and as the last -O flag if it is one.
expect() {
  local what=$1 flag=$2 count=0 command level
  while read -r command; do
    level=$(grep -oE -- ' -O[0-9a-z]*' <<<"$command" | tail -n 1 || true)
    [[ ${level:- none} == " $flag" ]] || { echo "$what: optimised with${level:- nothing}, expected $flag: ${command##* }"; failed=1; }
    [[ $command != *-Werror* ]] || { echo "$what: warnings are errors: ${command##* }"; failed=1; }
    ((++count))
  done
  ((count > 4)) || { echo "$what: $count commands"; failed=1; }
}

rm -rf "$work"
cmake -G Ninja -S "$source" -B "$work/plain" -DCMAKE_CXX_COMPILER="$compiler" -DTESSERA_CUDA=OFF
cmake -G Ninja -S "$(dirname "$0")/consumer" -B "$work/debug" -DHOW=subdirectory -DTESSERA_ROOT="$source" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@"
expect "a plain build" -O3 < <(commands "$work/plain")
expect "kernels of a debug host" -O3 < <(commands "$work/debug" | grep /src/cpu/kernels/)
expect "the rest in a debug host" none < <(commands "$work/debug" | grep -v /src/cpu/kernels/)
grep -q '^TESSERA_BUILD_TESTS:BOOL=OFF' "$work/plain/CMakeCache.txt" || { echo "a plain build has tests"; failed=1; }
exit "$failed"
