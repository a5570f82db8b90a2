#!/usr/bin/env python3
"""Converts minGPT's sorting network, as base64 in JSON, to GGUF: convert_mingpt.py mingpt-sort.json data/mingpt-sort.gguf

Needs: pip install gguf numpy

The network (github.com/karpathy/minGPT, MIT; trained weights of github.com/bbycroft/llm-viz, MIT) is a GPT-2 of three layers that
has six of three letters before it and writes them in order.
"""
import base64
import json
import sys

import gguf
import numpy as np

LAYER = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up",
         "mlp.c_proj": "ffn_down"}
MODEL = {"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm", "lm_head": "output"}


def tensor_name(name):
    module, kind = name.rsplit(".", 1)
    if module in MODEL:
        return f"{MODEL[module]}.{kind}"
    _, _, layer, part = module.split(".", 3)
    return f"blk.{layer}.{LAYER[part]}.{kind}" if part in LAYER else None  # attn.bias is the causal mask


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        model = json.load(file)
    config = model.pop("config")
    writer = gguf.GGUFWriter(target, "gpt2")
    writer.add_name("minGPT's sorting network")
    writer.add_block_count(config["n_layer"])
    writer.add_context_length(config["block_size"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_feed_forward_length(4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(1e-5)  # PyTorch's
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for name, tensor in model.items():
        if (to := tensor_name(name)) is not None:
            writer.add_tensor(to, np.frombuffer(base64.b64decode(tensor["data"]), "<f4").reshape(tensor["shape"]).copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
