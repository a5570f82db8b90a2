#!/usr/bin/env bash
# The shapes of functions and structs are those of capi/tessera-c-N.abi: c_abidiff.sh ROOT [--renew]
# abidw describes a library that is made of the header alone, so that no build with debug information is needed.
# --renew writes the file anew. It refuses if a function or a member of the file is gone or changed: that needs another TESSERA_ABI_VERSION.
set -euo pipefail
root=$1 renew=${2:-}
for tool in abidw abidiff; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed (Debian: abigail-tools)"; exit 77; }
done
cd "$root"
header=include/tessera.h
abi=$(awk '$2 == "TESSERA_ABI_VERSION" && $1 == "#define" { print $3 }' "$header")
kept=capi/tessera-c-$abi.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A function that never returns for each declaration.
{
  echo '#include <tessera.h>'
  sed 's,/\*.*\*/,,' "$header" | awk '
    /^TESSERA_API/ { open = 1; text = "" }
    open { text = text " " $0 }
    open && /;[ ]*$/ { sub(/;[ ]*$/, " { for (;;) {} }", text); sub(/TESSERA_API/, "", text); print text; open = 0 }'
} >"$work/tessera.c"
cp "$header" "$work/tessera.h"
(cd "$work" && gcc -std=c99 -g -O0 -w -shared -fPIC -I. -Wl,-soname,"libtessera-c.so.$abi" -o "libtessera-c.so.$abi" tessera.c)
n=$(nm -D --defined-only "$work/libtessera-c.so.$abi" | grep -c ' T tessera_')
((n == $(wc -l <capi/functions.txt))) || { echo "$n functions in the header, $(wc -l <capi/functions.txt) in capi/functions.txt"; exit 1; }
abidw --no-corpus-path --no-comp-dir-path --short-locs --no-elf-needed --out-file "$work/new.abi" "$work/libtessera-c.so.$abi"

if [[ ! -e $kept ]]; then
  [[ $renew == --renew ]] || { echo "there is no $kept: make it with --renew"; exit 1; }
  cp "$work/new.abi" "$kept"
  exit 0
fi
status=0
abidiff --no-default-suppression "$kept" "$work/new.abi" >"$work/report" || status=$?
if ((status == 0)); then
  echo "the same as $kept"
  exit 0
fi
cat "$work/report"
((status & 3)) && { echo "abidiff failed"; exit 1; }
# Not breaking: functions that are new, and members at a struct's end (the struct begins with its size).
broken=$(grep -cE '\[D\]|was (added|removed)|data member deletion|return type changed|offset changed|name changed|type of .* changed' "$work/report" || true)
if ((broken != 0 || (status & 8))); then
  echo "This breaks programs that are built: take it back, or raise TESSERA_ABI_VERSION."
elif [[ $renew == --renew ]]; then
  cp "$work/new.abi" "$kept"
  echo "$kept is renewed"
  exit 0
else
  echo "Only added to. Raise TESSERA_API_VERSION in the first addition after a release, and run tests/checks/c_abidiff.sh . --renew"
fi
exit 1
