#!/usr/bin/env bash
# Installs a build tree, and checks that the programs that README names are there: install.sh CMAKE BUILD_DIR PREFIX README
set -euo pipefail
cmake=$1 build=$2 prefix=$3 readme=$4
rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix"
# shellcheck disable=SC2016  # Markdown's quotes
mapfile -t programs < <(grep '^| Programs |' "$readme" | grep -o '`[a-z-]*`' | tr -d '`')
((${#programs[@]} > 5)) || { echo "README names ${#programs[@]} programs"; exit 1; }
failed=0
for program in "${programs[@]}"; do
  [[ -e $build/bin/$program ]] || continue  # what it needs was not there when this tree was configured
  installed=$prefix/bin/tessera-${program#tessera-}
  [[ -x $installed ]] || { echo "not installed: $installed"; failed=1; }
done
exit "$failed"
