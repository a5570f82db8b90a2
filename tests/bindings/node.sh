#!/usr/bin/env bash
# The addon and the module for Node over the C library: node.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
command -v node >/dev/null || { echo "SKIPPED tessera for Node: no node"; exit 77; }
headers=$(dirname "$(dirname "$(realpath "$(command -v node)")")")/include/node
[[ -e $headers/node_api.h ]] || { echo "SKIPPED tessera for Node: no node_api.h in $headers"; exit 77; }
mkdir -p "$work"
cp "$source"/bindings/node/*.js "$work"
cc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -I"$headers" -I"$source/include" "$source/bindings/node/tessera.c" \
  -L"$library" -ltessera-c "-Wl,-rpath,$library" -o "$work/tessera.node"
node --unhandled-rejections=strict "$work/test.js" "$model"
