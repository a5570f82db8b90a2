#!/usr/bin/env bash
# Every operation of backend::Backend is checked by the tests' StrictBackend: strict.sh [ROOT]. Prints each operation without a check.
# Functions that only ask (const) and those of loading are no operations.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
loading="reserve_weights reserve_workspace add_matrix add_vector scale_products round_inputs finish_loading"

# Prints the names of the member functions in class $2 of file $1 whose declarations have $3, but not `const` behind the parameters.
operations() {
  awk -v class="$2" '$0 ~ "^class " class " .*{" { open = 1; next } /^};/ { open = 0 } open' "$1" |
    sed -E 's|//.*||' | tr '\n' ' ' | sed -E 's/[;{}]/&\n/g' |
    { grep -w -- "$3" || true; } | { grep -vE '\) *const\b' || true; } |
    sed -nE 's/^[^(]*[ >&*]([a-z_]+)\(.*/\1/p' | sort -u
}

failed=0 n=0
checked=$(operations tests/engine/strict_backend.hpp StrictBackend override)
while read -r operation; do
  [[ -n $operation && " $loading " != *" $operation "* ]] || continue
  n=$((n + 1))
  grep -qxF -- "$operation" <<<"$checked" && continue
  echo "StrictBackend (tests/engine/strict_backend.hpp) does not check $operation; override it there"
  failed=1
done < <(operations src/backend/backend.hpp Backend virtual)
echo "$n operations"
((n > 0)) || failed=1
exit "$failed"
