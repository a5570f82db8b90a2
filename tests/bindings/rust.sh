#!/usr/bin/env bash
# The Rust file over the C library: rust.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
command -v rustc >/dev/null || { echo "SKIPPED tessera for Rust: no rustc"; exit 77; }
mkdir -p "$work"
rustc --edition 2021 -O -D warnings "$source/bindings/rust/test.rs" -L "native=$library" -C "link-arg=-Wl,-rpath,$library" -o "$work/test"
"$work/test" "$model"
