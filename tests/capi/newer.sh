#!/usr/bin/env bash
# A program runs with a library that is newer than the one it was linked with: newer.sh PROGRAM FOLDER_OF_THE_LIBRARY MODEL ADAPTER
set -euo pipefail
program=$1 folder=$2 model=$3 adapter=$4
n=$(nm -D --defined-only "$folder/libtessera-c.so" | grep -c ' tessera_newer_[0-9]@@TESSERA_C_0$')
((n == 10)) || { echo "the newer library exports $n functions more"; exit 1; }
export LD_LIBRARY_PATH=$folder
ldd "$program" | grep -F "libtessera-c.so.0 => $folder/" || { echo "the program takes another library:"; ldd "$program"; exit 1; }
"$program" "$model" "$adapter"
