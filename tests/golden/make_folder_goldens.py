#!/usr/bin/env python3
"""Writes tiny random models as transformers saves them (folders) to data/folders/, and their logits by transformers.

Needs: pip install torch transformers gguf numpy

    make_folder_goldens.py [NAME...]    only these

Weights are rounded to BF16, in which the folders have them; the logits are computed from these weights in float32.
"""
import pathlib
import shutil
import sys

import torch

from architectures import named_weights
from cases import CASES
from tiny_models import build, random_tokens, run

# One or more models of each type (model_type in config.json), with what is special in a type's folders.
NAMES = """llama-bias llama3-tied llama-linear mistral mistral3 smollm3 granite ernie4_5 qwen2-yarn qwen3-tied seed_oss exaone4
olmo2 olmo3 phi3-long glm4 hunyuan-dense stablelm starcoder2 command-r cohere2 gpt2-output falcon-7b falcon-40b gemma gemma2 gemma3
gemma4-e gemma4-v-is-k gemma4-moe mixtral qwen2moe qwen3moe granitemoe gpt-oss glm4moe minimax-m2 deepseek-v2-lite deepseek-v3
glm4moe-lite mistral4 qwen35 qwen35moe qwen3next lfm2 lfm2moe granitehybrid granitehybrid-moe nemotron_h nemotron_h_moe-narrow
arcee exaone nemotron gptneox phi2 starcoder olmoe dots1 exaone-moe ernie4_5-moe hunyuan-moe
glm cwm granitemoeshared""".split()
ROWS = 3  # of the last tokens


def round_weights(model):
    """Not the model as a whole: the frequencies of rope are buffers, which stay as they are."""
    with torch.no_grad():
        for _, weight in named_weights(model):
            weight.copy_(weight.to(torch.bfloat16).to(torch.float32))


def main():
    folder = pathlib.Path(__file__).parent / "data" / "folders"
    for seed, case in enumerate(CASES):
        if case.name not in NAMES or sys.argv[1:] and case.name not in sys.argv[1:]:
            continue
        shutil.rmtree(folder / case.name, ignore_errors=True)
        model = build(case.arch, case.config, seed)
        round_weights(model)
        tokens = random_tokens(case.tokens, model.config.vocab_size, seed)
        logits, _ = run(model, tokens)
        out = folder / case.name
        model.to(torch.bfloat16).save_pretrained(out)
        (out / "tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
        logits[-ROWS:].astype("<f4").tofile(out / "logits.f32")


if __name__ == "__main__":
    main()
