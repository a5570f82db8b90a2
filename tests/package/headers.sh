#!/usr/bin/env bash
# Public headers in every language mode that a user may have: headers.sh INCLUDE_DIR COMPILER [alone].
# All of them together for each standard, without and with exceptions and RTTI; "alone": each one by itself too.
set -euo pipefail
include=$1 compiler=$2 alone_too=${3:-}
if ! command -v "$compiler" >/dev/null; then
  echo "SKIPPED public headers under $compiler: not installed"
  exit 77
fi
flags=(-x c++ -fsyntax-only -I"$include" -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast -Wpedantic -Werror)
mapfile -t headers < <(cd "$include" && find tessera -name '*.hpp' ! -path tessera/eigen.hpp | sort)
export compiler

# shellcheck disable=SC2016  # the inner shell expands
alone='"$compiler" -std=c++20 -fno-exceptions -fno-rtti "${@:1:$#-1}" - <<<"#include <${!#}>" || { echo "alone: ${!#}"; exit 1; }'
if [[ $alone_too ]]; then
  printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c "$alone" bash "${flags[@]}"
fi

for standard in c++20 c++2b; do
  for mode in "-fno-exceptions -fno-rtti" ""; do
    # shellcheck disable=SC2086  # words are wanted
    printf '#include <%s>\n' "${headers[@]}" | "$compiler" -std=$standard $mode "${flags[@]}" - ||
      { echo "together: -std=$standard $mode"; exit 1; }
  done
done
# The one header that needs another library, where that is installed.
if [[ -e /usr/include/eigen3/Eigen/Core ]]; then
  "$compiler" -std=c++20 -fno-exceptions -fno-rtti -isystem /usr/include/eigen3 "${flags[@]}" - <<<'#include <tessera/eigen.hpp>' ||
    { echo "alone: tessera/eigen.hpp"; exit 1; }
fi
echo "${#headers[@]} headers"
