# Functions that install missing packages, configure a preset and build it. The other scripts source this file. Messages go to standard
# error, because standard output belongs to the program that a script runs.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Options of the release tree of scripts/test, which has everything. Programs are optimised less than users' programs are, because that
# takes half of their compile time. CUDA kernels are compiled for a device only where there is a GPU. Elsewhere they become PTX without
# optimisation in a sixth of the time, and what only ptxas finds is left to gpu-check.
has_gpu() { [[ -e /dev/nvidiactl || -e /dev/dxg ]]; }
everything=(-DTESSERA_BUILD_TESTS=ON -DTESSERA_BUILD_BENCH=ON -DTESSERA_KERNEL_SETS=all -DTESSERA_CUDA=AUTO
  -DTESSERA_CUDA_ARCHITECTURES=80 -DTESSERA_CUDA_OPTIMISATION="$(has_gpu || echo -O0)" -DTESSERA_UNITS=12
  -DTESSERA_PROGRAM_OPTIMISATION=-O1)

say() { printf '%s\n' "$*" >&2; }

# packages_missing SET...: prints the packages of the sets that are not installed. Prints nothing on a system without dpkg, where CMake says
# what is missing.
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
    [[ -t 2 ]] || as_root+=(-n)  # there is no terminal to type a password
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

# packages_need SET...: installs the missing packages of the sets. Ends the script if that fails.
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

# packages_want SET: tries to install the missing packages of the set, once in a build tree. Goes on if that fails.
packages_want() {
  local missing tried="$root/build/.tried-$1"
  [[ -e $tried ]] && return
  mapfile -t missing < <(packages_missing "$1")
  if ((${#missing[@]})) && ! packages_install "${missing[@]}"; then
    say "Going on without: ${missing[*]}"
  fi
  touch "$tried"
}

# logged TITLE LOG COMMAND...: runs a command with its output in the log. Shows a line of progress if the command takes longer than a
# second, and the end of the log if the command fails.
logged() {
  local title=$1 log=$2 status=0 pid
  shift 2
  show_progress "$title" "$log" &
  pid=$!
  # shellcheck disable=SC2064  # the trap is for this value of $pid
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
  # sleep runs in the background, because a trap interrupts `wait` at once, but would wait for the end of a sleep in the foreground. 9>&-:
  # the sleep that is left over must not keep the lock.
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

# lock: waits until no other script builds in this tree. unlock: lets the next script build.
lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  flock -n 9 || { say "Waiting for another build in $root/build"; flock 9; }
}
unlock() { exec 9>&-; }

# configure PRESET [CMAKE OPTION...]: runs CMake if the tree, the presets or the options are new. ninja notices all other changes.
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

# build_program TARGET ARGUMENTS...: builds a program for this machine only, which takes minutes: with kernels for this machine's
# instruction set, and with CUDA only if there is a GPU or the program's ARGUMENTS contain "cuda".
build_program() {
  local target=$1 options=(-DTESSERA_BUILD_TESTS=OFF -DTESSERA_BUILD_BENCH=OFF -DTESSERA_KERNEL_SETS=native)
  shift
  if has_gpu || [[ " $* " == *cuda* ]]; then
    options+=(-DTESSERA_CUDA=AUTO)
  else
    options+=(-DTESSERA_CUDA=OFF)
  fi
  # A tree that scripts/test has made keeps its options.
  if grep -qs '^TESSERA_BUILD_TESTS:BOOL=ON' "$root/build/release/CMakeCache.txt"; then
    options=("${everything[@]}")
  fi
  configure release "${options[@]}" || exit 1
  build release "$target" || exit 1
}

# build PRESET [NINJA ARGUMENT...]: builds a configured preset.
build() {
  local preset=$1
  shift
  logged "Building $preset" "$root/build/$preset.log" ninja -C "$root/build/$preset" "$@"
}
