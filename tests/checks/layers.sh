#!/usr/bin/env bash
# Who includes whom: layers.sh [ROOT]. The table is docs/explanation/layers.md's, one line a layer; a layer sees itself and what is
# listed. Prints each include that breaks it.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

mapfile -t files < <(find include src cuda capi python examples tools -type f \
  \( -name '*.hpp' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort)
((${#files[@]})) || { echo "no sources under $PWD"; exit 1; }

awk '
  BEGIN {
    for (i = 1; i < ARGC; ++i) known[ARGV[i]] = 1
    sees["core"] = ""
    sees["os"] = "core"
    sees["formats"] = "core"
    sees["json"] = "core"
    sees["files"] = "core os formats json"                  # sizes of tensors are the formats'\''
    sees["kv"] = "core os formats"
    sees["backend"] = "core formats files kv"
    sees["text"] = "core formats files json"
    sees["sampling"] = "core"
    sees["grammar"] = "core formats files text sampling json"
    sees["chat"] = "core formats files text sampling json grammar"
    sees["cpu"] = "core os formats kv backend"
    sees["cuda"] = "core os formats kv backend"
    sees["model"] = "core formats files kv backend"
    sees["hub"] = "core os formats files json text model"
    sees["adapters"] = "core os formats files json text model hub"
    sees["heads"] = "core os formats files json model hub"
    sees["ranks"] = "core os kv backend model"
    sees["engine"] = "core os formats files kv backend text sampling model hub adapters heads ranks cpu cuda"
    sees["decoding"] = "core files text sampling model engine"
    sees["scheduler"] = "core formats files kv backend text sampling model engine decoding"
    sees["conversation"] = "core files text sampling json grammar chat engine scheduler"
    sees["capi"] = "core files json kv text sampling grammar chat model engine decoding scheduler conversation"
    sees["python"] = ""                                # public headers, its own, and the names of figures, which it shares with capi
    sees["host"] = "core formats files kv backend text sampling json grammar chat conversation model engine scheduler"   # examples, tools
  }

  # The layer of a path as an #include names it: "files/gguf/gguf.hpp", "tessera/files/gguf.hpp".
  function layer(path, parts, n) {
    sub(/^tessera\//, "", path)
    sub(/^(extend|unstable)\//, "", path)      # the tiers of public headers
    if (path == "version.hpp") return "core"
    if (path == "tessera.hpp") return "host"  # everything
    if (path ~ /(^|\/)tessera\.h$/) return "capi"
    n = split(path, parts, "/")
    if (n == 1) return "engine"
    return parts[1] in sees ? parts[1] : "unknown"
  }

  function complain(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0
    bad = 1
  }

  FNR == 1 {
    public = FILENAME ~ /^include\//
    path = FILENAME
    sub(/^(include\/tessera|src)\//, "", path)
    if (FILENAME ~ /^(examples|tools)\//) from = "host"
    else if (FILENAME ~ /^cuda\//) from = "cuda"
    else if (FILENAME ~ /^capi\//) from = "capi"
    else if (FILENAME ~ /^python\//) from = "python"
    else from = layer(path)
    if (from == "unknown") complain("a directory that no layer has")
  }

  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    match($0, /[<"][^>"]*[>"]/)
    name = substr($0, RSTART + 1, RLENGTH - 2)
    quoted = substr($0, RSTART, 1) == "\""
    ours = name ~ /^tessera\// || quoted
    if (public && quoted) complain("a public header includes with <>")
    else if (public && !ours && name !~ /^[a-z_]+$/ && FILENAME != "include/tessera/eigen.hpp" && !(from == "capi" && name ~ /^std(def|int)\.h$/))
      complain("public headers see the standard library and tessera only")
    if (!ours) next
    unstable = name ~ /^tessera\/unstable\//
    if (unstable && public && FILENAME !~ /^include\/tessera\/unstable\//)
      complain("headers that are installed do not see unstable/")
    if (unstable && FILENAME ~ /^examples\//) complain("examples see what is installed, and unstable/ is not")
    if (name == "engine/states.hpp" && FILENAME !~ /^src\/engine\/.*\.cpp$/)
      complain("the states are for the .cpp files of src/engine: others see engine/views.hpp, and a header names State alone")
    if (from == "capi" && quoted && name ~ /\// && !("capi/" name in known)) complain("capi/ sees public headers only")
    if (from == "python") {
      beside = FILENAME
      sub(/[^\/]*$/, "", beside)
      if (quoted && name != "values/figure_fields.hpp" && !(beside name in known) && !("python/src/" name in known)) complain("python/ sees public headers, and of capi/ figure_fields.hpp only")
      else if (unstable) complain("the Python package sees what is installed, and unstable/ is not")
      next
    }
    if (from == "host") {
      if (!quoted) next
      split(FILENAME, folders, "/")
      if (folders[1] "/" folders[2] "/" name in known) next  # the program'\''s own
      if (name ~ /(^|\/)\.\.\// || layer(name) in sees && name ~ /\// && layer(name) != "engine")
        complain("programs see public headers only")
      next
    }
    if (quoted && (name !~ /\// || from == "capi")) next  # beside the file itself
    to = layer(name)
    if (name ~ /\.\./ || to == "unknown") complain("includes name the path from include/ or src/")
    else if (!public && from != "files" && from != "capi" && name ~ /(^|\/)files\/(gguf|model_file)/)
      complain("a model is a ModelSource here; GGUF is known in files/ and to programs")
    else if (to != from && index(" " sees[from] " ", " " to " ") == 0) complain(from " does not see " to)
  }

  END { exit bad }
' "${files[@]}"
# Tests may include everything but the states, which tests/engine/inside.cpp alone opens.
if [[ -d tests ]]; then
  seen=$(grep -rl --include='*.hpp' --include='*.cpp' '^#include "engine/states.hpp"' tests | grep -v '^tests/engine/inside.cpp$' || true)
  [[ -z $seen ]] || { echo "the states are for src/engine; tests see engine/inside.hpp of tests: $seen"; exit 1; }
fi
echo "${#files[@]} files"
