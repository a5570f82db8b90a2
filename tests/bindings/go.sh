#!/usr/bin/env bash
# The Go package over the C library: go.sh SOURCE WORK LIBRARY_FOLDER MODEL
set -euo pipefail
source=$1 work=$2 library=$3 model=$4
command -v go >/dev/null || { echo "SKIPPED tessera for Go: no go"; exit 77; }
mkdir -p "$work"
export CGO_ENABLED=1 GOCACHE=$work/cache GOPATH=$work/path GOPROXY=off GOFLAGS=-mod=mod MODEL=$model
export CGO_CFLAGS="-O2 -I$source/include" CGO_LDFLAGS="-L$library -Wl,-rpath,$library"
cd "$source/bindings/go"
go test -count=1 -v .
