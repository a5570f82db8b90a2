#!/usr/bin/env bash
# Objects of different instruction sets share no symbol: kernel_symbols.sh SET OBJECT... [-- SET OBJECT...]...
# Whatever an object defines for others must be in tessera::cpu::SET. A weak symbol outside it would be merged with that of
# another set at link time, and the machine that lacks the set would run it.
set -euo pipefail

# shellcheck disable=SC2016  # awk's
awk_program='
  BEGIN { prefix = "_ZN7tessera3cpu" length(set) set }
  $(NF - 1) ~ /^[A-TV-Zuvi]$/ && $(NF - 1) != "U" {
    ++seen
    name = $NF
    sub(/^_ZT[VIS]N/, "_ZN", name)
    sub(/^_ZZN/, "_ZN", name)
    sub(/^_ZGV[ZN]*/, "_ZN", name)
    if (index(name, prefix) != 1 && index(name, "_ZNK" substr(prefix, 4)) != 1) {
      print "not in tessera::cpu::" set ": " $NF " (" $1 ")"
      bad = 1
    }
  }
  END {
    if (!seen) { print "no symbols of " set; bad = 1 }
    exit bad
  }'

failed=0
while (($#)); do
  set_name=$1 objects=()
  shift
  while (($#)) && [[ $1 != -- ]]; do objects+=("$1"); shift; done
  (($# == 0)) || shift
  nm --print-file-name --defined-only "${objects[@]}" | awk -v set="$set_name" "$awk_program" || failed=1
done
exit "$failed"
