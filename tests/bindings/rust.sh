#!/usr/bin/env bash
# The Rust file over the C library: rust.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
command -v rustc >/dev/null || { echo "SKIPPED tessera for Rust: no rustc"; exit 77; }
mkdir -p "$work"
# The example at the top of the file compiles.
{
  echo '#[allow(dead_code)] #[path = "tessera.rs"] mod tessera;'
  echo 'use tessera::{Engine, Scheduler};'
  echo 'fn main() -> Result<(), Box<dyn std::error::Error>> {'
  # shellcheck disable=SC2016  # Markdown's backquotes
  sed -n '/^\/\/! ```ignore/,/^\/\/! ```$/s/^\/\/! \{0,1\}//p' "$source/bindings/rust/tessera.rs" | grep -v '^```'
  echo 'Ok(()) }'
} >"$work/example.rs"
cp "$source/bindings/rust/tessera.rs" "$work/"
rustc --edition 2021 -D warnings --emit=metadata "$work/example.rs" -o "$work/example.rmeta"
rustc --edition 2021 -O -D warnings "$source/bindings/rust/test.rs" -L "native=$library" -C "link-arg=-Wl,-rpath,$library" -o "$work/test"
"$work/test" "$model"
