#!/usr/bin/env bash
# The C# file over the C library, under mono: csharp.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
for tool in mcs mono; do
  command -v "$tool" >/dev/null || { echo "SKIPPED tessera for C#: no $tool"; exit 77; }
done
mkdir -p "$work"
mcs -warnaserror -out:"$work/Test.exe" "$source/bindings/csharp/Tessera.cs" "$source/bindings/csharp/Test.cs"
LD_LIBRARY_PATH=$library timeout 60 mono "$work/Test.exe" "$model"
