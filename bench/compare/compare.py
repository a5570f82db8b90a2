#!/usr/bin/env python3
"""Compares tessera with llama.cpp, ik_llama.cpp, OpenVINO and PyTorch: same shape, same file, by turns, in one run.

    python3 bench/compare/compare.py                                        installs the peers under build/compare
    python3 bench/compare/compare.py --formats Q8_0,Q4_0 --turns 5 --modes auto,bf16
    python3 bench/compare/compare.py --python-llama PATH/bin/python --engines llama.cpp
    python3 bench/compare/compare.py --engines ik_llama.cpp --ik-library package --isa avx2
"""
from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import sys
import time

import environment
import report
from engines import Tests, Worker, tessera

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = ("llama.cpp", "ik_llama.cpp", "OpenVINO", "PyTorch")
DENSE = ("BF16", "F32")  # formats in which OpenVINO and PyTorch take part
log = environment.log


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default="Q4_0,Q8_0,Q4_K_M,BF16,F16,F32", help="as llama.cpp names them")
    parser.add_argument("--shape", default="llama-1b")
    parser.add_argument("-p", "--prompts", type=integers, default=[512, 2048])
    parser.add_argument("-n", "--decoded", type=int, default=16, help="tokens of one sequence; 0: none")
    parser.add_argument("--depth", type=integers, default=[], help="tokens that one sequence has before it is decoded, e.g. 8192")
    parser.add_argument("-b", "--sequences", type=integers, default=[16, 32])
    parser.add_argument("--steps", type=int, default=8, help="of sequences that are decoded together or at a depth")
    parser.add_argument("--turns", type=int, default=11, help="of each engine at each test")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", default=",".join(PEERS), help="the peers")
    parser.add_argument("--modes", default="auto", help="tessera's --numerics, each an engine of its own; empty: none")
    parser.add_argument("--isa", default="auto", help="tessera's --isa")
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/tessera-bench"))
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/compare", help="models, results, the venv")
    parser.add_argument("--python-llama", help="a Python with llama-cpp-python, instead of installing it")
    parser.add_argument("--python-ik", help="likewise, with ik-llama-cpp-python")
    parser.add_argument("--ik-library", help="its libllama.so; `package`: the one in its package, for AVX2. "
                        "Without: it is built with the machine's own flags")
    parser.add_argument("--python-openvino", help="likewise, with openvino")
    parser.add_argument("--python-torch", help="likewise, with torch")
    parser.add_argument("--venv", type=pathlib.Path, help="an environment with all of them and gguf")
    parser.add_argument("--python-gguf", help="a Python with numpy and gguf, for writing the model")
    parser.add_argument("--keep", action="store_true", help="keep the model files of all formats")
    return parser.parse_args()


def pythons(args: argparse.Namespace, wanted: list[str]) -> dict[str, str]:
    given = {"llama.cpp": args.python_llama, "ik_llama.cpp": args.python_ik, "OpenVINO": args.python_openvino,
             "PyTorch": args.python_torch, "gguf": args.python_gguf}
    writers = ["gguf"] if "llama.cpp" in wanted else []  # llama.cpp's files come from gguf and llama.cpp's quantiser
    needed = [name for name in [*writers, *wanted] if not given[name]]
    if needed:
        common = str(args.venv / "bin/python") if args.venv else environment.prepare(args.folder, needed)
        given |= {name: common for name in needed}
    return given


class Models:
    """Files of the shape in each format. llama.cpp's own quantiser makes them from one F16 file; without llama.cpp, tessera-bench
    writes them."""

    def __init__(self, args: argparse.Namespace, python: dict[str, str], by_llama: bool):
        self.args, self.python, self.by_llama = args, python, by_llama
        self.source = self.path("F16")
        if by_llama and not self.source.exists():
            log("writing a model in F16")
            command = [python["gguf"], str(HERE / "write_gguf.py"), "--shape", args.shape, "--out", str(self.source),
                       "--context", str(max(args.depth, default=0) + max(args.decoded, args.steps))]
            subprocess.run(command, check=True)

    def path(self, kind: str) -> pathlib.Path:
        deep = f"-{max(self.args.depth)}" if self.args.depth else ""  # files differ in their number of positions
        return self.args.folder / f"{self.args.shape}{deep}-{kind}.gguf"

    def make(self, kind: str) -> str:
        path = self.path(kind)
        if not path.exists() and not self.by_llama:
            log(f"writing {kind}")
            command = [self.args.bench, "--shape", self.args.shape, "--format", kind, "--write", str(path) + ".part"]
            if self.args.depth:  # the tests need a file with enough positions
                command += ["--depth", str(max(self.args.depth)), "-n", str(max(self.args.decoded, self.args.steps))]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            pathlib.Path(str(path) + ".part").rename(path)
        elif not path.exists():
            log(f"writing {kind}")
            command = [self.python["llama.cpp"], str(HERE / "llama_worker.py"), "--model", str(self.source),
                       "--quantise", kind, "--out", str(path) + ".part"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            pathlib.Path(str(path) + ".part").rename(path)
        return str(path)

    def drop(self, kind: str) -> None:
        if not self.args.keep and kind != "F16":
            self.path(kind).unlink()


def start(args: argparse.Namespace, python: dict[str, str], wanted: list[str], kind: str, model: str, tests: Tests) -> list[Worker]:
    threads = ["--threads", str(args.threads)]
    dense = ["--shape", args.shape, "--dtype", kind, *threads]
    commands = {"llama.cpp": ["llama_worker.py", "--model", model, *threads],
                "ik_llama.cpp": ["ik_llama_worker.py", "--model", model, *threads,
                                 *(["--as-it-lies"] if kind == "F16" else [])]}
    variables = {"ik_llama.cpp": {"IK_LLAMA_CPP_LIB_PATH": args.ik_library} if args.ik_library else {}}
    if kind in DENSE:
        commands |= {"OpenVINO": ["openvino_worker.py", *dense], "PyTorch": ["torch_worker.py", *dense]}
    engines: list[Worker] = []
    for name in [name for name in wanted if name in commands]:
        script, *rest = commands[name]
        try:
            engines.append(Worker(name, [python[name], str(HERE / script), *rest], **variables.get(name, {})))
        except RuntimeError as error:
            log(f"left out in {kind}: {error}")
    for mode in [mode for mode in args.modes.split(",") if mode]:
        try:
            engines.append(tessera(args.bench, model, mode, args.threads, args.isa, tests))
        except RuntimeError as error:
            sys.exit(str(error))
    return engines


def measure(engines: list[Worker], tests: Tests, turns: int) -> dict[str, dict]:
    """Runs all turns of a test, then the next test. The order of engines alternates, so changes of the machine meet all alike."""
    engines = list(engines)
    results: dict[str, dict] = {}
    for test, request in tests.requests().items():
        taken: list[report.Turn] = []
        for i in range(turns + 1):  # the first turn warms up
            one: report.Turn = {}
            environment.progress(f"  {test}: turn {i} of {turns}" if i > 0 else f"  {test}: warming up")
            for engine in engines if i % 2 == 0 else engines[::-1]:
                time.sleep(0.02)  # lets the spinning threads of the engine before come to rest
                try:
                    if figures := engine.measure(test, request):
                        one[engine.name] = figures
                except RuntimeError as error:
                    log(f"left out from here on: {error}")
                    engines = [other for other in engines if other is not engine]
            if i > 0:
                taken.append({engine.name: one[engine.name] for engine in engines if engine.name in one})
        results[test] = report.of_test(taken)
        environment.progress("")
        log(f"  {test}: " + ", ".join(f"{name} {report.cell(row)}" for name, row in results[test].items()))
    return results


def machine() -> tuple[str, bool]:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    value = lambda key: next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
    features = [name for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
                if name in value("flags").split()]
    processors = sum(line.startswith("processor") for line in lines)
    name = value("model name") or platform.processor()
    return f"{name}, {processors} processors, {' '.join(features)}", "amx_int8" in features


def version(engine: Worker, has_amx: bool) -> str:
    without = engine.name == "llama.cpp" and has_amx and "AMX_INT8" not in engine.features
    return f"{engine.version}{', built without AMX' if without else ''} ({' '.join(engine.features)})"


def main() -> None:
    args = parse()
    args.folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in args.engines.split(",") if name]
    if unknown := [name for name in wanted if name not in PEERS]:
        sys.exit(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    if "llama.cpp" not in wanted and not pathlib.Path(args.bench).exists():
        sys.exit(f"{args.bench} is not built, and without llama.cpp it writes the models (ninja -C build/release tessera-bench)")
    if args.modes and not pathlib.Path(args.bench).exists():
        log(f"{args.bench} is not built: the peers alone are measured (ninja -C build/release tessera-bench)")
        args.modes = ""
    python = pythons(args, wanted)
    if args.ik_library == "package":
        args.ik_library = ""
    elif "ik_llama.cpp" in wanted and args.ik_library is None:
        args.ik_library = environment.build_ik(python["ik_llama.cpp"], args.folder)
    models = Models(args, python, "llama.cpp" in wanted)
    tests = Tests(args.prompts, args.decoded, args.depth, args.sequences, args.steps)
    about, has_amx = machine()
    found = {"date": datetime.date.today().isoformat(), "machine": about, "shape": args.shape, "threads": args.threads,
             "turns": args.turns, "versions": {}, "results": {}}
    for kind in args.formats.split(","):
        model = models.make(kind)
        log(kind)
        engines = start(args, python, wanted, kind, model, tests)
        found["results"][kind] = measure(engines, tests, args.turns)
        for engine in engines:
            found["versions"].setdefault(engine.name, version(engine, has_amx))
            engine.close()
        models.drop(kind)
        # Written after each format, so that an interrupted run keeps its results.
        (args.folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
        (args.folder / "results.md").write_text(report.markdown(found) + "\n")
    print(report.markdown(found))
    log(f"also in {args.folder}/results.json and results.md")


if __name__ == "__main__":
    main()
