#!/usr/bin/env bash
# packaging.sh sees each kind of difference: packaging_test.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# breaks FILE SED_EXPRESSION: in a copy of the tree's files that the check reads.
breaks() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree"
  (cd "$root" && find CMakeLists.txt CHANGELOG.md README.md include/tessera.h packaging scripts/packages.txt -type f -print0 &&
    find examples tools bench -name CMakeLists.txt -print0) | tar -C "$root" --null -T - -cf - | tar -C "$work/tree" -xf -
  sed -i "$2" "$work/tree/$1"
  cmp -s "$root/$1" "$work/tree/$1" && { echo "$1: nothing changed by $2"; exit 1; }
  if bash "$root/tests/checks/packaging.sh" "$work/tree" >"$work/output"; then
    echo "not seen: $1 with $2"
    exit 1
  fi
}

breaks CMakeLists.txt 's/^project(tessera VERSION [0-9.]*/project(tessera VERSION 9.8.7/'
breaks CHANGELOG.md 's/^## [0-9]/## x/'
breaks packaging/conan/conanfile.py 's/^    version = .*/    version = "9.8.7"/'
breaks packaging/conan/conanfile.py '/requires("fmt/d'
breaks packaging/vcpkg/vcpkg.json 's/"utf8proc"/"utf9proc"/'
breaks packaging/homebrew/tessera.rb '/depends_on "pcre2"/d'
breaks packaging/debian/control 's/libssl-dev,//'
breaks packaging/debian/control 's/tessera-needles//'
breaks packaging/debian/control 's/^Package: libtessera-c0/Package: libtessera-c1/'
breaks packaging/debian/libtessera-c0.symbols '/ tessera_engine_load@/d'
breaks packaging/docker/Dockerfile 's/libedit-dev //; s/libssl-dev//'
# shellcheck disable=SC2016  # Markdown's quotes
breaks README.md '/^| Programs |/s/`tessera-needles`, //'
breaks include/tessera.h '/^TESSERA_API.*tessera_engine_free/d'
echo "13 differences are seen"
