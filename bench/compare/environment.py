"""A virtual environment with the other engines: llama.cpp and ik_llama.cpp, built here with the machine's own flags, OpenVINO and
PyTorch."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tarfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def progress(text: str) -> None:
    """Shows a line that the next call replaces, if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def pip(python: str, *arguments: str, **variables: str) -> bool:
    command = [python, "-m", "pip", "install", "--quiet", *arguments]
    return subprocess.run(command, env=os.environ | variables).returncode == 0


def has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


def install_llama(python: str, flags: str) -> bool:
    log(f"building llama.cpp from source {flags}: some minutes")
    options = f"-DGGML_NATIVE=ON -DMTMD_BUILD=OFF -DCMAKE_C_FLAGS='{flags}' -DCMAKE_CXX_FLAGS='{flags}'"
    return pip(python, "--no-binary", "llama-cpp-python", "--force-reinstall", "--no-cache-dir", "llama-cpp-python",
               CMAKE_ARGS=options, CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count()))


def build_ik(python: str, folder: pathlib.Path) -> str:
    """Builds ik_llama.cpp's libllama.so with the machine's own flags, from the source in its Python package, and returns the path. (The
    package's own build fails, because a file is missing that only its tools need.) Returns "" if the build fails; the package's library
    for AVX2 is measured then."""
    source, build = folder / "ik-source", folder / "ik-build"
    library = build / "src/libllama.so"
    if library.exists():
        return str(library)
    log("building ik_llama.cpp from source: some minutes")
    source.mkdir(exist_ok=True)
    fetch = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(source),
             "ik-llama-cpp-python"]
    if subprocess.run(fetch).returncode != 0:
        log("ik_llama.cpp's source does not download: its package's library for AVX2 is measured instead")
        return ""
    archive = next(source.glob("*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    tree = next(source.glob("ik_llama_cpp_python-*/vendor/ik_llama.cpp"))
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
               "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_CURL=OFF", "-DBUILD_SHARED_LIBS=ON"]
    steps = (["cmake", "-S", str(tree), "-B", str(build), *options],
             ["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", "llama"])
    for step in steps:
        if subprocess.run(step, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            log(f"ik_llama.cpp does not build ({' '.join(step)}): its package's library for AVX2 is measured instead")
            return ""
    return str(library)


def survives(python: str, folder: pathlib.Path) -> bool:
    """Returns whether the build computes a prompt on a small Q8_0 model. Builds with AMX crash on some machines."""
    plain, small = folder / "tiny-F16.gguf", folder / "tiny-Q8_0.gguf"
    worker = [python, str(HERE / "llama_worker.py"), "--model"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([python, str(HERE / "write_gguf.py"), "--shape", "tiny", "--out", str(plain)], check=True)
    subprocess.run([*worker, str(plain), "--quantise", "Q8_0", "--out", str(small)], check=True, **quiet)
    return subprocess.run([*worker, str(small), "--try-prefill"], **quiet).returncode == 0


def prepare(folder: pathlib.Path, wanted: list[str]) -> str:
    """Installs the engines of `wanted` that are missing, and returns the environment's Python. A failed install is only logged."""
    where = folder / "venv"
    if not where.exists():
        venv.create(where, with_pip=True)
    python = str(where / "bin/python")
    if not has(python, "gguf") and not pip(python, "numpy", "gguf"):
        sys.exit("numpy and gguf do not install")
    if "llama.cpp" in wanted and not has(python, "llama_cpp"):
        if install_llama(python, "") and not survives(python, folder):
            log("this build of llama.cpp dies in its first prompt: again, without AMX")
            install_llama(python, NO_AMX)
    if "ik_llama.cpp" in wanted and not has(python, "ik_llama_cpp"):
        pip(python, "ik-llama-cpp-python") or log("ik_llama.cpp does not install")
    if "OpenVINO" in wanted and not has(python, "openvino"):
        pip(python, "openvino") or log("OpenVINO does not install")
    if "PyTorch" in wanted and not has(python, "torch"):
        (pip(python, "torch", "--index-url", "https://download.pytorch.org/whl/cpu") or pip(python, "torch")
         or log("PyTorch does not install"))
    return python
