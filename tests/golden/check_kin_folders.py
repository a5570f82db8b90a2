#!/usr/bin/env python3
"""Compares folders of types that transformers has under another name, or as a part of a larger model, with transformers.

Needs: pip install torch transformers numpy safetensors

    check_kin_folders.py --generate PATH

Vision models (Qwen2-VL, Qwen2.5-VL, Qwen3-VL, its experts in both arrangements): the whole model is saved, and its text part is compared.
Hunyuan 3 has no name in gguf-py. InternLM 2, MiniCPM and Orion have no class: a model that computes the same is saved under their names of tensors and keys.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from check_random import run_program

TEXT = dict(vocab_size=160, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, num_hidden_layers=3,
            max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
IMAGE_ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
EYES = dict(depth=1, num_heads=2, intermediate_size=16)
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20)


def vision(config_class, model_class, text, eyes):
    config = config_class(text_config=TEXT | {"rope_parameters": IMAGE_ROPE} | text, vision_config=EYES | eyes, image_token_id=150, video_token_id=151,
                          vision_start_token_id=152, vision_end_token_id=153, tie_word_embeddings=False)
    return model_class(config)


def kin(config_class, model_class, **more):
    return model_class(config_class(**TEXT, tie_word_embeddings=False, **more))


def rewrite(folder, keys, change):
    """Changes config.json, and each tensor by change(name, tensor) -> (name, tensor)."""
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in (json.loads(path.read_text()) | keys).items() if value is not None}))
    tensors = load_file(folder / "model.safetensors")
    save_file(dict(change(name, tensor, tensors) for name, tensor in tensors.items() if change(name, tensor, tensors)), folder / "model.safetensors",
              {"format": "pt"})


def transpose_experts(folder):
    rewrite(folder, {}, lambda name, tensor, _: (name, tensor.transpose(1, 2).contiguous() if ".experts." in name else tensor))


INTERNLM2 = {"embed_tokens": "tok_embeddings", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "lm_head": "output"}


def as_internlm2(folder):
    def change(name, tensor, tensors):
        if "k_proj" in name or "v_proj" in name:
            return None
        if "q_proj" in name:
            parts = [tensors[name.replace("q_proj", part)].reshape(2, -1, 16, 64) for part in ("q_proj", "k_proj", "v_proj")]
            return name.replace("self_attn.q_proj", "attention.wqkv"), torch.cat(parts, 1).reshape(-1, 64).contiguous()
        for old, new in INTERNLM2.items():
            name = name.replace(old, new)
        return name, tensor
    rewrite(folder, {"model_type": "internlm2", "rope_parameters": None, "rope_theta": 10000.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, change)


def as_minicpm(folder):
    rewrite(folder, {"model_type": "minicpm", "scale_emb": 3.0, "scale_depth": 0.4 * math.sqrt(3), "dim_model_base": 32, "attention_multiplier": None},
            lambda name, tensor, _: (name, tensor))


def as_orion(folder):
    rewrite(folder, {"model_type": "orion", "rms_norm_eps": 1e-5, "layer_norm_eps": None}, lambda name, tensor, _: (name, tensor))


CASES = {
    "qwen2_vl": (lambda: vision(transformers.Qwen2VLConfig, transformers.Qwen2VLForConditionalGeneration, {}, {"embed_dim": 16, "hidden_size": 64}), None),
    "qwen2_5_vl": (lambda: vision(transformers.Qwen2_5_VLConfig, transformers.Qwen2_5_VLForConditionalGeneration, {},
                                  {"hidden_size": 16, "out_hidden_size": 64}), None),
    "qwen3_vl": (lambda: vision(transformers.Qwen3VLConfig, transformers.Qwen3VLForConditionalGeneration, {"head_dim": 16},
                                {"hidden_size": 16, "out_hidden_size": 64, "deepstack_visual_indexes": [0]}), None),
    "qwen3_vl_moe": (lambda: vision(transformers.Qwen3VLMoeConfig, transformers.Qwen3VLMoeForConditionalGeneration, {"head_dim": 16} | EXPERTS,
                                    {"hidden_size": 16, "out_hidden_size": 64, "deepstack_visual_indexes": [0]}), None),
    "qwen3_vl_moe of hubs": (lambda: vision(
        transformers.Qwen3VLMoeConfig, transformers.Qwen3VLMoeForConditionalGeneration, {"head_dim": 16} | EXPERTS,
        {"hidden_size": 16, "out_hidden_size": 64, "deepstack_visual_indexes": [0]}), transpose_experts),
    "hy_v3": (lambda: kin(transformers.HYV3Config, transformers.HYV3ForCausalLM, head_dim=16, num_shared_experts=2, router_scaling_factor=1.7,
                          mlp_layer_types=["dense", "sparse", "sparse"], **EXPERTS), None),
    "internlm2": (lambda: kin(transformers.LlamaConfig, transformers.LlamaForCausalLM), as_internlm2),
    "minicpm": (lambda: kin(transformers.GraniteConfig, transformers.GraniteForCausalLM, embedding_multiplier=3.0, residual_multiplier=0.4,
                            logits_scaling=2.0, attention_multiplier=0.25), as_minicpm),
    "orion": (lambda: kin(transformers.StableLmConfig, transformers.StableLmForCausalLM, partial_rotary_factor=1.0), as_orion),
}


def check(program, name, folder):
    torch.manual_seed(1)
    make, change = CASES[name]
    model = make().float().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.3 * torch.randn_like(weight) + (weight.dim() == 1))
    model.save_pretrained(folder)
    if change:
        change(folder)
    tokens = [int(token) for token in np.random.default_rng(1).integers(3, 140, 30)]
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([tokens])).logits[0].numpy()
    ours, problem = run_program(program, [], folder, tokens, 160, folder / "logits.f32")
    difference = math.inf if ours is None else np.abs(ours - expected).max()
    print(f"{name}: {problem or f'{difference:.1e} of logits up to {np.abs(expected).max():.1f}'}", flush=True)
    return difference <= 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        good = [check(options.generate, name, pathlib.Path(temporary) / name) for name in CASES]
    print(f"{sum(good)} of {len(good)}")
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
