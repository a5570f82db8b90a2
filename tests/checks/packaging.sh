#!/usr/bin/env bash
# Checks that the files of packaging/ agree with the build: packaging.sh [ROOT]. Prints each difference.
#   version        of CMakeLists.txt, in each recipe and in CHANGELOG.md
#   names          of Debian's packages, which hold the SONAMEs
#   dependencies   of scripts/packages.txt, in each recipe
#   programs       of tessera_program(), in README.md and in Debian's description
#   C functions    of tessera.h, in Debian's file of symbols
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

failed=0
complain() { echo "$1"; failed=1; }

version=$(sed -n 's/^project(tessera VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[[ $version ]] || { echo "no version in CMakeLists.txt"; exit 1; }
# has FILE TEXT
has() { grep -qF -- "$2" "$1" || complain "$1: expected $2"; }
has packaging/conan/conanfile.py "    version = \"$version\""
has packaging/vcpkg/vcpkg.json "\"version\": \"$version\""
has packaging/homebrew/tessera.rb "  version \"$version\""
has packaging/debian/changelog "tessera ($version) "
has CHANGELOG.md "## $version"

minor=${version%.*}
abi=$(sed -n 's/^#define TESSERA_ABI_VERSION \([0-9]*\).*/\1/p' include/tessera.h)
for package in "libtessera$minor" "libtessera-c$abi" libtessera-dev tessera-tools; do
  has packaging/debian/control "Package: $package"
  [[ -e packaging/debian/$package.install ]] || complain "packaging/debian/$package.install is missing"
done
symbols=packaging/debian/libtessera-c$abi.symbols
# shellcheck disable=SC2016  # awk's
difference=$(diff <(grep -oE '^TESSERA_API [^(]*\(' include/tessera.h | grep -oE 'tessera_[a-z0-9_]+' | sort) \
  <(sed -n "s/^ \(tessera_[a-z0-9_]*\)@TESSERA_C_$abi .*/\1/p" "$symbols" | sort) || true)
[[ ! $difference ]] || complain "$symbols: < in tessera.h alone, > there alone
$difference"

# dependency SET PACKAGE...: of the tree's own list.
while read -r package; do
  case $package in
    g++ | cmake | pkg-config) ;;  # build-essential, and with another name in each recipe
    *) has packaging/debian/control " $package" ;;
  esac
  has packaging/docker/Dockerfile " $package "
done < <(awk '$1 == "build" || $1 == "serve" { print $2 }' scripts/packages.txt)
libraries=0
while read -r library; do
  [[ $library != cli11 ]] || continue  # of the programs, which these recipes leave out
  libraries=$((libraries + 1))
  has packaging/conan/conanfile.py "self.requires(\"$library/"
  grep -q "^$library/" packaging/conan/debian.profile || complain "packaging/conan/debian.profile: expected $library"
  has packaging/vcpkg/vcpkg.json "\"$library\""
  has packaging/homebrew/tessera.rb "depends_on \"$library\""
done < <(awk '$1 == "build" { print $2 }' scripts/packages.txt | sed -n 's/^lib\(.*\)-dev$/\1/p')
((libraries > 2)) || complain "scripts/packages.txt names $libraries libraries"

programs=0
while read -r program; do
  programs=$((programs + 1))
  grep '^| Programs |' README.md | grep -qF "\`$program\`" || complain "README.md: its programs lack $program"
  has packaging/debian/control "tessera-${program#tessera-}"
done < <(grep -rhoE --include=CMakeLists.txt '^tessera_program\([a-z-]+' examples tools bench | sed 's/.*(//')
((programs > 5)) || complain "$programs programs"

((!failed)) && echo "$version, $libraries libraries, $programs programs, $(wc -l < "$symbols") symbols"
exit "$failed"
