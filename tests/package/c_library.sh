#!/usr/bin/env bash
# A C program over the installed C library, as its page says: c_library.sh PREFIX C_COMPILER SOURCE.c MODEL ADAPTER CMAKE_OPTION...
# By pkg-config, with a tree that was moved; and by CMake, with the shared and the static library.
set -euo pipefail
prefix=$1 compiler=$2 source=$3 model=$4 adapter=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$prefix" "$work/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name tessera-c.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # words are wanted
"$compiler" -std=c99 -Wall -Wextra -Werror $(pkg-config --cflags tessera-c) "$source" -o "$work/program" $(pkg-config --libs tessera-c) -lm
LD_LIBRARY_PATH=$(pkg-config --variable=libdir tessera-c) "$work/program" "$model" "$adapter"
needed=$(objdump -p "$work/program" | awk '$1 == "NEEDED" && $2 ~ /tessera/ { print $2 }')
[[ $needed =~ ^libtessera-c\.so\.[0-9]+$ ]] || { echo "the program needs: $needed"; exit 1; }

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C CXX)
find_package(tessera REQUIRED)
foreach(how c c-static)
  add_executable(program-\${how} $source)
  target_link_libraries(program-\${how} PRIVATE tessera::\${how} m)
endforeach()
END
cmake -G Ninja -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" "$@" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/program-c" "$model" "$adapter"
"$work/build/program-c-static" "$model" "$adapter"
