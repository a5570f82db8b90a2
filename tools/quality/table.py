#!/usr/bin/env python3
"""Makes the table of bench/results/numerics.md: each format's error against float32, for each mode of tessera and for llama.cpp.

    python3 tools/quality/table.py --bin build/release/bin --python-llama PATH/bin/python

tessera-quantize makes the files from the shipped Q8_0 model, which is decoded to F32 first. The float32 values are
those of tessera's reference mode on the same file, with an F32 KV cache. The KV cache is F32 on both sides unless
--kv-dtype says otherwise. Without --python-llama, llama.cpp's columns come from --llama FILE (an earlier run's --save)
or stay empty.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FORMATS = "F32 BF16 F16 Q8_0 Q6_K Q5_K Q5_1 Q5_0 Q4_K Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4 Q3_K Q2_K".split()


def result_of(command: list[str]) -> dict:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: status {done.returncode}")
    return json.loads(done.stdout)


class Measurement:
    def __init__(self, args: argparse.Namespace, folder: pathlib.Path):
        self.args, self.folder = args, folder
        self.f32 = folder / "F32.gguf"
        self.quantise(args.model, "F32", self.f32)

    def quantise(self, source: pathlib.Path, kind: str, out: pathlib.Path) -> None:
        command = [f"{self.args.bin}/tessera-quantize", source, out, kind, "--requantize"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in done.stderr.splitlines():
            if "instead of" in line or done.returncode != 0:
                print(f"{kind}: {line}", file=sys.stderr)  # some matrices have another format, so the row does not measure only this format
        if done.returncode != 0:
            sys.exit(1)

    def measure(self, kind: str) -> dict[str, dict]:
        args = self.args
        model = self.folder / f"{kind}.gguf"
        if kind != "F32":
            self.quantise(self.f32, kind, model)
        logits = self.folder / "reference.logits"
        ours = [f"{args.bin}/tessera-quality", str(model), str(args.tokens)]
        subprocess.run([*ours, "--numerics", "reference", "--save", str(logits)], check=True)
        run = ["--reference", str(logits), "--kv-dtype", args.kv_dtype]
        row = {}
        for mode in [mode for mode in args.numerics.split(",") if mode]:
            isa = ["--isa", args.isa] if mode != "reference" else []
            row[mode] = result_of([*ours, *run, *isa, "--numerics", mode, "--json"])
        if args.python_llama:
            row["llama.cpp"] = result_of([args.python_llama, str(HERE / "llama_quality.py"), *ours[1:], *run])
        logits.unlink()
        return row


def cell(result: dict | None, peer: dict | None) -> str:
    if result is None:
        return "| |"
    ratio = f" ({result['mean_kl'] / peer['mean_kl']:.2f})" if peer and peer is not result else ""
    return f"| {result['mean_kl']:.2e}{ratio} | {result['perplexity']:.5f} "


def table(rows: dict[str, dict[str, dict]]) -> str:
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = ["| format | float32: perplexity | " + " | ".join(f"{c}: KL | perplexity" for c in columns) + " |",
             "|---" * (2 + 2 * len(columns)) + "|"]
    for kind, row in rows.items():
        reference = next(iter(row.values()))["reference_perplexity"]
        peer = row.get("llama.cpp")
        lines.append(f"| {kind} | {reference:.5f} " + "".join(cell(row.get(c), peer) for c in columns) + "|")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"), help="where the programs are")
    parser.add_argument("--python-llama", help="a Python that has llama-cpp-python")
    parser.add_argument("--llama", type=pathlib.Path, help="results of an earlier run, for llama.cpp's columns")
    parser.add_argument("--numerics", default="auto,bf16,fastest", help="modes of ours, or none; of reference, KL is 0")
    parser.add_argument("--isa", default="auto")
    parser.add_argument("--kv-dtype", choices=("f32", "f16"), default="f32")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/tessera-stories.gguf")
    parser.add_argument("--tokens", type=pathlib.Path, default=ROOT / "tests/data/quality/stories.tokens")
    parser.add_argument("--save", type=pathlib.Path, help="all results, as JSON")
    args = parser.parse_args()

    earlier = json.loads(args.llama.read_text()) if args.llama else {}
    rows: dict[str, dict[str, dict]] = {}
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(args, pathlib.Path(folder))
        for kind in args.formats.split(","):
            rows[kind] = measurement.measure(kind)
            if "llama.cpp" in earlier.get(kind, {}):
                rows[kind].setdefault("llama.cpp", earlier[kind]["llama.cpp"])
            if args.save:  # saved after each format, so that an interrupted run keeps its results
                args.save.write_text(json.dumps(rows, indent=1) + "\n")
            print(kind, {name: result["mean_kl"] for name, result in rows[kind].items()}, file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main()
