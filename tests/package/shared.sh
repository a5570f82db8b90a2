#!/usr/bin/env bash
# The shared library, as users build it: built with generate, installed, linked by a consumer, and exporting the public
# interface only. An installed program finds it.
# shared.sh SOURCE_DIR WORK_DIR COMPILER WERROR CMAKE_OPTION...
# What is exported does not depend on how well it is optimised, on which instruction sets there are, nor on how many files are a unit. The
# programs that need Boost or SQLite are left out: they link the library as generate does.
set -euo pipefail
source=$1 work=$2 compiler=$3 werror=$4
shift 4
cmake -G Ninja -S "$source" -B "$work/library" -DBUILD_SHARED_LIBS=ON -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DTESSERA_UNITS=2 \
  -DTESSERA_KERNEL_OPTIMISATION=-O0 -DTESSERA_KERNEL_SETS=native -DTESSERA_BUILD_C=OFF \
  -DTESSERA_CUDA=OFF -DTESSERA_WERROR="$werror" \
  -DTESSERA_SERVER=OFF -DTESSERA_RAG=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_INSTALL_PREFIX="$work/prefix" \
  -DTESSERA_BUILD_TESTS=OFF -DTESSERA_BUILD_BENCH=OFF -DTESSERA_BUILD_TOOLS=OFF
cmake --build "$work/library"
rm -rf "$work/prefix"
cmake --install "$work/library"
library=$(find "$work/prefix" -name libtessera.so)
# The headers in unstable/ are not installed: our tools include them, and link what they declare.
bash "$source/tests/checks/symbols.sh" "$library" "$source/include"
"$work/prefix/bin/tessera-generate" --version
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
[[ $soname =~ ^libtessera\.so\.[0-9]+\.[0-9]+$ && -e $(dirname "$library")/$soname ]] || { echo "soname: $soname"; exit 1; }
bash "$(dirname "$0")/consume.sh" "$work/consumer" -DHOW=find_package -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" "$@"
