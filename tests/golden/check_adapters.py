#!/usr/bin/env python3
"""Compares adapters (LoRA) on new random models with PEFT and transformers.

Needs: pip install torch transformers peft safetensors gguf numpy

    check_adapters.py --generate PATH [--count N] [--seed S] [--arch NAME ...] [--each]

check_random.py draws a model, which is saved as a folder. An adapter is drawn for it: its modules, ranks, alphas, type of numbers, rsLoRA or DoRA, and
for every third model a second adapter beside it. The program computes with `--lora FOLDER:SCALE`. Exits with 1 if a difference is above the
tolerance, or the program fails.

--merged merges the adapters by PEFT, and gives the program the merged model: this shows the differences that are not the adapters'.
--each draws N cases of every architecture, instead of N cases in all.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np

from adapters import logits_of, randomise, tidy  # before PEFT: it keeps PEFT off the network
from adapter_cases import Adapter
import peft
import torch
from architectures import ARCHITECTURES
from check_random import TOLERANCE, pick, random_case, run_program
from peft.tuners.lora import LoraLayer
from peft.utils.transformers_weight_conversion import _MODEL_TO_CONVERSION_PATTERN, _MOE_FUSED_TARGETS
from tiny_models import build, random_tokens
from transformers.pytorch_utils import Conv1D
from transformers.utils.logging import disable_progress_bar

FEED = {"gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "gate"}


def targets(rng, model, merged):
    """Names of modules, of some layers or all, and of experts' parameters."""
    refused = {"wpe"}
    if model.config.model_type == "nemotron_h":
        refused.add("out_proj")  # PEFT refuses it
    if _MODEL_TO_CONVERSION_PATTERN.get(model.config.model_type) in _MOE_FUSED_TARGETS:
        refused |= FEED  # PEFT takes them for the experts'
    if merged and model.config.tie_word_embeddings:  # PEFT merges one matrix into both
        refused |= {name.rsplit(".", 1)[-1] for name, module in model.named_modules() if module in (model.get_input_embeddings(), model.get_output_embeddings())}
    modules = [name for name, module in model.named_modules() if isinstance(module, (torch.nn.Linear, Conv1D, torch.nn.Embedding))
               and name.rsplit(".", 1)[-1] not in refused]
    experts = sorted({name.rsplit(".", 1)[-1] for name, weight in model.named_parameters() if weight.dim() == 3 and "experts" in name and "bias" not in name})
    share = pick(rng, 0.2, 0.6, 1.0)
    chosen = [name for name in modules if rng.random() < share] or modules[-1:]
    return chosen, [f"experts.{name}" for name in experts if rng.random() < share]


def random_adapter(rng, model, merged):
    """Keys of LoraConfig."""
    modules, parameters = targets(rng, model, merged)
    config = {"target_modules": modules, "target_parameters": parameters or None, "r": int(pick(rng, 1, 2, 4, 7, 8, 16, 33)),
              "lora_alpha": int(rng.integers(1, 40)), "use_rslora": bool(rng.integers(2)),
              "rank_pattern": {name: int(rng.integers(1, 20)) for name in modules if rng.random() < 0.2},
              "alpha_pattern": {name: int(rng.integers(1, 20)) for name in modules if rng.random() < 0.2}}
    tables = ("embed_tokens", "word_embeddings", "wte", "embed_in", "embeddings", "kv_b_proj", "embed_tokens_per_layer")
    if not parameters and not rng.integers(4) and not any(name.endswith(tables) for name in modules):
        config["use_dora"] = True
    return config


def save_adapter(rng, model, seed, folder, merged):
    """Saves a random adapter of a model, which is adapted by it afterwards; returns its configuration."""
    config = random_adapter(rng, model, merged)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False, **config))
    randomise(adapted, seed)
    adapted.save_pretrained(folder)
    tidy(folder, Adapter("random", {}, dtype=pick(rng, "float32", "float32", "float16", "bfloat16")))
    return config


def with_adapters(model, folders, scales):
    names = [folder.name for folder in folders]
    adapted = peft.PeftModel.from_pretrained(model, folders[0], adapter_name=names[0])
    for folder in folders[1:]:
        adapted.load_adapter(folder, adapter_name=folder.name)
    adapted.base_model.set_adapter(names)
    for layer in adapted.modules():
        if isinstance(layer, LoraLayer):
            for name, scale in zip(names, scales):
                layer.set_scale(name, scale)
    return adapted.eval()


def check(index, options, folder, arch):
    rng = np.random.Generator(np.random.PCG64([options.seed, index, 49]))
    arch = arch or pick(rng, *ARCHITECTURES)
    case, count = random_case(rng, arch)
    seed, tokens = [options.seed, index], random_tokens(min(count, 60), case["vocab_size"], index)
    base = folder / f"{arch}-{index}"
    build(arch, case, seed).save_pretrained(base)
    folders = [folder / f"{arch}-{index}-{i}" for i in range(1 if rng.integers(3) else 2)]
    configs = [save_adapter(rng, build(arch, case, seed), 100 * index + i, path, options.merged) for i, path in enumerate(folders)]
    if len(folders) == 2 and any("use_dora" in config or config["target_parameters"] for config in configs):
        folders, configs = folders[:1], configs[:1]  # PEFT's result depends on their order; two sets of parameters it refuses
    scales = [float(np.round(rng.uniform(-1.5, 1.5), 2)) for _ in folders]
    expected = logits_of(with_adapters(build(arch, case, seed), folders, scales), tokens)
    extra = [part for path, scale in zip(folders, scales) for part in ("--lora", f"{path}:{scale:g}")]
    if options.merged:
        base, extra = folder / f"{arch}-{index}-merged", []
        with_adapters(build(arch, case, seed), folders, scales).merge_and_unload().save_pretrained(base)
    ours, problem = run_program(options.generate, extra, base, tokens, case["vocab_size"], folder / "ours.f32")
    difference = np.inf if ours is None else np.abs(ours - expected).max()
    good = bool(difference <= TOLERANCE)
    what = " and ".join(f"rank {config['r']} on {len(config['target_modules'])}" + (" DoRA" if "use_dora" in config else "")
                        + (" experts" if config["target_parameters"] else "") for config in configs)
    print(f"{index}: {arch}, {what}: {'' if good else 'FAILED, '}{problem or f'{difference:.2e} from PEFT'}", flush=True)
    if not good:
        print(f"  {case}\n  {scales} {configs}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=ARCHITECTURES, nargs="+", help="only these architectures, COUNT cases of each")
    parser.add_argument("--each", action="store_true", help="COUNT cases of each architecture")
    parser.add_argument("--merged", action="store_true", help="give the program models that PEFT has merged")
    parser.add_argument("--keep", type=pathlib.Path, help="write the models here and keep them")
    options = parser.parse_args()
    disable_progress_bar()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = [check(index, options, folder, arch) for arch in options.arch or (ARCHITECTURES if options.each else [None])
                   for index in range(options.first, options.first + options.count)]
    print(f"{sum(results)} of {len(results)} within {TOLERANCE:g} of PEFT")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
