#!/usr/bin/env bash
# Each class of the public headers of the first tier (not extend/, not unstable/) has an example, which tests/docs compiles: examples.sh [ROOT].
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
mapfile -t headers < <(find include/tessera -name '*.hpp' -not -path '*/extend/*' -not -path '*/unstable/*' | sort)
((${#headers[@]})) || { echo "no headers under $PWD"; exit 1; }
list=$(awk -v list=1 -v root=include -f tests/docs/examples.awk "${headers[@]}")
count=$(grep -c ' class ' <<<"$list" || true)
((count)) || { echo "no class in ${#headers[@]} headers"; exit 1; }
if without=$(grep ' 0$' <<<"$list"); then
  echo "classes without an example. Put one above the class, or at the top of its header: an empty comment line, then lines of code after //   "
  awk '{ print "  " $1 ": " $3 }' <<<"$without"
  exit 1
fi
echo "$count classes have an example"
