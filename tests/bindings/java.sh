#!/usr/bin/env bash
# The Java class and its native half over the C library: java.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
command -v javac >/dev/null || { echo "SKIPPED tessera for Java: no javac"; exit 77; }
release=$(javac -version 2>&1 | grep -oE '[0-9]+' | head -n 1)
((release >= 17)) || { echo "SKIPPED tessera for Java: javac $release, and 17 or later is needed"; exit 77; }
home=$(dirname "$(dirname "$(realpath "$(command -v javac)")")")
[[ -e $home/include/linux/jni_md.h ]] || { echo "SKIPPED tessera for Java: no jni_md.h in $home/include/linux"; exit 77; }
mkdir -p "$work"
cc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -I"$home/include" -I"$home/include/linux" -I"$source/include" \
  "$source/bindings/java/tessera_jni.c" -L"$library" -ltessera-c "-Wl,-rpath,$library" -o "$work/libtessera_jni.so"
"$home/bin/javac" -Xlint:all -Werror -d "$work" "$source/bindings/java/Tessera.java" "$source/bindings/java/Test.java"
"$home/bin/java" -Xcheck:jni -Djava.library.path="$work" -cp "$work" Test "$model"
