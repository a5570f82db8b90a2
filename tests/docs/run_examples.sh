#!/usr/bin/env bash
# Runs the examples of the public headers in a folder with the files that they name: run_examples.sh PROGRAM SOURCE_DIR [HEADER]
set -euo pipefail
program=$(realpath "$1") source=$(realpath "$2")
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp "$source/models/tessera-stories.gguf" "$tmp/model.gguf"
cp "$source/tests/data/stories-adapter.gguf" "$tmp/pirate.gguf"
cd "$tmp"
"$program" "$@"
