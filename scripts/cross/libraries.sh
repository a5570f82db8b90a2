# Builds the libraries that tessera needs for another system, from the source packages of this machine's Debian. check-windows and
# check-macos source this file after setup.sh.
# shellcheck shell=bash

cross=$root/build/cross

skipped() { say "SKIPPED: $*"; exit 77; }

# cross_source PACKAGE: unpacks the source of a Debian package in $cross/sources/PACKAGE.
cross_source() {
  local package=$1 sources=$cross/sources archive base apt_options
  [[ -e $sources/$package/.whole ]] && return
  mkdir -p "$cross/apt/lists/partial" "$cross/apt/cache/archives/partial" "$sources/$package" || return 1
  # The sources come from the server of the binary packages. apt-get gets a list of its own for them, so the machine's settings do not
  # change.
  base=$(apt-get download --print-uris libutf8proc-dev 2>/dev/null | sed -n "s|^'\(.*\)/pool/.*|\1|p")
  [[ $base ]] || { say "apt-get does not know from where libutf8proc-dev comes"; return 1; }
  printf 'deb-src %s %s main\n' "$base" "$(. /etc/os-release && echo "$VERSION_CODENAME")" >"$cross/apt/sources.list"
  apt_options=(-qq -o Dir::Etc::SourceList="$cross/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$cross/apt/lists"
    -o Dir::Cache="$cross/apt/cache" -o APT::Sandbox::User=root)
  [[ -e $cross/apt/.updated ]] || apt-get "${apt_options[@]}" update || return 1
  touch "$cross/apt/.updated"
  (cd "$sources/$package" && apt-get "${apt_options[@]}" source --download-only "$package") || return 1
  archive=$(find "$sources/$package" -maxdepth 1 -name '*.orig.tar.*' ! -name '*.asc' | head -n 1)
  tar -xf "$archive" -C "$sources/$package" --strip-components=1 || return 1
  touch "$sources/$package/.whole"
}

# cross_library PACKAGE TOOLCHAIN OPTIONS...: builds a library with CMake, and installs it in $TESSERA_CROSS_PREFIX.
cross_library() {
  local package=$1 toolchain=$2 build=$TESSERA_CROSS_PREFIX/build/$1
  shift 2
  [[ -e $build/.installed ]] && return
  cross_source "$package" || return 1
  cmake -S "$cross/sources/$package" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$TESSERA_CROSS_PREFIX" -DBUILD_SHARED_LIBS=OFF "$@" &&
    ninja -C "$build" -j 2 install || return 1
  touch "$build/.installed"
}

# cross_openssl TARGET PREFIX: builds a static OpenSSL with OpenSSL's own build system, and installs it. TARGET is OpenSSL's name of the
# system, PREFIX the beginning of the names of the compiler's programs. Leaves out what TLS 1.2 and later do not need, which halves the
# time.
cross_openssl() {
  local build=$TESSERA_CROSS_PREFIX/build/openssl
  [[ -e $build/.installed ]] && return
  cross_source openssl || return 1
  mkdir -p "$build"
  (cd "$build" && "$cross/sources/openssl/Configure" "$1" --cross-compile-prefix="$2" --prefix="$TESSERA_CROSS_PREFIX" --libdir=lib -O1 no-shared \
    no-tests no-legacy no-engine no-dso no-module no-cmp no-cms no-ct no-ts no-gost no-idea no-camellia no-aria no-seed no-sm2 no-sm3 no-sm4 \
    no-bf no-cast no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool no-rmd160 no-siphash no-scrypt no-srp no-srtp no-dtls no-ssl3 no-comp no-ui-console &&
    make -j 2 build_generated && make -j 2 build_libs && make install_dev) || return 1
  touch "$build/.installed"
}

# cross_headers NAME...: links libraries that consist of headers from this machine's /usr/include, so that the compiler sees no other
# headers.
cross_headers() {
  local name
  mkdir -p "$TESSERA_CROSS_PREFIX/include"
  for name in "$@"; do ln -sfn "/usr/include/$name" "$TESSERA_CROSS_PREFIX/include/$(basename "$name")"; done
}

# cross_package NAME TARGET FOLDER: writes a CMake package for headers in FOLDER of the prefix.
cross_package() {
  local folder=$TESSERA_CROSS_PREFIX/lib/cmake/$1
  mkdir -p "$folder"
  printf 'if(NOT TARGET %s)\n  add_library(%s INTERFACE IMPORTED)\n  set_target_properties(%s PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "%s")\nendif()\n' \
    "$2" "$2" "$2" "$TESSERA_CROSS_PREFIX/$3" >"$folder/$1Config.cmake"
}

# cross_libraries TOOLCHAIN: provides all libraries except OpenSSL.
cross_libraries() {
  cross_headers xxhash.h xxh3.h CLI nlohmann boost catch2 eigen3
  cross_package CLI11 CLI11::CLI11 include
  cross_package nlohmann_json nlohmann_json::nlohmann_json include
  cross_package Eigen3 Eigen3::Eigen include/eigen3
  cross_library pcre2 "$1" -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DPCRE2_SUPPORT_UNICODE=ON -DPCRE2_SUPPORT_JIT=ON &&
    cross_library utf8proc "$1" -DUTF8PROC_ENABLE_TESTING=OFF &&
    cross_library fmtlib "$1" -DFMT_TEST=OFF -DFMT_DOC=OFF
}
