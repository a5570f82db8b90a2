#!/usr/bin/env bash
# Small rules of the sources: sources.sh [ROOT].
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
failed=0

# complain WHY: what stands on standard input, if anything.
complain() {
  local lines
  lines=$(cat)
  [[ $lines ]] || return 0
  printf '%s:\n%s\n' "$1" "$lines"
  failed=1
}

mapfile -t code < <(find include src cuda capi examples tools bench tests -type f \
  \( -name '*.hpp' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort)
mapfile -t all < <(find CMakeLists.txt CMakePresets.json README.md docs cmake scripts include src cuda capi examples tools \
  bench bindings tests -type f \( -name '*.hpp' -o -name '*.h' -o -name '*.c*' -o -name '*.py' -o -name '*.sh' -o -name '*.txt' \
  -o -name '*.rs' -o -name '*.js' -o -name '*.java' -o -name '*.go' -o -name '*.md' -o -name '*.json' -o -path 'scripts/*' \) 2>/dev/null | sort)
((${#code[@]})) || { echo "no sources under $PWD"; exit 1; }

complain "headers without #pragma once" < <(
  for file in "${code[@]}"; do
    if [[ $file == *.h || $file == *.hpp ]] && ! grep -q '^#pragma once' "$file"; then echo "$file"; fi
  done)
# Exception: the C ABI is one header, which bindings of other languages read.
complain "more than 500 lines: split by operation" < <(
  wc -l "${code[@]}" | awk '$2 != "total" && $2 != "include/tessera.h" && $1 > 500 { print $2 ": " $1 " lines" }')
complain "public headers that docs/headers.md does not name" < <(
  for file in "${code[@]}"; do
    if [[ $file == include/tessera/* ]] && ! grep -qF "\`${file#include/tessera/}\`" docs/headers.md; then echo "$file"; fi
  done)
complain "headers that tessera.hpp should include and does not, or includes and should not" < <(
  for file in "${code[@]}"; do
    [[ $file == include/tessera/*.hpp && $file != include/tessera/tessera.hpp ]] || continue
    wanted=1 found=0  # of applications; extend/ and unstable/ are included by name, and eigen.hpp where there is an Eigen
    [[ $file != include/tessera/@(extend/*|unstable/*|eigen.hpp) ]] || wanted=0
    ! grep -qF "#include <${file#include/}>" include/tessera/tessera.hpp || found=1
    ((wanted == found)) || echo "$file"
  done)
# shellcheck disable=SC2016  # Markdown's quotes
complain "files that the documents name and that are not there" < <(
  grep -HnoE '`(include|src|cuda|capi|examples|tools|bench|bindings|tests|docs|cmake|scripts|models)/[A-Za-z0-9_./-]+`' README.md docs/*.md docs/*/*.md bench/results/*.md bindings/*.md 2>/dev/null |
    while IFS= read -r hit; do
      file=${hit##*:}
      file=${file//\`/}
      [[ $file == *NAME* || -e $file ]] || echo "$hit"
    done)
complain "links of the documents that lead nowhere" < <(
  while IFS= read -r page; do
    { grep -noE '\]\([^) :#]+(#[^)]*)?\)' "$page" || true; } | while IFS= read -r hit; do
      link=${hit#*](}
      link=${link%%[)#]*}
      [[ -e $(dirname "$page")/$link ]] || echo "$page:${hit%%:*}: $link"
    done
  done < <(find README.md docs examples bench bindings tools -name '*.md' 2>/dev/null))
complain "pages that mkdocs.yml does not list" < <(
  [[ -e mkdocs.yml ]] || exit 0
  find docs bench/results -name '*.md' 2>/dev/null | sort | while IFS= read -r page; do
    grep -qxE " +- ${page//./\\.}" mkdocs.yml || echo "$page"
  done)
complain "types of one name, which docs/glossary.md gives one meaning (Part, Step, Block): name them by what they are" < <(
  for name in Part Step Block; do
    hits=$(grep -nE "^ *(struct|class|enum class) $name\b[^;]*\{" "${code[@]}" | grep -vE '^tests/' || true)
    (($(wc -l <<<"$hits") < 2)) || echo "$hits"
  done)
complain "std::equal in a test reads behind the second range's end if that is shorter: use std::ranges::equal" < <(
  grep -nE 'std::equal\(' "${code[@]}" | grep '^tests/')
complain "unfinished" < <(grep -nE '\b(TOD[O]|FIXM[E]|XX[X])\b' "${all[@]}")
complain "paths of one machine" < <(
  grep -nE '(^|[^A-Za-z0-9_.}])/(wor[k]|hom[e]|roo[t]|User[s])/[A-Za-z]' "${all[@]}")
complain "a system that is asked for outside of src/os and the system/ folders of programs: use or widen a seam there" < <(
  grep -nE '^[ \t]*#[ \t]*(el)?if.*\b(_WIN32|_WIN64|__MINGW(32|64)__|__APPLE__|__linux__|__unix__)\b' "${code[@]}" |
    grep -vE '^((src/os|tests|tools/shared/system|(examples|tools)/[^/]*/system)/|include/tessera\.h:)')  # the C header: dllimport
complain "tabs, or spaces at the end of a line" < <(grep -nP '\t| +$' "${code[@]}")
exit "$failed"
