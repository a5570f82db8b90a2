#!/usr/bin/env bash
# Runs the tests of the Python package: run.sh FOLDER_OF_THE_PACKAGE PYTHON
set -euo pipefail
package=$1 python=$2
[[ $package ]] || { echo "SKIPPED the Python package: it was not built (-DTESSERA_BUILD_PYTHON=ON needs Python 3.10, nanobind and numpy)"; exit 77; }
"$python" -c 'import pytest, numpy, nanobind_backend' 2>/dev/null ||
  { echo "SKIPPED the Python package: $python lacks pytest, numpy or nanobind-backend"; exit 77; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$package"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$package exec "$python" -m pytest -q -p no:cacheprovider "$here"
