#!/usr/bin/env bash
# Completions and manual pages of an installed tree: completions.sh PREFIX. Those of tessera-generate are tried; of the others
# there is one for each program and shell.
set -euo pipefail
prefix=$1
share=$prefix/share
failed=0
complain() { echo "$1"; failed=1; }

for program in "$prefix"/bin/tessera-*; do
  name=${program##*/}
  for script in "bash-completion/completions/$name" "zsh/site-functions/_$name" "fish/vendor_completions.d/$name.fish"; do
    [[ -s $share/$script ]] || complain "not installed: share/$script"
  done
  bash -n "$share/bash-completion/completions/$name" || complain "$name: bash does not read its completion"
done
((!failed)) || exit 1
[[ -x $prefix/bin/tessera-generate ]] || { echo "SKIPPED completions of tessera-generate: not built"; exit 77; }

# bash: what is offered for the last of these words, sorted.
# shellcheck source=/dev/null
source "$share/bash-completion/completions/tessera-generate"
# shellcheck disable=SC2317  # the completion calls it
compopt() { :; }  # bash's own works only while bash completes
offers() {
  COMP_WORDS=(tessera-generate "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _tessera_generate
  printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
}
# expect WHAT OFFERED EXPECTED
expect() { [[ $2 == "$3" ]] || complain "$1: offered \"$2\", expected \"$3\""; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/a model.gguf"
expect "an option" "$(offers --kv-l)" "--kv-layout "
expect "values" "$(offers --kv-layout '')" "contiguous paged "
expect "values after =" "$(offers --kv-layout =)" "contiguous paged "
expect "the beginning of a value after =" "$(offers --kv-layout = p)" "paged "
expect "a file" "$(offers -m "$work/a")" "$work/a model.gguf "
expect "a value that nobody knows" "$(offers --seed '')" " "
expect "words of a choice, and not what stands for a name" "$(offers --tool-choice '')" "auto none required "
[[ " $(offers -) " == *" --version "* ]] || complain "-: --version is not offered"
for option in $("$prefix/bin/tessera-generate" --help | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
  [[ " $(offers "$option")" == *" $option "* ]] || complain "$option of --help is not offered"
done

status=0
"$prefix/bin/tessera-generate" --completion tcsh 2>"$work/error" || status=$?
[[ $status == 2 && $(<"$work/error") == *"not one of bash, zsh, fish"* ]] || complain "--completion tcsh: status $status, $(<"$work/error")"

if command -v zsh >/dev/null; then
  for script in "$share"/zsh/site-functions/_*; do zsh -n "$script" || complain "zsh does not read $script"; done
else
  echo "SKIPPED completions under zsh: not installed"
fi
if command -v systemd-analyze >/dev/null && [[ -e $prefix/lib/systemd/system/tessera-server.service ]]; then
  # The unit names the final place of the program, which may not be there.
  sed "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/tessera-server|" "$prefix/lib/systemd/system/tessera-server.service" >"$work/tessera-server.service"
  systemd-analyze verify --man=no "$work/tessera-server.service" || complain "systemd does not accept tessera-server.service"
fi
if command -v fish >/dev/null; then
  # shellcheck disable=SC2016  # fish's
  offered=$(HOME=$work fish --no-config -c 'source $argv[1]; complete -C "tessera-generate --kv-layout "' "$share/fish/vendor_completions.d/tessera-generate.fish" | cut -f 1 | sort | tr '\n' ' ')
  expect "fish, values" "$offered" "contiguous paged "
else
  echo "SKIPPED completions under fish: not installed"
fi

page=$share/man/man1/tessera-generate.1
if [[ -e $page ]]; then
  for text in '.SH NAME' '.SS "Model and prompt' 'max\\-tokens'; do grep -q -- "$text" "$page" || complain "$page: expected $text"; done
fi
exit "$failed"
