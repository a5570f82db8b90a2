#!/usr/bin/env bash
# Every public member function of every class in include/tessera is in the tables of tests/chat/test_empty_handles.cpp, which call it
# on an empty handle: handles.sh [ROOT]. Prints each that is not, and each of the tables' that the headers do not have.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
tables=tests/chat/test_empty_handles.cpp

# Not handles. What others implement: its functions are the host's or the library's, of objects that there are. Values and
# builders, which hold no state of the library's that could be missing; the first four are called in the tables by name.
others="ByteSource Drafter Executor InputObserver Memory ModelSource Policy RankTransport Settings Stage
  Chain GgufWriter Error Result
  Candidates Candidates::View CostModel Embeddings Histogram Json MeasuredCosts StageOf StepPlanner Tenants"

# Declarations stand in one line or begin one, two blanks deep: what is deeper belongs to them.
functions() {
  find include/tessera -name '*.hpp' -exec awk '
    /^class .*[^;]$/ {
      sub(/\[\[[^]]*\]\] */, ""); match($0, /^class +[A-Za-z0-9_:]+/)
      class = substr($0, 7, RLENGTH - 6); gsub(/ /, "", class); open = 1; public = 0; next
    }
    /^};/ { open = 0 }
    /^ (public|protected|private):/ { public = /public/; next }
    open && public && /^  [A-Za-z[]/ {
      sub(/\/\/.*/, ""); gsub(/\[\[[^]]*\]\]/, "")
      if (/^ *(using|friend|struct|enum|class|template|requires) / || /operator *[^A-Za-z ]/ || /operator bool/) next
      if (!match($0, /~?[A-Za-z_][A-Za-z_0-9]* *\(/)) next
      name = substr($0, RSTART, RLENGTH - 1); gsub(/ /, "", name)
      if (name != class && name != "~" class) print class "::" name
    }' {} + | sort -u
}

called() {
  tr '\n' ' ' <"$tables" |
    grep -oE '(FAILS|HOLDS|DOES)\([A-Za-z]+, *[a-z_]+|Call<[A-Za-z]+>\{ *"[A-Za-z]+::[a-z_]+"' |
    sed -E 's/^(FAILS|HOLDS|DOES)\(([A-Za-z]+), *([a-z_]+)/\2::\3/; s/^Call<.*"([A-Za-z:_]+)"/\1/' | grep -v '^X::' | sort -u
}

failed=0
all=$(functions)
in_tables=$(called)
while read -r function; do
  class=${function%::*}
  [[ " ${others//$'\n'/ } " == *" $class "* ]] && continue
  grep -qxF -- "$function" <<<"$in_tables" && continue
  echo "$tables does not call $function of an empty handle; add it to the table of $class"
  failed=1
done <<<"$all"
while read -r function; do
  [[ -z $function ]] || grep -qxF -- "$function" <<<"$all" && continue
  echo "$tables names $function, which no public header declares"
  failed=1
done <<<"$in_tables"
echo "$(wc -l <<<"$all") functions"
exit "$failed"
