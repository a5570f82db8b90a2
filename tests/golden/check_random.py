#!/usr/bin/env python3
"""Compares the command-line program with transformers on random models and prompts.

Needs: pip install torch transformers gguf numpy

    check_random.py --generate PATH [--count N] [--seed S] [--arch NAME] [--extra "ARGS"] [--beams]

Case I of seed S is the same model and prompt whatever the count, so that a failure can be
had again alone: --seed S --first I --count 1 --keep DIR. Prints each case's largest
absolute difference; exits with 1 if one is above the tolerance or the program fails. With
--beams it compares beam searches instead: sequences, and scores to 1e-4.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import gguf
import numpy as np

import beam_reference
from architectures import ARCHITECTURES
from cases import (bigcode, delta_net, falcon, gated, gemma3, gemma4, gpt2, granitehybrid, growing, kinds, layer_normed, lfm2, longrope, mixed,
                   nemotron_h, olmo3_rope, rope, yarn)
from gguf_out import write_gguf
from tiny_models import build, random_tokens, run

# Random shapes are now and then less well conditioned than the committed cases.
TOLERANCE = 1e-3


def pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def random_heads(rng):
    """(heads, KV heads): from one to all, 1 to 4 query heads for each KV head."""
    kv_heads = int(rng.integers(1, 4))
    return kv_heads * int(rng.integers(1, 5)), kv_heads


def random_rope(rng, arch):
    theta = pick(rng, 100.0, 10000.0, 500000.0, 1e6)
    kind = pick(rng, "default", "linear", "llama3") if arch == "llama" else "default"
    if kind == "linear":
        return rope(theta, kind, factor=float(rng.uniform(1.5, 8)))
    if kind == "llama3":
        return rope(theta, kind, factor=float(rng.uniform(2, 32)), low_freq_factor=1.0,
                    high_freq_factor=float(rng.uniform(1.5, 8)),
                    original_max_position_embeddings=int(rng.integers(16, 300)))
    return rope(theta)


def random_case(rng, arch):
    """(configuration, tokens in the prompt) within what the architecture allows."""
    heads, kv_heads = random_heads(rng)
    head_dim = 2 * int(rng.integers(2, 33))
    d = heads * (head_dim if arch in ("falcon", "gpt2") else 2 * int(rng.integers(2, 17)))
    vocab = int(rng.integers(33, 400))
    tokens = pick(rng, 1, 2, int(rng.integers(3, 60)), int(rng.integers(60, 400)))
    has_output = gguf.MODEL_TENSOR.OUTPUT in gguf.MODEL_TENSORS[ARCHITECTURES[arch].gguf_arch]
    shape = {"tie_word_embeddings": bool(rng.integers(2)) or not has_output}
    eps = pick(rng, 1e-6, 1e-5, 1e-2)
    ffn = int(rng.integers(5, 200))
    layers = int(rng.integers(1, 5))
    if arch == "gpt2":
        config = gpt2(vocab, d, heads, layers, n_inner=pick(rng, None, ffn))
        return config | shape | {"layer_norm_epsilon": eps, "n_positions": 512}, tokens
    shape["max_position_embeddings"] = 512
    if arch == "falcon":
        config = falcon(vocab, d, heads, layers, ffn_hidden_size=pick(rng, None, ffn))
        shape |= {"layer_norm_epsilon": eps, "num_kv_heads": kv_heads} | random_rope(rng, arch)
        if rng.integers(2):
            shape |= {"new_decoder_architecture": True,
                      "num_ln_in_parallel_attn": pick(rng, None, 1, 2)}
        return config | shape, tokens
    if arch == "gemma3":
        return gemma3(vocab, d, heads, kv_heads, ffn, layers, head_dim, int(rng.integers(1, 200)),
                      period=int(rng.integers(1, layers + 1)), theta=pick(rng, 1e4, 1e6),
                      windowed_theta=pick(rng, 1e4, 500.0), context=512, eps=eps,
                      full=pick(rng, "default", "linear")), tokens
    if arch == "gemma4":
        return random_gemma4(rng, vocab, d, heads, kv_heads, ffn, eps), tokens
    if arch in MORE:
        return MORE[arch](rng, vocab, d, heads, kv_heads, ffn, layers, eps, head_dim, tokens) | shape, tokens
    if arch == "qwen3" or rng.integers(2):
        shape["head_dim"] = head_dim
    if arch == "llama":
        shape |= {"attention_bias": bool(rng.integers(2)), "mlp_bias": bool(rng.integers(2))}
    if arch == "granite":
        shape |= {"attention_multiplier": float(rng.uniform(0.1, 0.4)), "embedding_multiplier": float(rng.uniform(0.5, 4)),
                  "residual_multiplier": float(rng.uniform(0.2, 1)), "logits_scaling": float(rng.uniform(0.5, 2))}
    if arch == "mistral":
        shape["sliding_window"] = int(rng.integers(1, 200))
    shape |= random_rope(rng, arch)
    return gated(vocab, d, heads, kv_heads, ffn, layers, eps) | shape, tokens


def random_gemma4(rng, vocab, d, heads, kv_heads, ffn, eps):
    letters = "".join(pick(rng, "w", "w", "f") for _ in range(int(rng.integers(0, 4)))) + "f"
    shared = int(rng.integers(0, 5)) if rng.integers(2) else 0
    for _ in range(shared):  # the last layer sees everything, and each kind of those that share is there before
        letters += pick(rng, *sorted(set(letters)))
    if shared:
        letters = letters[:-1] + "f"
    more = {"num_kv_shared_layers": shared, "use_double_wide_mlp": bool(rng.integers(2))}
    if rng.integers(2):
        more |= {"attention_k_eq_v": True, "num_global_key_value_heads": pick(rng, 1, kv_heads)}
    if rng.integers(2):
        experts = int(rng.integers(2, 10))
        more |= {"enable_moe_block": True, "num_experts": experts, "top_k_experts": int(rng.integers(1, min(experts, 4) + 1)),
                 "moe_intermediate_size": int(rng.integers(5, 60))}
    return gemma4(vocab, d, heads, kv_heads, ffn, letters, 2 * int(rng.integers(2, 20)), 4 * int(rng.integers(2, 12)),
                  int(rng.integers(1, 200)), eps=eps, context=512, theta=pick(rng, 100.0, 1e6), windowed_theta=pick(rng, 1e4, 500.0),
                  rotated=pick(rng, 0.25, 0.5, 1.0), per_layer=pick(rng, 0, int(rng.integers(2, 40))),
                  softcap=pick(rng, None, 30.0, 2.0), **more)


def windows(rng, layers):
    return mixed(layers, int(rng.integers(1, layers + 1)), int(rng.integers(1, 200)))


def more(base=gated, **options):
    """A case of an architecture: options are values, or functions of rng and what random_case() drew."""
    def make(rng, vocab, d, heads, kv_heads, ffn, layers, eps, head_dim, tokens):
        drawn = {"rng": rng, "layers": layers, "heads": heads, "head_dim": head_dim, "tokens": tokens, "dim": d // heads, "eps": eps, "ffn": ffn}
        config = base(vocab, d, heads, kv_heads, ffn, layers, pad_token_id=0)
        if base is gated:
            config |= {"rms_norm_eps": eps}
        config |= rope(pick(rng, 100.0, 10000.0, 1e6))
        for name, option in options.items():
            value = option(drawn) if callable(option) else option
            config |= value if name.startswith("_") else {name: value}
        return config
    return make


def partial(drawn):
    pairs = int(drawn["rng"].integers(1, drawn["dim"] // 2 + 1))
    # Just above, so that int(dim * share) is what is meant.
    return rope(1e4, partial_rotary_factor=(2 * pairs + 0.01) / drawn["dim"])


def partial_of_own_head(drawn):
    return partial(drawn | {"dim": drawn["head_dim"]})


def random_window(drawn):
    return int(drawn["rng"].integers(1, 200))


def random_longrope(drawn):
    # The prompt decides between transformers' factors, the context ours: they agree where both are above or below.
    long = drawn["tokens"] > 16 and drawn["rng"].integers(2)
    return longrope(1e4, 512, 16, drawn["dim"] // 2) if long else longrope(1e4, 512, 512, drawn["dim"] // 2)


def random_experts(drawn, count="num_experts"):
    n = int(drawn["rng"].integers(2, 12))
    return {count: n, "num_experts_per_tok": int(drawn["rng"].integers(1, min(n, 5) + 1))}


def random_grouped_experts(drawn):
    rng = drawn["rng"]
    groups, size = int(rng.integers(1, 4)), int(rng.integers(2, 5))  # a group is judged by two of its experts
    used = int(rng.integers(1, groups + 1))
    return {"n_routed_experts": groups * size, "n_group": groups, "topk_group": used,
            "num_experts_per_tok": int(rng.integers(1, used * size + 1))}


def random_yarn(drawn, **more_keys):
    rng = drawn["rng"]
    if rng.integers(2):
        more_keys |= {"attention_factor": float(rng.uniform(0.5, 2))}
    return yarn(1e4, float(rng.uniform(1.5, 8)), int(rng.integers(16, 300)), **more_keys)


def random_latent(drawn):
    rng = drawn["rng"]
    turned = 2 * int(rng.integers(1, 17))
    scaled = {}
    if rng.integers(2):
        growth = float(rng.uniform(0.5, 1.0))
        scaled = random_yarn(drawn, mscale=growth, mscale_all_dim=growth)
    return {"num_key_value_heads": drawn["heads"], "qk_nope_head_dim": int(rng.integers(1, 40)), "qk_rope_head_dim": turned,
            "v_head_dim": int(rng.integers(1, 40)), "kv_lora_rank": int(rng.integers(3, 80)),
            "q_lora_rank": int(rng.integers(2, 60)) if rng.integers(2) else None,
            "first_k_dense_replace": int(rng.integers(0, drawn["layers"] + 1)), "n_shared_experts": int(rng.integers(1, 3)),
            "moe_intermediate_size": drawn["ffn"], "routed_scaling_factor": float(rng.uniform(0.5, 3)),
            **random_grouped_experts(drawn), **scaled}


def even_parts(config):
    """Where transformers rotates complex numbers, they must begin at an even place."""
    return config | {name: config[name] + config[name] % 2 for name in ("qk_nope_head_dim", "kv_lora_rank")}


def random_mistral4(drawn):
    config = random_latent(drawn) | {"norm_topk_prob": bool(drawn["rng"].integers(2))}
    growth = float(drawn["rng"].uniform(0.5, 1.0))
    scaled = random_yarn(drawn, mscale=growth, mscale_all_dim=growth)
    return config | growing(scaled, float(drawn["rng"].uniform(0.05, 0.5)), config["qk_nope_head_dim"], config["qk_rope_head_dim"])


def own_head(drawn):
    return drawn["head_dim"]


def random_kinds(drawn, other="linear_attention"):
    """Attention in every layer, in some, or in none (a period above the number of layers)."""
    return {"layer_types": kinds(drawn["layers"], other, int(drawn["rng"].integers(1, drawn["layers"] + 2)))}


# Layers without attention bring rows of no fixed length to a norm: with its eps far below them, which ones
# are small is chance, and so is the difference.
def recurrent_eps(drawn):
    return pick(drawn["rng"], 1e-3, 1e-2, 0.1)


def random_delta_net(drawn):
    rng = drawn["rng"]
    groups = int(rng.integers(1, 4))
    return {"rms_norm_eps": recurrent_eps(drawn), "head_dim": drawn["head_dim"], "linear_conv_kernel_dim": int(rng.integers(2, 6)),
            "linear_key_head_dim": int(rng.integers(1, 40)), "linear_value_head_dim": int(rng.integers(1, 40)),
            "linear_num_key_heads": groups, "linear_num_value_heads": groups * int(rng.integers(1, 5)),
            **random_kinds(drawn), **partial_of_own_head(drawn)}


def random_next_experts(drawn):
    rng = drawn["rng"]
    return random_experts(drawn) | {"moe_intermediate_size": drawn["ffn"], "shared_expert_intermediate_size": int(rng.integers(3, 100))}


def random_lfm2(drawn):
    return {"norm_eps": recurrent_eps(drawn), "conv_L_cache": int(drawn["rng"].integers(2, 6)), **random_kinds(drawn, "conv")}


def random_mamba2(drawn):
    """Heads, and groups of them that share a B and a C."""
    rng = drawn["rng"]
    groups = int(rng.integers(1, 4))
    return groups * int(rng.integers(1, 4)), groups, int(rng.integers(1, 40))


def random_granitehybrid(drawn):
    rng = drawn["rng"]
    heads, groups, state = random_mamba2(drawn)
    width = drawn["dim"] * drawn["heads"]
    expand = heads * int(rng.integers(1, 4))  # heads x their width is a multiple of the model's
    return {"mamba_n_heads": heads, "mamba_n_groups": groups, "mamba_d_state": state, "mamba_expand": expand,
            "mamba_d_head": expand * width // heads, "mamba_d_conv": int(rng.integers(2, 6)), "shared_intermediate_size": drawn["ffn"],
            "position_embedding_type": pick(rng, None, "rope"), "rms_norm_eps": recurrent_eps(drawn),
            **(random_experts(drawn, "num_local_experts") if rng.integers(2) else {"num_local_experts": 0}), **random_kinds(drawn)}


def random_nemotron_h(drawn):
    rng = drawn["rng"]
    heads, groups, state = random_mamba2(drawn)
    kinds_of_layers = ["linear_attention", "full_attention", "mlp"]
    return {"mamba_num_heads": heads, "mamba_head_dim": int(rng.integers(1, 30)), "n_groups": groups, "ssm_state_size": state,
            "conv_kernel": int(rng.integers(2, 6)), "head_dim": drawn["head_dim"], "layer_norm_epsilon": recurrent_eps(drawn),
            "layers_block_type": ["linear_attention"] + [pick(rng, *kinds_of_layers) for _ in range(drawn["layers"] - 1)]}


def random_nemotron_h_moe(drawn):
    rng = drawn["rng"]
    return random_nemotron_h(drawn) | random_grouped_experts(drawn) | {
        "layers_block_type": ["linear_attention"] + [pick(rng, "linear_attention", "full_attention", "moe", "moe") for _ in range(drawn["layers"] - 1)],
        "moe_intermediate_size": drawn["ffn"], "moe_shared_expert_intermediate_size": int(rng.integers(3, 100)),
        "moe_latent_size": pick(rng, None, int(rng.integers(2, 80))), "norm_topk_prob": bool(rng.integers(2)),
        "routed_scaling_factor": float(rng.uniform(0.5, 3))}


# The architectures whose configurations are the same but for a few options.
MORE = {
    "gemma": more(head_dim=own_head),
    "smollm3": more(_layers=lambda drawn: {"no_rope_layers": [int((i + 1) % 4 != 0) for i in range(drawn["layers"])]}),
    "mistral3": more(head_dim=own_head, _rope=lambda drawn: random_yarn(
        drawn, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=float(drawn["rng"].uniform(0.05, 0.5)))),
    "olmo2": more(),
    "olmo3": more(_windows=lambda drawn: windows(drawn["rng"], drawn["layers"]),
                  _rope=lambda drawn: olmo3_rope(1e4, random_yarn(drawn))),
    "exaone4": more(head_dim=own_head, _windows=lambda drawn: windows(drawn["rng"], drawn["layers"]) | {"sliding_window_pattern": 4}),
    "phi3": more(_rope=lambda drawn: random_longrope(drawn) if drawn["rng"].integers(2) else
                 partial(drawn) | {"original_max_position_embeddings": 512, "sliding_window": int(drawn["rng"].integers(1, 200))}),
    "starcoder2": more(layer_normed, norm_epsilon=lambda drawn: drawn["eps"], use_bias=True, sliding_window=None),
    "stablelm": more(layer_normed, layer_norm_eps=lambda drawn: drawn["eps"], use_qkv_bias=lambda drawn: bool(drawn["rng"].integers(2)),
                     _rope=partial),
    "command-r": more(layer_normed, layer_norm_eps=lambda drawn: drawn["eps"], logit_scale=lambda drawn: float(drawn["rng"].uniform(0.2, 2))),
    "cohere2": more(layer_normed, layer_norm_eps=lambda drawn: drawn["eps"], logit_scale=lambda drawn: float(drawn["rng"].uniform(0.2, 2)),
                    _windows=lambda drawn: windows(drawn["rng"], drawn["layers"])),
    "glm4": more(attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), head_dim=lambda drawn: drawn["dim"], _rope=partial),
    "seed_oss": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2))),
    "ernie4_5": more(head_dim=own_head, use_bias=lambda drawn: bool(drawn["rng"].integers(2))),
    "mixtral": more(_experts=lambda drawn: random_experts(drawn, "num_local_experts")),
    "qwen3moe": more(head_dim=own_head, _experts=random_experts, norm_topk_prob=True, moe_intermediate_size=lambda drawn: drawn["ffn"]),
    "qwen2moe": more(_experts=random_experts, moe_intermediate_size=lambda drawn: drawn["ffn"],
                     shared_expert_intermediate_size=lambda drawn: int(drawn["rng"].integers(3, 100))),
    "granitemoe": more(_experts=lambda drawn: random_experts(drawn, "num_local_experts"), attention_multiplier=0.3,
                       residual_multiplier=0.5, embedding_multiplier=2.0, logits_scaling=0.7),
    "gemma2": more(head_dim=own_head, query_pre_attn_scalar=own_head, sliding_window=random_window,
                   attn_logit_softcapping=lambda drawn: float(drawn["rng"].uniform(0.5, 60)),
                   final_logit_softcapping=lambda drawn: float(drawn["rng"].uniform(1, 40))),
    "gpt-oss": more(head_dim=own_head, sliding_window=random_window, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)),
                    _experts=lambda drawn: random_experts(drawn, "num_local_experts"),
                    _rope=lambda drawn: random_yarn(drawn, truncate=False) if drawn["rng"].integers(2) else {}),
    "glm4moe": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)),
                    use_qk_norm=lambda drawn: bool(drawn["rng"].integers(2)), _experts=random_grouped_experts,
                    first_k_dense_replace=lambda drawn: int(drawn["rng"].integers(0, drawn["layers"] + 1)),
                    n_shared_experts=lambda drawn: int(drawn["rng"].integers(1, 3)), moe_intermediate_size=lambda drawn: drawn["ffn"],
                    norm_topk_prob=lambda drawn: bool(drawn["rng"].integers(2)),
                    num_mtp_layers=lambda drawn: int(drawn["rng"].integers(2)),
                    routed_scaling_factor=lambda drawn: float(drawn["rng"].uniform(0.5, 3)), _rope=partial_of_own_head),
    "deepseek-v2": more(_latent=lambda drawn: even_parts(random_latent(drawn)) | {"topk_method": "group_limited_greedy"}),
    "deepseek-v3": more(_latent=lambda drawn: random_latent(drawn) | {
        "norm_topk_prob": bool(drawn["rng"].integers(2)), "num_mtp_layers": 0}),
    "glm4moe-lite": more(_latent=lambda drawn: {
        key: value for key, value in random_latent(drawn).items() if key != "first_k_dense_replace"} | {
        "norm_topk_prob": bool(drawn["rng"].integers(2)),
        "mlp_layer_types": (["dense"] * (dense := int(drawn["rng"].integers(0, drawn["layers"] + 1)))
                            + ["sparse"] * (drawn["layers"] - dense))}),
    "mistral4": more(_latent=random_mistral4),
    "minimax-m2": more(head_dim=own_head, _experts=lambda drawn: random_experts(drawn, "num_local_experts"),
                       _rope=partial_of_own_head),
    "hunyuan-dense": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)),
                          _rope=lambda drawn: rope(1e4, "dynamic", factor=1.0, alpha=float(drawn["rng"].uniform(1, 1000)))
                          if drawn["rng"].integers(2) else {}),
    "glm": more(attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), head_dim=lambda drawn: drawn["dim"], _rope=partial),
    "cwm": more(head_dim=own_head, _windows=lambda drawn: {
        "layer_types": [pick(drawn["rng"], "full_attention", "sliding_attention")] * drawn["layers"], "sliding_window": random_window(drawn)}),
    "helium": more(head_dim=lambda drawn: drawn["dim"], attention_bias=False),
    "granitemoeshared": more(_experts=lambda drawn: random_experts(drawn, "num_local_experts"), attention_multiplier=0.3, residual_multiplier=0.5,
                             embedding_multiplier=2.0, logits_scaling=0.7, shared_intermediate_size=lambda drawn: pick(drawn["rng"], 0, 17)),
    "arcee": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), mlp_bias=lambda drawn: bool(drawn["rng"].integers(2))),
    "exaone": more(head_dim=own_head),
    "nemotron": more(layer_normed, norm_eps=lambda drawn: drawn["eps"], head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)),
                     mlp_bias=lambda drawn: bool(drawn["rng"].integers(2)), _rope=partial_of_own_head),
    "gptneox": more(layer_normed, layer_norm_eps=lambda drawn: drawn["eps"], use_parallel_residual=lambda drawn: bool(drawn["rng"].integers(4)),
                    attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), _rope=partial),
    "phi2": more(layer_normed, layer_norm_eps=lambda drawn: drawn["eps"], _rope=partial),
    "starcoder": more(bigcode, layer_norm_epsilon=lambda drawn: drawn["eps"]),
    "olmoe": more(_experts=random_experts, norm_topk_prob=False),
    "dots1": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), _experts=random_grouped_experts,
                  first_k_dense_replace=lambda drawn: int(drawn["rng"].integers(0, drawn["layers"] + 1)), sliding_window=None,
                  n_shared_experts=lambda drawn: int(drawn["rng"].integers(1, 3)), moe_intermediate_size=lambda drawn: drawn["ffn"],
                  norm_topk_prob=lambda drawn: bool(drawn["rng"].integers(2)), routed_scaling_factor=lambda drawn: float(drawn["rng"].uniform(0.5, 3))),
    "exaone-moe": more(head_dim=own_head, _experts=lambda drawn: {
        {"n_routed_experts": "num_experts"}.get(key, key): value for key, value in random_grouped_experts(drawn).items()},
        first_k_dense_replace=lambda drawn: int(drawn["rng"].integers(0, drawn["layers"] + 1)),
        num_shared_experts=lambda drawn: int(drawn["rng"].integers(1, 3)), moe_intermediate_size=lambda drawn: drawn["ffn"],
        norm_topk_prob=lambda drawn: bool(drawn["rng"].integers(2)), routed_scaling_factor=lambda drawn: float(drawn["rng"].uniform(0.5, 3)),
        _windows=lambda drawn: windows(drawn["rng"], drawn["layers"]) | {"sliding_window_pattern": 4}),
    "ernie4_5-moe": more(_experts=lambda drawn: {
        {"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"}[key]: value for key, value in random_experts(drawn).items()},
        moe_intermediate_size=lambda drawn: drawn["ffn"], moe_num_shared_experts=lambda drawn: int(drawn["rng"].integers(1, 3)),
        moe_layer_start_index=lambda drawn: int(drawn["rng"].integers(0, drawn["layers"]))),
    "hunyuan-moe": more(head_dim=own_head, attention_bias=lambda drawn: bool(drawn["rng"].integers(2)), _experts=lambda drawn: {
        {"num_experts_per_tok": "moe_topk"}.get(key, key): value for key, value in random_experts(drawn).items()},
        _rope=lambda drawn: rope(1e4, "dynamic", factor=1.0, alpha=float(drawn["rng"].uniform(1, 1000))) if drawn["rng"].integers(2) else {}),
    "qwen35": more(delta_net, _mixers=random_delta_net),
    "qwen35moe": more(delta_net, _mixers=random_delta_net, _experts=random_next_experts),
    "qwen3next": more(delta_net, _mixers=random_delta_net, _experts=random_next_experts, norm_topk_prob=True),
    "lfm2": more(lfm2, _mixers=random_lfm2),
    "lfm2moe": more(lfm2, _mixers=random_lfm2, _experts=random_experts, moe_intermediate_size=lambda drawn: drawn["ffn"],
                    num_dense_layers=lambda drawn: int(drawn["rng"].integers(0, drawn["layers"] + 1)),
                    norm_topk_prob=True, use_expert_bias=lambda drawn: bool(drawn["rng"].integers(2))),
    "granitehybrid": more(granitehybrid, _mixers=random_granitehybrid),
    "nemotron_h": more(lambda *shape, **options: nemotron_h(*shape[:-1], **options), _mixers=random_nemotron_h),
    "nemotron_h_moe": more(lambda *shape, **options: nemotron_h(*shape[:-1], **options), _mixers=random_nemotron_h_moe),
}


def run_program(program, extra, model_path, tokens, vocab, out):
    ids = " ".join(map(str, tokens))
    command = [program, "-m", str(model_path), "--prompt-ids", ids, "--logits", str(out),
               "--kv-dtype", "f32", *extra]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()[-500:]}"
    logits = np.fromfile(out, dtype="<f4")
    if logits.size != len(tokens) * vocab:
        return None, f"{logits.size} logits instead of {len(tokens)} x {vocab}"
    return logits.reshape(len(tokens), vocab), ""


def check_beams(index, options, folder):
    """Without ends: the program has the file's own alone (the committed goldens have some)."""
    rng = np.random.Generator(np.random.PCG64([options.seed, index]))
    arch = options.arch or pick(rng, *ARCHITECTURES)
    config, _ = random_case(rng, arch)
    model = build(arch, config, [options.seed, index])
    path = folder / f"case-{index}.gguf"
    write_gguf(path, ARCHITECTURES[arch], model, path.stem)  # before float64: a tied output is one's own afterwards
    how = beam_reference.settings(1000 * options.seed + index, config["vocab_size"]) | {"ends": []}
    expected = beam_reference.search(model, **how)
    if not beam_reference.agree(model, how, expected):
        print(f"{index}: {arch}: left out, float64 finds others", flush=True)
        return True
    command = [options.generate, "-m", str(path), "--prompt-ids", " ".join(map(str, how["prompt"])), "--ignore-eos", "--json",
               "--kv-dtype", "f32", "-n", str(how["max_tokens"]), "--beams", str(how["beams"]), "--results", str(how["results"]),
               f"--length-penalty={how['length_penalty']:g}", "--early-stopping", how["early"], *shlex.split(options.extra)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    problem = f"exit {done.returncode}: {done.stderr.strip()[-500:]}"
    if done.returncode == 0:
        found = [(beam["score"], beam["tokens"]) for beam in json.loads(done.stdout)["beams"]]
        if beam_reference.same(found, expected, 1e-4):
            print(f"{index}: {arch}, {how['beams']} beams: the same", flush=True)
            return True
        problem = f"found {found}, not {expected}"
    print(f"{index}: {arch}: FAILED, {problem}\n  {config}\n  {how}", flush=True)
    return False


def check_one(index, options, folder):
    rng = np.random.Generator(np.random.PCG64([options.seed, index]))
    arch = options.arch or pick(rng, *ARCHITECTURES)
    config, count = random_case(rng, arch)
    model = build(arch, config, [options.seed, index])
    tokens = random_tokens(count, config["vocab_size"], index)
    expected, _ = run(model, tokens)
    path = folder / f"case-{index}.gguf"
    write_gguf(path, ARCHITECTURES[arch], model, path.stem)
    (folder / f"case-{index}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    actual, problem = run_program(options.generate, shlex.split(options.extra), path, tokens,
                                  config["vocab_size"], folder / f"case-{index}.logits.f32")
    if actual is not None:
        difference = np.abs(actual - expected).max()
        if difference <= TOLERANCE:  # false for NaN too
            print(f"{index}: {arch}, {count} tokens: {difference:.2e}", flush=True)
            return True
        row = int(np.argmax(np.abs(np.nan_to_num(actual, nan=np.inf) - expected).max(axis=1)))
        problem = f"differs by {difference:.2e}, most after token {row}"
    print(f"{index}: {arch}, {count} tokens: FAILED, {problem}\n  {config}", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=ARCHITECTURES, help="only this architecture")
    parser.add_argument("--extra", default="", help="more arguments for the program")
    parser.add_argument("--beams", action="store_true", help="compare beam searches, not logits")
    parser.add_argument("--keep", type=pathlib.Path, help="write the files here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        indices = range(options.first, options.first + options.count)
        check = check_beams if options.beams else check_one
        failures = sum(not check(index, options, folder) for index in indices)
    print(f"{options.count - failures} of {options.count} {'the same' if options.beams else f'within {TOLERANCE:g}'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
