#!/usr/bin/env bash
# A good neighbour in one binary (contract 5), seen in the symbols: symbols.sh libtessera.a | libtessera.so INCLUDE_DIR
# The archive: names of ours only, nothing that runs before main(), nothing that ends the process, prints, or reads the
# environment. The shared library: exports of ours only, and of these what the headers in INCLUDE_DIR declare.
set -euo pipefail
library=$1 include=${2:-}

# What the archive may not call. Not here, because the compiler itself emits it: std::terminate, in the landing pads of
# noexcept functions (whose bodies stand inside guard()).
forbidden='
  abort exit _exit _Exit quick_exit atexit at_quick_exit __assert_fail __assert_perror_fail raise kill
  _ZN3fmt2v96detail11assert_failEPKciS3_ _ZSt21__glibcxx_assert_failPKciS0_S0_
  getenv secure_getenv setenv unsetenv putenv clearenv environ setlocale
  signal sigaction sigprocmask pthread_sigmask
  printf vprintf puts putchar fprintf vfprintf __printf_chk __fprintf_chk __vfprintf_chk perror stdout stderr
  _ZSt4cout _ZSt4cerr _ZSt4clog
  rand srand random srandom system popen fork'

nm_flags=(--print-file-name)
[[ $library == *.so* ]] && nm_flags+=(--dynamic)

nm "${nm_flags[@]}" "$library" | awk -v forbidden="$forbidden" -v dynamic="${#nm_flags[@]}" '
  BEGIN {
    dynamic = dynamic > 1
    n = split(forbidden, list)
    for (i = 1; i <= n; ++i) no[list[i]] = 1
  }

  # The first namespace of a mangled name: "tessera", "std", "fmt", ...; "C" for one that is not mangled; "rtti" for
  # type information of types that have none (pointers, functions).
  function owner(name, special) {
    sub(/^DW\.ref\./, "", name)
    if (name !~ /^_Z/) return "C"
    sub(/^_Z/, "", name)
    special = name ~ /^T[IS]/
    while (sub(/^(T[VTIS]|GV|GR|TH|TW|Th[n0-9]+_|Tv[n0-9]+_[n0-9]+_|Z)/, "", name)) {}
    sub(/^N/, "", name)
    sub(/^[KVRO]+/, "", name)
    if (name ~ /^7tessera/) return "tessera"
    if (name ~ /^S[tabsiod]/) return "std"
    if (name ~ /^3fmt/) return "fmt"
    if (name ~ /^9__gnu_cxx/) return "std"
    return special ? "rtti" : "other"
  }

  function complain(why) {
    print why ": " $NF " (" $1 ")"
    bad = 1
  }

  { type = $(NF - 1); name = $NF; sub(/@.*/, "", name); ++seen }

  type == "U" {
    if (!dynamic && name in no) complain("not for a library")
    next
  }
  type ~ /^[TDBRGSCi]$/ {
    who = owner(name)
    if (who != "tessera" && !(who == "C" && name ~ /^tessera_/)) complain("not a name of ours")
  }
  type ~ /^[WVu]$/ {
    who = owner(name)
    if (dynamic ? who != "tessera" : who !~ /^(tessera|std|fmt|rtti)$/ && name !~ /^(DW\.ref\.)?(__gxx_personality_v0|__clang_call_terminate)$/)
      complain("not a name of ours, weak")
  }

  END {
    if (!seen) { print "no symbols"; bad = 1 }
    print seen " symbols"
    exit bad
  }'

if [[ $library == *.a ]] && before_main=$(objdump -h "$library" | awk '
    /file format/ { object = $1 }
    $2 ~ /^\.(init_array|ctors|preinit_array)/ { print "runs before main(): " object, $2 }') && [[ $before_main ]]; then
  echo "$before_main"
  exit 1
fi

# An export's scopes are namespaces and classes that the headers define, and its name is a word of theirs.
if [[ $library == *.so ]]; then
  awk '
    FNR == NR { text = text $0 "\n"; next }
    FNR == 1 {
      while (match(text, /[A-Za-z_0-9]+|[:;{}()]/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        words[word] = 1
        if (word ~ /^(class|struct|namespace)$/) { kind = word; scope = "" }
        else if (word ~ /[;}()]/) kind = ""
        else if (word == "{") { if (kind != "") scopes[scope] = 1; kind = "" }
        else if (kind == "namespace" && word != ":") scopes[scope = word] = 1
        else if (kind != "" && scope == "" && word != "nodiscard") scope = word
      }
    }
    {
      sub(/^[0-9a-f]* *[A-Za-z] /, "")
      name = $0
      sub(/^(typeinfo name|typeinfo|vtable|VTT|guard variable) for |^(non-)?virtual thunk to /, "", name)
      gsub(/\[abi:[a-z0-9]*\]/, "", name)
      sub(/operator[^a-z_].*/, "operator", name)
      while (sub(/<[^<>]*>/, "", name)) {}
      sub(/\(.*/, "", name)
      n = split(name, parts, "::")
      sub(/^~/, "", parts[n])
      good = parts[n] in words
      for (i = 1; i < n; ++i) good = good && parts[i] in scopes
      if (!good) { print "exported, but no public header declares it: " $0; bad = 1 }
      ++seen
    }
    END { print seen " exports"; exit bad || !seen }
  ' <(find "${include:?the public headers}" -name '*.hpp' -exec cat {} + | sed 's,//.*,,') \
    <(nm --dynamic --defined-only --demangle "$library")
fi
