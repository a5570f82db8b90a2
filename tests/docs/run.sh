#!/usr/bin/env bash
# Runs a program of a page as the page says: run.sh PROGRAM ARGUMENTS_FILE SOURCE_DIR [PRINTS_FILE]
# In the arguments {model} and {draft} are the models of models/, {adapter} is an adapter for {model}, {tmp} is a folder that is empty.
set -euo pipefail
program=$1 arguments_file=$2 source=$3 prints=${4:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
arguments=$(<"$arguments_file")
arguments=${arguments//'{model}'/$source/models/tessera-stories.gguf}
arguments=${arguments//'{draft}'/$source/models/tessera-stories-draft.gguf}
arguments=${arguments//'{adapter}'/$source/tests/data/stories-adapter.gguf}
arguments=${arguments//'{tmp}'/$tmp}
eval "set -- $arguments"
output=$("$program" "$@")
printf '%s\n' "$output"
if [[ $prints && $output != "$(<"$prints")" ]]; then
  echo "the page says that it prints:"
  cat "$prints"
  exit 1
fi
