#!/usr/bin/env bash
# The page of the programs' options says what their --help says: programs.sh [--write] PAGE.md NAME=PROGRAM...
# --write changes the page. Layout and case are not compared: they depend on the version of CLI11.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
write=0
if [[ $1 == --write ]]; then write=1; shift; fi
page=$1
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/helps"
failed=0
for program in "$@"; do
  name=${program%%=*}
  if ! grep -qxF "## $name" "$page"; then
    echo "$page has no section \"## $name\" with a block \`\`\`text"
    failed=1
    continue
  fi
  "${program#*=}" --help | sed 's/ *$//' | cat -s >"$tmp/helps/$name"
done
awk -v helps="$tmp/helps" -f "$here/programs.awk" "$page" >"$tmp/page.md"
if ((write)); then
  cp "$tmp/page.md" "$page"
  exit "$failed"
fi

words() { tr '[:upper:]' '[:lower:]' <"$1" | sed -E 's/^( *-[a-z0-9]), +--/\1,--/' | tr -s '[:space:]' '\n'; }
if ! diff <(words "$page") <(words "$tmp/page.md") >"$tmp/diff"; then
  diff "$page" "$tmp/page.md" || cat "$tmp/diff"
  echo "The page does not say what the programs say. To write it anew, build the target docs_programs_page."
  failed=1
fi
exit "$failed"
