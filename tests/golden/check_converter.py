#!/usr/bin/env python3
"""Reads what llama.cpp's own converter writes: the models of cases.py, saved as transformers saves them, converted, and compared.

Needs: pip install torch transformers safetensors numpy, and llama.cpp's source with conversion/ and gguf-py/ (the source package of
llama-cpp-python has them: pip download --no-deps --no-binary :all: llama-cpp-python)

    check_converter.py --llama-cpp DIR --generate PATH [--only NAME] [--keep DIR]
    check_converter.py --llama-cpp DIR --generate PATH --random 30 [--seed S] [--arch olmo3 --arch mistral4 --arch phi3]

With --random it takes random models instead, as check_random.py makes them, those whose positions are scaled alone, and texts that are
longer than the context of their first training. Mistral 4's queries grow at the rate that its files leave out, 0.1.
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
import types

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
    elif kind == "mistral4":
        config["architectures"] = ["Mistral3ForConditionalGeneration"]
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


def original_context(config):
    """Positions of the first training of a model whose positions are scaled, else None."""
    parameters = config.get("rope_parameters") or {}
    parameters = parameters.get("full_attention", parameters)
    if parameters.get("rope_type") not in ("yarn", "longrope"):
        return None
    return parameters.get("original_max_position_embeddings", config.get("original_max_position_embeddings"))


def random_cases(options):
    """(case, seed): models with scaled positions, and a text beyond the context of their first training."""
    import numpy as np
    from cases import Case
    from check_random import pick, random_case

    for index in range(options.random):
        rng = np.random.Generator(np.random.PCG64([options.seed, index]))
        arch = options.arch[index % len(options.arch)]
        original = None
        while original is None or original > 300:
            config, _ = random_case(rng, arch)
            original = original_context(config)
        if arch == "mistral4":
            config["rope_parameters"]["llama_4_scaling_beta"] = 0.1
        config["max_position_embeddings"] = 512
        yield Case(f"{arch}-{index}", arch, config, tokens=original + int(rng.integers(1, 512 - original))), [options.seed, index]


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
            writes = type(name, (known,), {"set_vocab": set_vocab, "model_arch": known.model_arch, "no_mtp": True})(
                folder, gguf.LlamaFileType.ALL_F32, path, eager=True)
            if hasattr(writes, "impl"):  # a class that chooses among others
                writes.impl.set_vocab = types.MethodType(set_vocab, writes.impl)
            writes.write()
        except Exception as error:  # whatever it is that this model lacks for it
            return f"the converter fails: {type(error).__name__}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-cpp", required=True, type=pathlib.Path, help="its source")
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--extra", default="", help="more arguments for the program")
    parser.add_argument("--only", help="this case alone")
    parser.add_argument("--random", type=int, metavar="N", help="N random models instead, of texts beyond their first context")
    parser.add_argument("--seed", type=int, default=1, help="of --random")
    parser.add_argument("--arch", action="append", help="of --random: one of these; olmo3, mistral4 and phi3 by default")
    parser.add_argument("--keep", type=pathlib.Path, help="write the files here and keep them")
    options = parser.parse_args()
    options.arch = options.arch or ["olmo3", "mistral4", "phi3"]
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
        cases = random_cases(options) if options.random else ((case, 7000 + index) for index, case in enumerate(CASES))
        for index, (case, seed) in enumerate(cases):
            if options.only not in (None, case.name):
                continue
            model = build(case.arch, case.config, seed)
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
