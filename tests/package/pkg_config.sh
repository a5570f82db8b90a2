#!/usr/bin/env bash
# A consumer without CMake: pkg_config.sh PREFIX COMPILER MODEL. The tree is moved first: its .pc file must not care.
set -euo pipefail
prefix=$1 compiler=$2 model=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$prefix" "$work/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name tessera.pc)")
export PKG_CONFIG_PATH
for static in "" --static; do
  # shellcheck disable=SC2046,SC2086  # words are wanted
  "$compiler" $(pkg-config $static --cflags tessera) "$(dirname "$0")/consumer/plain.cpp" \
    -o "$work/plain" $(pkg-config $static --libs tessera)
  "$work/plain" "$model"
done
