#!/usr/bin/env python3
"""Reads what llama.cpp's own converter writes: the models of cases.py, saved as transformers saves them, converted, and compared.

Needs: pip install torch transformers safetensors numpy, and llama.cpp's source with conversion/ and gguf-py/

    check_converter.py --llama-cpp DIR --generate PATH [--only NAME] [--keep DIR]

The tokenizer in a file is ours, as the converter knows those of published models alone. Prints each case's largest difference of the
logits to transformers' in float32; exits with 1 if one is above the tolerance. What the converter does not take is named.
"""
import argparse
import json
import logging
import os
import pathlib
import shlex
import sys
import tempfile

TOLERANCE = 1e-3
# What the converter leaves out of these files, or takes to be as in published models.
DIFFERENT = {
    "mistral": "the window", "mistral-long": "the window", "gemma3-linear": "the scaling of the full layers' rope",
    "falcon-40b": "an FFN of 4 d", "falcon-11b": "an FFN of 4 d", "granitehybrid": "a shared FFN as wide as the others",
    "granitehybrid-moe": "the rope", "gpt2-output": "an FFN of 4 d", "nemotron_h": "experts, as transformers' defaults have"}


def as_published(folder):
    """Adds to a saved model what published ones have, transformers does not write, and the converter reads."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    kind = config["model_type"]
    if kind == "gpt2":
        config["n_ctx"] = config["n_positions"]
    elif kind == "cohere2":
        config["rotary_pct"] = 1.0
    elif kind == "minimax_m2":
        config["rotary_dim"] = int(config["head_dim"] * config["rope_parameters"]["partial_rotary_factor"])
    elif kind == "granitemoehybrid":  # under the older names
        config["layer_types"] = ["attention" if layer == "full_attention" else "mamba" for layer in config["layer_types"]]
    elif kind == "nemotron_h":
        config["norm_eps"] = config["layer_norm_epsilon"]
        config["mamba_d_head"] = config["mamba_head_dim"]
    elif kind.startswith("gemma"):
        vocabulary = {f"<{i}>": i for i in range(config["vocab_size"])}
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))
    if "mlp_layer_types" in config:
        config["first_k_dense_replace"] = config["mlp_layer_types"].count("dense")
    path.write_text(json.dumps(config))


def convert(case, model, folder, path, modules):
    """None, or why the converter gave nothing."""
    conversion, gguf, torch = modules
    from architectures import ARCHITECTURES
    from gguf_out import add_tokenizer

    model.save_pretrained(folder)
    as_published(folder)
    hparams = conversion.ModelBase.load_hparams(folder, False)
    name = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
    try:
        known = conversion.get_model_class(name, mmproj=False)
    except NotImplementedError:
        return f"the converter does not know {name}"

    def set_vocab(self):
        add_tokenizer(self.gguf_writer, case.tokenizer or ARCHITECTURES[case.arch].tokenizer, model.config.vocab_size)

    with torch.inference_mode():
        try:
            type(name, (known,), {"set_vocab": set_vocab, "model_arch": known.model_arch, "no_mtp": True})(
                folder, gguf.LlamaFileType.ALL_F32, path, eager=True).write()
        except Exception as error:  # whatever it is that this model lacks for it
            return f"the converter fails: {type(error).__name__}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-cpp", required=True, type=pathlib.Path, help="its source")
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--extra", default="", help="more arguments for the program")
    parser.add_argument("--only", help="this case alone")
    parser.add_argument("--keep", type=pathlib.Path, help="write the files here and keep them")
    options = parser.parse_args()
    sys.path[0:0] = [str(options.llama_cpp / "gguf-py"), str(options.llama_cpp)]
    import conversion
    import gguf
    import numpy as np
    import torch
    from cases import CASES
    from check_random import run_program
    from tiny_models import build, random_tokens, run

    logging.disable(logging.WARNING)
    os.environ["TQDM_DISABLE"] = "1"
    good = bad = refused = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or pathlib.Path(temporary)
        for index, case in enumerate(CASES):
            if options.only not in (None, case.name):
                continue
            model = build(case.arch, case.config, 7000 + index)
            tokens = random_tokens(case.tokens, case.config["vocab_size"], index)
            expected, _ = run(model, tokens)
            folder, path = root / case.name, root / f"{case.name}.gguf"
            why = convert(case, model, folder, path, (conversion, gguf, torch))
            if why:
                refused += 1
                print(f"{case.name}: {why}", flush=True)
                continue
            actual, problem = run_program(options.generate, shlex.split(options.extra), path, tokens, case.config["vocab_size"],
                                          root / f"{case.name}.f32")
            difference = np.inf if actual is None else np.abs(actual - expected).max()
            fits = difference <= TOLERANCE
            if not fits and case.name in DIFFERENT:
                refused += 1
                print(f"{case.name}: another model: {DIFFERENT[case.name]}", flush=True)
                continue
            good, bad = good + fits, bad + (not fits)
            print(f"{case.name}: {difference:.2e}{'' if fits else ' FAILED ' + problem}", flush=True)
    print(f"{good} within {TOLERANCE:g}, {bad} not, {refused} not to be had")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
