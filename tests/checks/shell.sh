#!/usr/bin/env bash
# What shellcheck says about our scripts, which is nothing: shell.sh ROOT
set -euo pipefail
cd "$1"
command -v shellcheck >/dev/null || { echo "SKIPPED scripts under shellcheck: not installed"; exit 77; }
mapfile -t scripts < <(grep -rlE '^#!.*\b(ba)?sh$' .ci scripts tests | sort)
((${#scripts[@]} > 5)) || { echo "no scripts under $PWD"; exit 1; }
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts"
