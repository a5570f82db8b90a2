#!/usr/bin/env python3
"""Writes adapters of data/adapters/ as GGUF, as llama.cpp's convert_lora_to_gguf.py does, and logits with them.

Needs: pip install torch transformers peft safetensors gguf numpy

    adapter_gguf.py [--only EXPRESSION]

  data/adapters/NAME.gguf         the adapter
  data/adapters/NAME.tokens.txt, NAME.logits.f32    as adapters.py writes them
  data/adapters/gguf.txt          a line for each: NAME BASE FIRST_ROW TOLERANCE SCALE

The models are those of data/BASE.gguf. The logits are PEFT's, with the numbers of the adapter's GGUF file.

A matrix B has the rows of the model's tensor in the file's order, and A has its columns. Both orders are found by converting two matrices of the
tensor's shape, one whose elements are their rows, one whose elements are their columns. llama.cpp knows one alpha a file, and divides it by each
matrix's own rank: where PEFT's scale is another (rsLoRA, alphas by name), B is multiplied by their ratio.
"""
import argparse
import dataclasses
import json
import pathlib
import re

import gguf
import numpy as np
import torch

from adapter_cases import GOLDENS
from adapters import DATA, TOLERANCE, logits_of  # before PEFT: it keeps PEFT off the network
import peft
from peft.tuners.lora import LoraLayer
from architectures import ARCHITECTURES, layer_tensors
from cases import CASES
from tiny_models import build

TYPES = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16,
         "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16,
              "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


@dataclasses.dataclass(frozen=True)
class Written:
    folder: str         # of data/adapters/
    kind: str = "f32"
    scale: float = 1.0


FILES = {
    "gguf-llama": Written("llama"),
    "gguf-llama-f16": Written("llama-few", "f16", -0.5),
    "gguf-llama-bf16": Written("llama-few", "bf16"),
    "gguf-llama-q8_0": Written("llama-few", "q8_0"),
    # A scale of its own for each matrix, in the numbers of B.
    "gguf-llama-patterns": Written("llama-patterns", "f16"),
    "gguf-llama-alora": Written("llama-alora", "f16"),
    "gguf-llama-embed": Written("llama-embed"),
    "gguf-phi3": Written("phi3", "f16"),
    "gguf-gpt2": Written("gpt2", "f16"),
    "gguf-falcon": Written("falcon-40b", "f16"),
    "gguf-qwen3moe": Written("qwen3moe", "f16"),
    "gguf-qwen35": Written("qwen35", "f16"),
}


# ---- writing ---------------------------------------------------------------------------


def converted(architecture, model, name, data):
    """A weight under its GGUF names."""
    special = layer_tensors(model.config, name, data)
    if special:
        return special
    names = gguf.get_tensor_name_map(architecture.gguf_arch, model.config.num_hidden_layers)
    return {names.get_name(name, try_suffixes=(".weight", ".bias")): architecture.convert(model.config, name, data)}


def orders(architecture, model, name, shape):
    """For each tensor that a weight becomes: which rows of the weight it has, and which columns."""
    rows = converted(architecture, model, name, np.broadcast_to(np.arange(shape[-2], dtype=np.float32)[:, None], shape).copy())
    columns = converted(architecture, model, name, np.broadcast_to(np.arange(shape[-1], dtype=np.float32), shape).copy())
    for tensor in rows:
        r, c = rows[tensor], columns[tensor]
        if np.ptp(r, axis=-1).max() or np.ptp(c, axis=-2).max():
            raise NotImplementedError(f"{tensor}: its rows are no rows of {name}")  # attn_k_b
        yield tensor, r.reshape(-1, *r.shape[-2:])[0, :, 0].astype(int), c.reshape(-1, *c.shape[-2:])[0, 0].astype(int)


def pairs(model):
    """(weight's name, its shape [.., out, in], A [.., rank, in], B [.., out, rank], scale, whether it is the table) of each adapted weight."""
    for path, layer in model.named_modules():
        if not isinstance(layer, LoraLayer):
            continue
        name = path.removeprefix("base_model.model.").replace(".base_layer", "")
        if "default" in layer.lora_embedding_A:
            a, b = layer.lora_embedding_A["default"], layer.lora_embedding_B["default"]
            yield f"{name}.weight", tuple(layer.get_base_layer().weight.shape), a, b, layer.scaling["default"], True
            continue
        a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
        if not hasattr(layer, "num_experts"):
            yield f"{name}.weight", (b.shape[0], a.shape[1]), a, b, layer.scaling["default"], False
            continue
        parameter = f"{name}.{layer.parameter_name}"
        if layer.num_experts == 1:
            yield parameter, (b.shape[0], a.shape[1]), a, b, layer.scaling["default"], False
            continue
        experts = layer.num_experts
        yield (parameter, (experts, b.shape[0], a.shape[1]), a.reshape(experts, -1, a.shape[1]), b.reshape(b.shape[0], -1, experts).permute(2, 0, 1),
               layer.scaling["default"], False)


def gguf_pairs(architecture, model, alpha):
    """A and B of each tensor of the GGUF file."""
    for name, shape, a, b, scale, is_table in pairs(model):
        a, b = a.detach().numpy(), b.detach().numpy() * np.float32(scale / (alpha / a.shape[-2]))
        if is_table:
            tensor, = converted(architecture, model, name, np.zeros(shape, np.float32))
            yield tensor, a.T, b
            continue
        if architecture.gguf_arch == gguf.MODEL_ARCH.GPT2:  # [in, out] in transformers; A and B are as everywhere
            tensor, = converted(architecture, model, name, np.zeros(shape, np.float32))
            yield tensor, a, b
            continue
        for tensor, rows, columns in orders(architecture, model, name, shape):
            yield tensor, a[..., columns], b[..., rows, :]


def encode(data, kind):
    """Numbers in a type, or in F16 if rows are no whole number of its blocks."""
    data = np.ascontiguousarray(data, dtype=np.float32)
    kind = TYPES[kind]
    if data.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:
        kind = gguf.GGMLQuantizationType.F16
    return gguf.quants.quantize(data, kind), kind


def write(path, written, architecture, model):
    config = json.loads((DATA / "adapters" / written.folder / "adapter_config.json").read_text())
    out = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture.gguf_arch])
    out.add_type(gguf.GGUFType.ADAPTER)
    out.add_string(gguf.Keys.Adapter.TYPE, "lora")
    out.add_name(written.folder)
    out.add_float32(gguf.Keys.Adapter.LORA_ALPHA, config["lora_alpha"])
    if config["alora_invocation_tokens"]:
        out.add_key_value("adapter.alora.invocation_tokens", config["alora_invocation_tokens"], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT32)
    out.add_file_type(FILE_TYPES[written.kind])
    out.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor, a, b in gguf_pairs(architecture, model, config["lora_alpha"]):
        for half, data in (("a", a), ("b", b)):
            data, kind = encode(data, written.kind)
            out.add_tensor(f"{tensor}.lora_{half}", data, raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


# ---- computing -------------------------------------------------------------------------


def round_as_written(model, kind, alpha):
    """Gives PEFT's matrices the numbers of the file. With Q8_0: of models whose columns stay in their order."""
    with torch.no_grad():
        for _, _, a, b, scale, is_table in pairs(model):  # views: what is copied into them is the model's
            ratio = np.float32(scale / (alpha / a.shape[-2]))
            for matrix, factor, turned in ((a, np.float32(1), is_table), (b, ratio, False)):
                data = matrix.numpy() * factor
                rounded = gguf.quants.dequantize(*encode(data.T if turned else data, kind))
                matrix.copy_(torch.from_numpy(np.ascontiguousarray((rounded.T if turned else rounded) / factor)))


def make(name, out):
    written = FILES[name]
    folder = DATA / "adapters" / written.folder
    base = json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"].removeprefix("tiny/")
    index = next(i for i, case in enumerate(CASES) if case.name == base)
    case = CASES[index]
    is_alora = written.folder == "llama-alora"
    tokens = list(GOLDENS["llama-alora"].tokens) if is_alora else [int(token) for token in (DATA / f"{base}.tokens.txt").read_text().split()]
    first_row = 0 if is_alora else len(tokens) - 4
    plain = build(case.arch, case.config, 7000 + index)
    without, weights = logits_of(plain, tokens), {id(weight): weight.detach().clone() for weight in plain.parameters()}
    model = peft.PeftModel.from_pretrained(plain, folder).eval()
    with torch.no_grad():  # the folder has the table and the head of its own base, with which PEFT has replaced those of this one
        for weight in model.parameters():
            if id(weight) in weights:
                weight.copy_(weights[id(weight)])
    write(out / f"{name}.gguf", written, ARCHITECTURES[case.arch], model)
    round_as_written(model, written.kind, json.loads((folder / "adapter_config.json").read_text())["lora_alpha"])
    for layer in model.modules():
        if isinstance(layer, LoraLayer):
            layer.set_scale("default", written.scale)
    logits = logits_of(model, tokens)
    change = np.abs(logits - without)[first_row:].max()
    assert change > 1000 * TOLERANCE, (name, change)
    (out / f"{name}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    (out / f"{name}.logits.f32").write_bytes(logits[first_row:].astype("<f4").tobytes())
    print(f"{name}: change {change:.2f}", flush=True)
    return f"{name} {base} {first_row} {TOLERANCE:g} {written.scale:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA / "adapters")
    parser.add_argument("--only", default=".*", help="a regular expression: make these alone")
    options = parser.parse_args()
    path = options.out / "gguf.txt"
    lines = {line.split()[0]: line for line in path.read_text().splitlines()[1:]} if path.exists() else {}
    lines |= {name: make(name, options.out) for name in FILES if re.fullmatch(options.only, name)}
    path.write_text("\n".join(["# name base first_row tolerance scale"] + [lines[name] for name in FILES if name in lines]) + "\n")


if __name__ == "__main__":
    main()
