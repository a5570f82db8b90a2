#!/usr/bin/env python3
"""Writes data/adapters/: random adapters (LoRA) as PEFT saves them, for models of data/folders/, and logits with them.

Needs: pip install torch transformers peft safetensors numpy

    adapters.py [--only EXPRESSION]    only the adapters and goldens with these names

  data/adapters/NAME/             adapter_config.json, adapter_model.safetensors
  data/adapters/GOLDEN.tokens.txt the token ids, one line
  data/adapters/GOLDEN.logits.f32 logits after each token from FIRST_ROW on, [rows, vocab], float32 little endian
  data/adapters/manifest.txt      a line for each golden: GOLDEN BASE FIRST_ROW TOLERANCE ADAPTER:SCALE ...
  data/adapters/refused.txt       a line for each adapter that a reader must refuse: NAME BASE KEY

The logits are of the unmerged adapters, computed by PEFT and transformers in float32 from the files. Each adapter is checked for being worth
comparing with: leaving out any one of its matrices changes the logits by more than four tolerances.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import warnings

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before PEFT is imported, which would ask the hub about the base

import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from peft.tuners.lora import LoraLayer  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from adapter_cases import ADAPTERS, GOLDENS  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent / "data"
TOLERANCE = 1e-4
VISIBLE = 4 * TOLERANCE
RANK, ALPHA = 3, 7

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)  # one order of additions, whatever the machine


def base_model(name):
    folder = DATA / "folders" / name
    config = transformers.AutoConfig.from_pretrained(folder)
    config.use_cache = False
    config._experts_implementation = "eager"
    return transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager").eval()


def base_tokens(name):
    return [int(token) for token in (DATA / "folders" / name / "tokens.txt").read_text().split()]


def logits_of(model, tokens, **more):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), **more).logits[0].numpy()


# ---- making ----------------------------------------------------------------------------


def randomise(model, seed):
    """B A is about a third of the weights that it is added to."""
    rng = np.random.Generator(np.random.PCG64([seed, 49]))

    def fill(tensor, deviation):
        tensor.copy_(torch.from_numpy(rng.normal(0, deviation, tuple(tensor.shape)).astype(np.float32)))

    with torch.no_grad():
        for _, layer in sorted((name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer)):
            weight = layer.get_param() if hasattr(layer, "get_param") else layer.get_base_layer().weight
            size = weight.std().item()
            for which, a in layer.lora_A.items():
                fill(a.weight, 1.0)
                fill(layer.lora_B[which].weight, 0.35 * size / math.sqrt(layer.r[which]) / abs(layer.scaling[which]))
                if layer.lora_B[which].bias is not None:
                    fill(layer.lora_B[which].bias, 0.3)
            for which, a in layer.lora_embedding_A.items():
                fill(a, 1.0)
                fill(layer.lora_embedding_B[which], 0.35 * size / math.sqrt(layer.r[which]) / abs(layer.scaling[which]))
            for which, dora in layer.lora_magnitude_vector.items():
                dora.weight.mul_(torch.from_numpy(rng.uniform(0.6, 1.5, tuple(dora.weight.shape)).astype(np.float32)))


def tie(model):
    """ensure_weight_tying: the head's pair is the table's, turned; randomise() has filled them apart."""
    with torch.no_grad():
        table, head = (next(module for name, module in model.named_modules() if name.endswith(end)) for end in ("embed_tokens", "lm_head"))
        head.lora_A["default"].weight.copy_(table.lora_embedding_B["default"].T)
        head.lora_B["default"].weight.copy_(table.lora_embedding_A["default"].T)


def expert_pairs(base, seed):
    """The tensors of a folder with a pair for each expert, as transformers 4 had the modules."""
    rng = np.random.Generator(np.random.PCG64([seed, 50]))
    tensors = {}
    for name, module in sorted(base.named_modules()):
        if not hasattr(module, "gate_up_proj"):
            continue
        experts, outputs, inputs = module.gate_up_proj.shape
        for expert in range(experts):
            for part, rows, columns in (("gate_proj", outputs // 2, inputs), ("up_proj", outputs // 2, inputs), ("down_proj", inputs, outputs // 2)):
                stem = f"base_model.model.{name}.{expert}.{part}"
                for half, shape, deviation in (("lora_A", (RANK, columns), 1.0), ("lora_B", (rows, RANK), 0.35 * columns ** -0.5 / math.sqrt(RANK) * RANK / ALPHA)):
                    tensors[f"{stem}.{half}.weight"] = torch.from_numpy(rng.normal(0, deviation, shape).astype(np.float32))
    return tensors


def tidy(folder, adapter):
    """Removes what depends on this machine, and sorts what PEFT has in no order."""
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = f"tiny/{adapter.base}"
    if adapter.layout == "each":
        config |= {"target_modules": adapter.config["target_modules"], "target_parameters": None, "rank_pattern": {}, "alpha_pattern": {}}
    for key in ("target_modules", "target_parameters", "exclude_modules", "modules_to_save"):
        if isinstance(config.get(key), list):
            config[key].sort()
    path.write_text(json.dumps(config, indent=1) + "\n")
    (folder / "README.md").unlink(missing_ok=True)
    tensors = load_file(folder / "adapter_model.safetensors")
    dtype = getattr(torch, adapter.dtype)
    save_file({name: (tensors[name].to(dtype) if ".lora_" in name else tensors[name]).contiguous() for name in sorted(tensors)},
              folder / "adapter_model.safetensors", {"format": "pt"})


def make_adapter(name, seed, out):
    adapter = ADAPTERS[name]
    shutil.rmtree(out, ignore_errors=True)
    base = base_model(adapter.base)
    pairs = expert_pairs(base, seed) if adapter.layout == "each" else {}
    model = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", **({"r": RANK, "lora_alpha": ALPHA} | adapter.config)))
    randomise(model, seed)
    if adapter.config.get("ensure_weight_tying"):
        tie(model)
    model.save_pretrained(out)
    if pairs:
        path = out / "adapter_model.safetensors"
        save_file({key: value for key, value in load_file(path).items() if ".experts." not in key} | pairs, path, {"format": "pt"})
    tidy(out, adapter)


# ---- computing -------------------------------------------------------------------------


def load(adapters, folder, base):
    """The base with adapters, each with its scale, in their order."""
    names = [name for name, _ in adapters]
    model = peft.PeftModel.from_pretrained(base_model(base), folder / names[0], adapter_name=names[0])
    for name in names[1:]:
        model.load_adapter(folder / name, adapter_name=name)
    model.base_model.set_adapter(names)
    for layer in model.modules():
        if isinstance(layer, LoraLayer):
            for name, scale in adapters:
                layer.set_scale(name, scale)
    return model.eval()


def invocation_offset(adapters, tokens):
    """PEFT looks for the invocation of the active adapter alone; beside others it must be told."""
    for name, _ in adapters:
        wanted = ADAPTERS[name].config.get("alora_invocation_tokens")
        if wanted and len(adapters) > 1:
            start = max(i for i in range(len(tokens)) if tokens[i:i + len(wanted)] == wanted)
            return {"alora_offsets": [len(tokens) - start]}
    return {}


def matrices(model):
    """The parameters of adapters, with values that stand for leaving them out."""
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            for which, b in layer.lora_B.items():
                yield f"{name} {which}", b.weight, torch.zeros_like(b.weight)
            for which, b in layer.lora_embedding_B.items():
                yield f"{name} {which}", b, torch.zeros_like(b)
            for which, dora in layer.lora_magnitude_vector.items():
                yield f"{name} {which} magnitude", dora.weight, torch.ones_like(dora.weight) * dora.weight.mean()


def check_golden(golden, model, tokens, more, logits, base_logits):
    rows = slice(golden.first_row, None)
    if golden.same_as_base:
        assert np.array_equal(logits, base_logits)
        return "the base's"
    weakest = math.inf
    for name, parameter, neutral in matrices(model):
        with torch.no_grad():
            original = parameter.detach().clone()
            parameter.copy_(neutral)
            change = np.abs(logits_of(model, tokens, **more) - logits)[rows].max()
            parameter.copy_(original)
        assert change > VISIBLE, (name, change)
        weakest = min(weakest, change)
    error = np.abs(logits_of(model.double(), tokens, **more) - logits)[rows].max()
    assert error < TOLERANCE / 5, error
    assert np.isfinite(logits).all() and 0.3 < logits[rows].std() < 6, logits[rows].std()
    return f"std {logits[rows].std():.2f} change {np.abs(logits - base_logits)[rows].max():.2f} weakest {weakest:.1e} f32 error {error:.1e}"


def make_golden(name, out):
    golden = GOLDENS[name]
    base = ADAPTERS[golden.adapters[0][0]].base
    tokens = list(golden.tokens) or base_tokens(base)
    model, more = load(golden.adapters, out, base), invocation_offset(golden.adapters, tokens)
    logits = logits_of(model, tokens, **more)
    print(f"{name}: {check_golden(golden, model, tokens, more, logits, logits_of(base_model(base), tokens))}", flush=True)
    first_row = golden.first_row % len(tokens)
    (out / f"{name}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    (out / f"{name}.logits.f32").write_bytes(logits[first_row:].astype("<f4").tobytes())
    return f"{name} {base} {first_row} {TOLERANCE:g} " + " ".join(f"{adapter}:{scale:g}" for adapter, scale in golden.adapters)


def refused_key(name):
    return next(key for key in ADAPTERS[name].config if key != "target_modules")


def update(path, header, names, made):
    """Keeps the lines of names that were not made, and writes all in the order of `names`."""
    before = {line.split()[0]: line for line in path.read_text().splitlines()} if path.exists() else {}
    lines = [made.get(name) or before.get(name) for name in names]
    path.write_text("\n".join([header] + [line for line in lines if line]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA / "adapters")
    parser.add_argument("--only", default=".*", help="a regular expression: make these alone, and keep the other lines of the manifest")
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(ADAPTERS):
        if re.fullmatch(options.only, name):
            make_adapter(name, seed, out / name)
    made = {name: make_golden(name, out) for name in GOLDENS if re.fullmatch(options.only, name)}
    update(out / "manifest.txt", "# golden base first_row tolerance adapter:scale ...", GOLDENS, made)
    refused = {name: f"{name} {adapter.base} {refused_key(name)}" for name, adapter in ADAPTERS.items() if adapter.refused}
    update(out / "refused.txt", "# adapter base key", refused, refused)


if __name__ == "__main__":
    main()
