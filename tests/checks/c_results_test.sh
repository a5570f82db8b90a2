#!/usr/bin/env bash
# c_results.sh accepts this tree, and finds a key that the page does not name: c_results_test.sh ROOT.
set -euo pipefail
check=$(realpath "$(dirname "$0")/c_results.sh")
root=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs/reference"
cp -r "$root/capi" "$tree/"
cp "$root/docs/reference/c-results.md" "$tree/docs/reference/"
bash "$check" "$tree" >/dev/null || { echo "this tree does not pass"; exit 1; }
for key in peak_of_all held_of_all; do
  cp "$root/capi/values/describe.cpp" "$root/capi/values/figure_fields.hpp" "$tree/capi/values/"
  if [[ $key == peak_of_all ]]; then
    sed -i 's/json.set("peak"/json.set("peak_of_all"/' "$tree/capi/values/describe.cpp"
  else
    sed -i 's/TESSERA_FIELD(held_bytes)/TESSERA_FIELD(held_of_all)/' "$tree/capi/values/figure_fields.hpp"
  fi
  if bash "$check" "$tree" >"$tree/out" || ! grep -q "does not name $key" "$tree/out"; then
    echo "$key was not found missing"
    cat "$tree/out"
    exit 1
  fi
done
