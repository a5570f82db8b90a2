#!/usr/bin/env bash
# docs/reference/c-results.md names each key of the JSON that functions of the C ABI return: c_results.sh [ROOT].
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
page=docs/reference/c-results.md
mapfile -t keys < <({
  grep -rhoE '(json|one|described)\.set\("[a-z_0-9]+"' capi/values/describe.cpp capi/scheduler.cpp capi/text/chat.cpp
  grep -hoE '(TESSERA_FIELD|TESSERA_MOMENT)\([a-z_]+\)' capi/values/figure_fields.hpp | grep -v '(name)'
  grep -hoE 'field\("[a-z_0-9]+"' capi/values/figure_fields.hpp
} | sed -E 's/.*[("]([a-z_0-9]+)["]?\)?$/\1/' | sort -u)
((${#keys[@]} > 80)) || { echo "only ${#keys[@]} keys found: the code has changed, and this check has not"; exit 1; }
failed=0
for key in "${keys[@]}"; do
  grep -q "\`$key\`" "$page" || { echo "$page does not name $key"; failed=1; }
done
((failed)) || echo "${#keys[@]} keys"
exit "$failed"
