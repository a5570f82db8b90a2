#!/usr/bin/env python3
"""Models that were made smaller, and the logits that transformers computes with them.

  data/smaller/shared       a folder of 5 layers in 2 groups that share weights, as ALBERT's num_hidden_groups says
  data/smaller/pruned.gguf  a model whose layers have 4, 2 and 8 heads, 2, 1 and 4 KV heads and FFNs of 40, 24 and 56 columns
  data/smaller/NAME.f32     the logits after each token of data/smaller/tokens.txt
"""
import argparse
import copy
import json
import pathlib

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

DATA = pathlib.Path(__file__).parent / "data" / "smaller"
VOCAB, WIDTH, HEAD, TOKENS = 61, 32, 8, 24
LAYERS, GROUPS = 5, 2
SHAPES = [(4, 2, 40), (2, 1, 24), (8, 4, 56)]  # heads, KV heads, columns


def config_of(layers, heads, kv_heads, columns):
    return LlamaConfig(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=columns, num_hidden_layers=layers, num_attention_heads=heads,
                       num_key_value_heads=kv_heads, head_dim=HEAD, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=500.0,
                       tie_word_embeddings=False, attn_implementation="eager")


def randomise(model, seed):
    random = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        size = 0.2 if parameter.dim() == 1 else 1.6 * parameter.shape[1] ** -0.5
        parameter.data = torch.randn(parameter.shape, generator=random) * size + (1.0 if parameter.dim() == 1 else 0.0)
    return model.eval()


def write_logits(out, name, model, tokens):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    (out / f"{name}.f32").write_bytes(logits.numpy().astype("<f4").tobytes())
    print(f"{name}: std {logits.std():.2f}")


def shared(out, tokens):
    config = config_of(LAYERS, 4, 2, 40)
    model = randomise(LlamaForCausalLM(config), 1)
    groups = [layer * GROUPS // LAYERS for layer in range(LAYERS)]
    first = [groups.index(group) for group in groups]
    for layer in range(LAYERS):
        model.model.layers[layer].load_state_dict(copy.deepcopy(model.model.layers[first[layer]].state_dict()))
    write_logits(out, "shared", model, tokens)
    state = model.state_dict()
    kept = {name: tensor for name, tensor in state.items() if not name.startswith("model.layers.")}
    for group in range(GROUPS):
        begin = f"model.layers.{groups.index(group)}."
        kept |= {f"model.layers.{group}.{name.removeprefix(begin)}": tensor for name, tensor in state.items() if name.startswith(begin)}
    (out / "shared").mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in kept.items()}, out / "shared" / "model.safetensors", metadata={"format": "pt"})
    own = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": VOCAB, "hidden_size": WIDTH,
           "intermediate_size": 40, "num_hidden_layers": LAYERS, "num_hidden_groups": GROUPS, "inner_group_num": 1, "num_attention_heads": 4,
           "num_key_value_heads": 2, "head_dim": HEAD, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 500.0,
           "tie_word_embeddings": False}
    (out / "shared" / "config.json").write_text(json.dumps(own, indent=2) + "\n")


def pruned(out, tokens):
    model = LlamaForCausalLM(config_of(len(SHAPES), *SHAPES[0]))
    for i, shape in enumerate(SHAPES):
        model.model.layers[i] = LlamaDecoderLayer(config_of(len(SHAPES), *shape), i)
    randomise(model, 2)
    write_logits(out, "pruned", model, tokens)
    writer = gguf.GGUFWriter(out / "pruned.gguf", "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(len(SHAPES))
    writer.add_head_count([heads for heads, _, _ in SHAPES])
    writer.add_head_count_kv([kv_heads for _, kv_heads, _ in SHAPES])
    writer.add_feed_forward_length([columns for _, _, columns in SHAPES])
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(500.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    parts = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for i in range(len(SHAPES)):
        names |= {f"model.layers.{i}.{theirs}": f"blk.{i}.{ours}" for theirs, ours in parts.items()}
    for name, tensor in model.state_dict().items():
        values = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:  # the pairs of a head's elements become neighbours
            values = values.reshape(-1, 2, HEAD // 2, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(f"{names[name.removesuffix('.weight')]}.weight", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    tokens = np.random.default_rng(3).integers(0, VOCAB, TOKENS).tolist()
    (out / "tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    shared(out, tokens)
    pruned(out, tokens)


if __name__ == "__main__":
    main()
