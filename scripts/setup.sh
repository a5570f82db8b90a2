# Sourced by the other scripts: install what is missing, configure a preset, build it. Everything that is said goes to
# standard error; standard output belongs to the program that is run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The release tree with all that there is, as scripts/test has it. Kernels for Hopper are translated by its driver: that nvcc
# compiles them twice is gpu-check's.
# shellcheck disable=SC2034  # other scripts use it
everything=(-DTESSERA_BUILD_TESTS=ON -DTESSERA_BUILD_BENCH=ON -DTESSERA_KERNEL_SETS=all -DTESSERA_CUDA=AUTO
  -DTESSERA_CUDA_ARCHITECTURES=80 -DTESSERA_UNITS=12 -DTESSERA_PROGRAM_OPTIMISATION=-O1)

say() { printf '%s\n' "$*" >&2; }

# packages_missing SET...: the sets' packages that are not installed. Nothing where there is no dpkg: then CMake says
# what it does not find.
packages_missing() {
  command -v dpkg-query >/dev/null || return 0
  local set wanted=()
  for set in "$@"; do
    mapfile -t -O "${#wanted[@]}" wanted < <(awk -v set="$set" '$1 == set { print $2 }' "$root/scripts/packages.txt")
  done
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort)
}

apt() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { say "not root, and there is no sudo"; return 1; }
    as_root=(sudo)
    [[ -t 2 ]] || as_root+=(-n)  # nobody there to type a password
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@"
}

# packages_install PACKAGE...
packages_install() {
  say "Installing with apt-get: $*"
  mkdir -p "$root/build"
  apt update -qq || return 1
  logged "Installing packages" "$root/build/packages.log" apt install -y --no-install-recommends "$@"
}

# packages_need SET...: installed at the end, or the script ends.
packages_need() {
  local missing
  mapfile -t missing < <(packages_missing "$@")
  ((${#missing[@]})) || return 0
  if ! packages_install "${missing[@]}"; then
    say "Could not install what is missing. Install these packages, then run this again:"
    say "  apt-get install ${missing[*]}"
    exit 1
  fi
}

# packages_want SET: tried once in a build tree.
packages_want() {
  local missing tried="$root/build/.tried-$1"
  [[ -e $tried ]] && return
  mapfile -t missing < <(packages_missing "$1")
  if ((${#missing[@]})) && ! packages_install "${missing[@]}"; then
    say "Going on without: ${missing[*]}"
  fi
  touch "$tried"
}

# logged TITLE LOG COMMAND...: the output goes to the log; a progress line while it takes longer than a second; the end
# of the log if it fails.
logged() {
  local title=$1 log=$2 status=0 pid
  shift 2
  show_progress "$title" "$log" &
  pid=$!
  # shellcheck disable=SC2064  # this process, now
  trap "kill $pid 2>/dev/null || true" EXIT
  "$@" </dev/null >"$log" 2>&1 || status=$?
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  trap - EXIT
  [[ -t 2 ]] && printf '\r\e[K' >&2
  if ((status)); then
    tail -n 40 "$log" >&2
    say "$title failed; all of its output: $log"
  fi
  return "$status"
}

show_progress() {
  local title=$1 log=$2 seconds=0 step
  trap 'exit 0' TERM
  # In the background and waited for: a trap runs at once then, and not when the second is over. Without the lock (9),
  # which what is left of the second would hold.
  while sleep 1 >/dev/null 2>&1 9>&- & wait $!; do
    ((++seconds))
    step=$(tail -n 1 "$log" 2>/dev/null | grep -o '^\[[0-9]*/[0-9]*\]' || true)
    if [[ -t 2 ]]; then
      printf '\r\e[K%s %s' "$title" "$step" >&2
    elif ((seconds % 20 == 1)); then
      say "$title $step"
    fi
  done
}

# One build at a time in this tree.
lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  flock -n 9 || { say "Waiting for another build in $root/build"; flock 9; }
}
unlock() { exec 9>&-; }

# configure PRESET [CMAKE OPTION...]: only where the tree, the presets or the options are new; ninja notices the rest.
configure() {
  local preset=$1 dir="$root/build/$1"
  shift
  local state="$* CI=${CI:-}"
  if [[ -f $dir/build.ninja && $dir/.configured -nt $root/CMakePresets.json && $(<"$dir/.configured") == "$state" ]]; then
    return
  fi
  logged "Configuring $preset" "$root/build/$preset.log" cmake -S "$root" --preset "$preset" "$@" || return
  printf '%s\n' "$state" >"$dir/.configured"
}

# build_program TARGET ARGUMENTS...: for this machine alone, and so in minutes: kernels for its own instruction set, CUDA only
# with a GPU or if the program's arguments ask for it. Many files at a time: what they include is read once for all of them.
build_program() {
  local target=$1 options=(-DTESSERA_BUILD_TESTS=OFF -DTESSERA_BUILD_BENCH=OFF -DTESSERA_KERNEL_SETS=native)
  shift
  if [[ -e /dev/nvidiactl || -e /dev/dxg || " $* " == *cuda* ]]; then
    options+=(-DTESSERA_CUDA=AUTO)
  else
    options+=(-DTESSERA_CUDA=OFF)
  fi
  # A tree that scripts/test has made keeps what it has: everything.
  if grep -qs '^TESSERA_BUILD_TESTS:BOOL=ON' "$root/build/release/CMakeCache.txt"; then
    options=("${everything[@]}")
  fi
  configure release "${options[@]}" || exit 1
  build release "$target" || exit 1
}

# build PRESET [NINJA ARGUMENT...]
build() {
  local preset=$1
  shift
  logged "Building $preset" "$root/build/$preset.log" ninja -C "$root/build/$preset" "$@"
}
