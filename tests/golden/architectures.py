"""How each architecture's transformers model is written as GGUF.

One entry in ARCHITECTURES for each: the transformers classes, the GGUF architecture, the
metadata, and what happens to a tensor on the way. All of it is as llama.cpp's
convert_hf_to_gguf.py does it, because that is where the files that users have come from;
what that script leaves out (GPT-2's head_count_kv, Falcon's rope keys, Qwen's
rope.dimension_count) is left out here as well, so that readers must have the defaults.
"""
import dataclasses
import math
import re
from typing import Callable

import gguf
import numpy as np
import transformers

Tensors = dict[str, np.ndarray]


def head_dim_of(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


# ---- tensors ---------------------------------------------------------------------------


def keep(config, name, data):
    return data


def interleave_heads(config, name, data):
    """Llama's Q and K rows: from pairs (i, i + d/2) to pairs (2i, 2i + 1) in every head."""
    if ".q_proj." in name:
        heads = config.num_attention_heads
    elif ".k_proj." in name:
        heads = config.num_key_value_heads
    else:
        return data
    # Biases (1-D) belong to the same rows and move with them.
    halves = data.reshape(heads, 2, data.shape[0] // heads // 2, *data.shape[1:])
    return halves.swapaxes(1, 2).reshape(data.shape)


def transpose_conv1d(config, name, data):
    """GPT-2's linears are Conv1D in transformers: [in, out] instead of [out, in]."""
    linears = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return np.ascontiguousarray(data.T) if name.endswith(linears) else data


def falcon_kv_heads(config):
    """num_kv_heads means nothing in a multi-query (7B-style) configuration."""
    return config.num_kv_heads if config.new_decoder_architecture else 1


def falcon_groups(config, data):
    """[kv_heads, heads/kv_heads queries + key + value, head_dim, d], a view of fused QKV."""
    kv_heads = falcon_kv_heads(config)
    per_group = config.num_attention_heads // kv_heads + 2
    return data.reshape(kv_heads, per_group, head_dim_of(config), config.hidden_size)


def regroup_falcon(config, name, data):
    """Fused QKV: from (queries, key, value) in each KV group to all Q, all K, all V."""
    if "query_key_value" not in name:
        return data
    groups = falcon_groups(config, data)
    parts = (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])
    return np.concatenate([part.reshape(-1, config.hidden_size) for part in parts])


def norms_with_one(config, name, data):
    """Gemma's norms multiply by 1 + weight; in a file it is the sum."""
    return data + 1 if name.endswith("norm.weight") else data


def delta_net_norms_with_one(config, name, data):
    """Qwen3-Next's norms multiply by 1 + weight, but those of delta nets."""
    return data if name.endswith("linear_attn.norm.weight") else norms_with_one(config, name, data)


def interleave_attention_heads(config, name, data):
    return interleave_heads(config, name, data) if "self_attn" in name else data


# ---- metadata --------------------------------------------------------------------------


def common(config, writer):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers + getattr(config, "num_mtp_layers", 0))
    writer.add_head_count(config.num_attention_heads)


def rms_without_rope_base(config, writer):
    common(config, writer)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def rope_scaling(rope, writer):
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if rope.get("attention_factor") is not None:
            writer.add_rope_scaling_yarn_attn_factor(rope["attention_factor"])
        if "beta_fast" in rope:
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
        if "mscale_all_dim" in rope:
            writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])


def rms_and_rope(config, writer):
    rms_without_rope_base(config, writer)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    rope_scaling(config.rope_parameters, writer)
    head_dim = head_dim_of(config)
    # Older files never have these two, so they are written only where they are needed.
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)


def llama_metadata(config, writer):
    rms_and_rope(config, writer)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(head_dim_of(config))
    if getattr(config, "sliding_window", None):
        # The one key that llama.cpp's converter does not write; readers take it from here.
        writer.add_sliding_window(config.sliding_window)


def gpt2_metadata(config, writer):
    common(config, writer)
    writer.add_feed_forward_length(config.n_inner or 4 * config.hidden_size)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)


def falcon_metadata(config, writer):
    common(config, writer)
    writer.add_tensor_data_layout("jploski")  # the regrouping above, by its author
    writer.add_feed_forward_length(config.ffn_hidden_size)
    writer.add_head_count_kv(falcon_kv_heads(config))
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    if config.rope_parameters["rope_theta"] != 10000.0:
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def granite_metadata(config, writer):
    llama_metadata(config, writer)
    writer.add_attention_scale(config.attention_multiplier)
    writer.add_embedding_scale(config.embedding_multiplier)
    writer.add_residual_scale(config.residual_multiplier)
    writer.add_logit_scale(config.logits_scaling)


def gemma3_metadata(config, writer):
    rms_without_rope_base(config, writer)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    full, windowed = (config.rope_parameters[kind] for kind in ("full_attention", "sliding_attention"))
    writer.add_rope_freq_base(full["rope_theta"])
    if full["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(full["factor"])
    # What llama.cpp's converter leaves out: readers take 10000 and every sixth layer.
    if windowed["rope_theta"] != 10000.0:
        writer.add_rope_freq_base_swa(windowed["rope_theta"])
    writer.add_sliding_window(config.sliding_window)
    period = config.layer_types.index("full_attention") + 1
    if period != 6:
        writer.add_sliding_window_pattern(period)


def gemma_metadata(config, writer):
    rms_without_rope_base(config, writer)
    if config.rope_parameters["rope_theta"] != 10000.0:  # what llama.cpp's converter leaves out: no model has another
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)


def gemma2_metadata(config, writer):
    gemma_metadata(config, writer)
    writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_sliding_window(config.sliding_window)


def gemma4_metadata(config, writer):
    common(config, writer)
    layers = [config.per_layer_config[i] for i in range(config.num_hidden_layers)]
    windowed = [kind == "sliding_attention" for kind in config.layer_types]
    full, other = (layers[windowed.index(kind)] if kind in windowed else layers[0] for kind in (False, True))
    first_shared = config.num_hidden_layers - config.num_kv_shared_layers
    if config.use_double_wide_mlp:
        writer.add_feed_forward_length([config.intermediate_size * (1 if i < first_shared else 2)
                                        for i in range(config.num_hidden_layers)])
    else:
        writer.add_feed_forward_length(config.intermediate_size)
    kv_heads = [layer.num_key_value_heads for layer in layers]
    writer.add_head_count_kv(kv_heads if len(set(kv_heads)) > 1 else kv_heads[0])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input or 0)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(windowed)
    writer.add_key_length(full.head_dim)
    writer.add_value_length(full.head_dim)
    writer.add_key_length_swa(other.head_dim)
    writer.add_value_length_swa(other.head_dim)
    writer.add_rope_dimension_count(full.head_dim)
    writer.add_rope_dimension_count_swa(other.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    if config.final_logit_softcapping:
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.enable_moe_block:
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.top_k_experts)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def olmo2_metadata(config, writer):
    rms_and_rope(config, writer)


def olmo3_metadata(config, writer):
    """One rope base; positions are scaled in the layers that see everything alone."""
    rms_without_rope_base(config, writer)
    full = config.rope_parameters["full_attention"]
    writer.add_rope_freq_base(full["rope_theta"])
    rope_scaling(full, writer)
    windowed_metadata(config, writer)


def windowed_metadata(config, writer):
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])


def exaone4_metadata(config, writer):
    rms_and_rope(config, writer)
    if config.sliding_window:
        windowed_metadata(config, writer)


def partial_dim(config):
    return int(head_dim_of(config) * config.rope_parameters.get("partial_rotary_factor", 1.0))


def phi3_metadata(config, writer):
    rms_without_rope_base(config, writer)
    rope = config.rope_parameters
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_sliding_window(config.sliding_window or 0)
    writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
    if rope["rope_type"] == "longrope":
        grown = config.max_position_embeddings / config.original_max_position_embeddings
        writer.add_rope_scaling_attn_factors(
            math.sqrt(1 + math.log(grown) / math.log(config.original_max_position_embeddings)) if grown > 1 else 1.0)


def layer_norm_and_rope(config, writer, eps):
    common(config, writer)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_eps(eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def starcoder2_metadata(config, writer):
    layer_norm_and_rope(config, writer, config.norm_epsilon)


def stablelm_metadata(config, writer):
    layer_norm_and_rope(config, writer, config.layer_norm_eps)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_parallel_residual(config.use_parallel_residual)


def cohere_metadata(config, writer):
    layer_norm_and_rope(config, writer, config.layer_norm_eps)
    writer.add_logit_scale(config.logit_scale)
    if hasattr(config, "layer_types"):
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(head_dim_of(config))
        writer.add_sliding_window(config.sliding_window)
    period = config.layer_types.index("full_attention") + 1 if hasattr(config, "layer_types") else 4
    if period != 4:  # what llama.cpp's converter leaves out
        writer.add_sliding_window_pattern(period)


def glm4_metadata(config, writer):
    rms_and_rope(config, writer)
    writer.add_rope_dimension_count(partial_dim(config))


def mistral3_metadata(config, writer):
    llama_metadata(config, writer)
    if config.rope_parameters.get("llama_4_scaling_beta"):
        writer.add_attn_temperature_scale(config.rope_parameters["llama_4_scaling_beta"])


def expert_counts(config, writer):
    writer.add_expert_count(config.num_local_experts if hasattr(config, "num_local_experts") else config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)


def mixtral_metadata(config, writer):
    llama_metadata(config, writer)
    expert_counts(config, writer)


def granitemoe_metadata(config, writer):
    granite_metadata(config, writer)
    expert_counts(config, writer)


def qwen_moe_metadata(config, writer):
    rms_and_rope(config, writer)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if hasattr(config, "shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def yarn_and_experts(config, writer):
    rms_and_rope(config, writer)
    expert_counts(config, writer)


def gpt_oss_metadata(config, writer):
    yarn_and_experts(config, writer)
    writer.add_expert_feed_forward_length(config.intermediate_size)
    writer.add_sliding_window(config.sliding_window)


def glm4moe_metadata(config, writer):
    yarn_and_experts(config, writer)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(config.norm_topk_prob)
    if config.n_group > 1:
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
    # Files have the layers that guess further tokens, which this model class does not compute.
    writer.add_nextn_predict_layers(config.num_mtp_layers)


def deepseek2_metadata(config, writer):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(config.qk_nope_head_dim + config.qk_rope_head_dim)
    writer.add_value_length_mla(config.v_head_dim)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    multiplier = rope.get("mscale_all_dim")
    rope_scaling({key: value for key, value in rope.items() if key != "mscale_all_dim"}, writer)
    if multiplier:
        writer.add_rope_scaling_yarn_log_mul(0.1 * multiplier)
    dense = config.mlp_layer_types.count("dense") if hasattr(config, "mlp_layer_types") else config.first_k_dense_replace
    writer.add_leading_dense_block_count(dense)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    is_v2 = config.model_type == "deepseek_v2"
    if is_v2:  # its class never divides weights by their sum
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    else:
        if config.model_type != "mistral4":  # whose files do not say that it is the softmax
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_norm(config.norm_topk_prob)
    if (config.n_group or 1) > 1 and not (is_v2 and config.topk_method == "greedy"):
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


def mistral4_metadata(config, writer):
    deepseek2_metadata(config, writer)
    writer.add_attn_temperature_scale(config.rope_parameters["llama_4_scaling_beta"])


def minimax_m2_metadata(config, writer):
    yarn_and_experts(config, writer)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_expert_feed_forward_length(config.intermediate_size)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def hunyuan_metadata(config, writer):
    rms_without_rope_base(config, writer)
    rope, dim = config.rope_parameters, head_dim_of(config)
    grown = rope.get("alpha", 1.0) ** (dim / (dim - 2))
    writer.add_rope_freq_base(rope["rope_theta"] * grown)
    writer.add_key_length(dim)
    writer.add_value_length(dim)


def delta_net_metadata(config, writer):
    common(config, writer)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
    interval = (config.layer_types + ["full_attention"]).index("full_attention") + 1
    writer.add_full_attention_interval(interval)
    if hasattr(config, "num_experts"):
        writer.add_feed_forward_length(config.moe_intermediate_size)
        expert_counts(config, writer)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    else:
        writer.add_feed_forward_length(config.intermediate_size)


def qwen35_metadata(config, writer):
    delta_net_metadata(config, writer)
    writer.add_rope_dimension_sections([11, 11, 10, 0])


def kv_heads_of_attention(config, writer):
    writer.add_head_count_kv([config.num_key_value_heads if kind == "full_attention" else 0 for kind in config.layer_types])


def lfm2_metadata(config, writer):
    common(config, writer)
    kv_heads_of_attention(config, writer)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_shortconv_l_cache(config.conv_L_cache)


def lfm2moe_metadata(config, writer):
    lfm2_metadata(config, writer)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_leading_dense_block_count(config.num_dense_layers)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def mamba2_metadata(writer, heads, head_dim, groups, state, width):
    writer.add_ssm_conv_kernel(width)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_inner_size(heads * head_dim)
    writer.add_ssm_time_step_rank(heads)


def granitehybrid_metadata(config, writer):
    common(config, writer)
    writer.add_vocab_size(config.vocab_size)
    kv_heads_of_attention(config, writer)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_attention_scale(config.attention_multiplier)
    writer.add_embedding_scale(config.embedding_multiplier)
    writer.add_residual_scale(config.residual_multiplier)
    writer.add_logit_scale(config.logits_scaling)
    writer.add_feed_forward_length(config.intermediate_size if config.num_local_experts else config.shared_intermediate_size)
    writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    if config.num_local_experts:
        expert_counts(config, writer)
    writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")
    if config.position_embedding_type == "rope":
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    mamba2_metadata(writer, config.mamba_n_heads, config.mamba_d_head, config.mamba_n_groups, config.mamba_d_state, config.mamba_d_conv)


def nemotron_h_metadata(config, writer):
    common(config, writer)
    kv_heads_of_attention(config, writer)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_feed_forward_length([config.intermediate_size if kind == "mlp" else 0 for kind in config.layer_types])
    mamba2_metadata(writer, config.mamba_num_heads, config.mamba_head_dim, config.n_groups, config.ssm_state_size, config.conv_kernel)


def nemotron_h_moe_metadata(config, writer):
    nemotron_h_metadata(config, writer)
    writer.add_feed_forward_length([config.moe_intermediate_size if kind == "moe" else 0 for kind in config.layer_types])
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_norm(config.norm_topk_prob)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_group_count(config.n_group)
    writer.add_expert_group_used_count(config.topk_group)
    if config.moe_latent_size is not None:
        writer.add_moe_latent_size(config.moe_latent_size)


# ---- tensors that no state dict has -----------------------------------------------------


def no_extra_tensors(config) -> Tensors:
    return {}


def llama3_rope_freqs(config) -> Tensors:
    """rope_freqs.weight [head_dim/2]: what each of Llama 3.1's frequencies is divided by."""
    rope = config.rope_parameters
    if rope["rope_type"] != "llama3":
        return {}
    dim = head_dim_of(config)
    old_length = rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    divisors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / dim)
        if wavelength < old_length / high:
            divisors.append(1.0)
        elif wavelength > old_length / low:
            divisors.append(factor)
        else:
            smooth = (old_length / wavelength - low) / (high - low)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return {"rope_freqs.weight": np.array(divisors, dtype=np.float32)}


def gemma4_extra_tensors(config) -> Tensors:
    """The pairs of a head of the layers that see everything, which from some place on hardly turn; and what files have of
    layers that share keys and values, which nothing reads."""
    rope = config.rope_parameters["full_attention"]
    dim = config.per_layer_config[config.layer_types.index("full_attention")].head_dim
    turning = int(dim * rope["partial_rotary_factor"] / 2)
    unread = {}
    for i in range(config.num_hidden_layers - config.num_kv_shared_layers, config.num_hidden_layers):
        layer = config.per_layer_config[i]
        shapes = {"attn_k": (layer.num_key_value_heads * layer.head_dim, config.hidden_size), "attn_k_norm": (layer.head_dim,)}
        unread |= {f"blk.{i}.{name}.weight": np.full(shape, np.nan, dtype=np.float32) for name, shape in shapes.items()}
    return unread | {"rope_freqs.weight": np.array([1.0] * turning + [1e30] * (dim // 2 - turning), dtype=np.float32)}


def further_layers(config) -> Tensors:
    """What a file has of layers behind the last: more than this, and nothing that a reader may read."""
    nothing = np.full(config.hidden_size, np.nan, dtype=np.float32)
    return {f"blk.{config.num_hidden_layers + i}.{name}.weight": nothing
            for i in range(config.num_mtp_layers) for name in ("attn_norm", "nextn.enorm", "nextn.shared_head_norm")}


def longrope_factors(config) -> Tensors:
    rope = config.rope_parameters
    if rope["rope_type"] != "longrope":
        return {}
    return {f"rope_factors_{kind}.weight": np.array(rope[f"{kind}_factor"], dtype=np.float32)
            for kind in ("long", "short")}


# ---- the table --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Architecture:
    config_class: type
    model_class: type
    gguf_arch: gguf.MODEL_ARCH
    metadata: Callable
    convert: Callable          # (config, transformers' name, data) -> data
    tokenizer: str = "llama"   # or a pre-tokenizer's name: then the tokenizer is gpt2's BPE
    extra_tensors: Callable = no_extra_tensors


def layer_norms_with_one(config, name, data):
    """Nemotron's norms multiply by 1 + weight; in a file it is the sum."""
    return data + 1 if name.endswith("norm.weight") else data


def heads_apart(config, name, data):
    """GPT-NeoX's fused QKV: from (query, key, value) of each head to all Q, all K, all V."""
    if "query_key_value" not in name:
        return data
    parts = data.reshape(config.num_attention_heads, 3, -1, *data.shape[1:])
    return np.concatenate([parts[:, i].reshape(-1, *data.shape[1:]) for i in range(3)])


def nemotron_metadata(config, writer):
    layer_norm_and_rope(config, writer, config.norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(partial_dim(config))
    if config.head_dim is not None:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)


def gptneox_metadata(config, writer):
    common(config, writer)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_parallel_residual(config.use_parallel_residual)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def phi2_metadata(config, writer):
    layer_norm_and_rope(config, writer, config.layer_norm_eps)
    writer.add_rope_dimension_count(partial_dim(config))
    writer.add_add_bos_token(False)


def starcoder_metadata(config, writer):
    common(config, writer)
    writer.add_feed_forward_length(config.n_inner or 4 * config.hidden_size)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)


def vision_metadata(config, writer):
    """Of the part of a model that reads text; the sections of its rope are for images."""
    rms_and_rope(config, writer)
    writer.add_rope_dimension_sections([16, 24, 24, 0])


def vision_experts_metadata(config, writer):
    vision_metadata(config, writer)
    writer.add_num_deepstack_layers(3)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def olmoe_metadata(config, writer):
    rms_and_rope(config, writer)
    expert_counts(config, writer)


def grouped_metadata(config, writer):
    rms_and_rope(config, writer)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(getattr(config, "num_shared_experts", getattr(config, "n_shared_experts", 0)))
    writer.add_leading_dense_block_count(config.first_k_dense_replace if hasattr(config, "first_k_dense_replace") else config.mlp_layer_types.count("dense"))
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(config.norm_topk_prob)
    if config.n_group > 1:
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


def exaone_moe_metadata(config, writer):
    grouped_metadata(config, writer)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])


def ernie_moe_metadata(config, writer):
    rms_and_rope(config, writer)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(config.moe_num_shared_experts)
    writer.add_expert_shared_feed_forward_length(config.moe_intermediate_size * config.moe_num_shared_experts)
    writer.add_leading_dense_block_count(config.moe_layer_start_index)
    writer.add_interleave_moe_layer_step(1)


def hunyuan_moe_metadata(config, writer):
    hunyuan_metadata(config, writer)
    expert_counts(config, writer)
    writer.add_expert_feed_forward_length(config.intermediate_size)
    writer.add_expert_shared_feed_forward_length(config.intermediate_size)


def cwm_metadata(config, writer):
    """No converter knows the type: windows a layer under tessera's reading of the key."""
    rms_and_rope(config, writer)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(head_dim_of(config))
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    if "full_attention" not in config.layer_types:
        writer.add_sliding_window(config.sliding_window)


def granitemoeshared_metadata(config, writer):
    granitemoe_metadata(config, writer)
    if config.shared_intermediate_size:
        writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)


ARCHITECTURES = {
    "llama": Architecture(
        transformers.LlamaConfig, transformers.LlamaForCausalLM, gguf.MODEL_ARCH.LLAMA,
        llama_metadata, interleave_heads, extra_tensors=llama3_rope_freqs),
    "mistral": Architecture(
        transformers.MistralConfig, transformers.MistralForCausalLM, gguf.MODEL_ARCH.LLAMA,
        llama_metadata, interleave_heads),
    "qwen2": Architecture(
        transformers.Qwen2Config, transformers.Qwen2ForCausalLM, gguf.MODEL_ARCH.QWEN2,
        rms_and_rope, keep, "qwen2"),
    "qwen3": Architecture(
        transformers.Qwen3Config, transformers.Qwen3ForCausalLM, gguf.MODEL_ARCH.QWEN3,
        rms_and_rope, keep, "qwen2"),
    "gpt2": Architecture(
        transformers.GPT2Config, transformers.GPT2LMHeadModel, gguf.MODEL_ARCH.GPT2,
        gpt2_metadata, transpose_conv1d, "gpt-2"),
    "falcon": Architecture(
        transformers.FalconConfig, transformers.FalconForCausalLM, gguf.MODEL_ARCH.FALCON,
        falcon_metadata, regroup_falcon, "falcon"),
    "granite": Architecture(
        transformers.GraniteConfig, transformers.GraniteForCausalLM, gguf.MODEL_ARCH.GRANITE,
        granite_metadata, interleave_heads, "refact"),
    "gemma3": Architecture(
        transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM, gguf.MODEL_ARCH.GEMMA3,
        gemma3_metadata, norms_with_one),
    "gemma": Architecture(
        transformers.GemmaConfig, transformers.GemmaForCausalLM, gguf.MODEL_ARCH.GEMMA,
        gemma_metadata, norms_with_one),
    "gemma2": Architecture(
        transformers.Gemma2Config, transformers.Gemma2ForCausalLM, gguf.MODEL_ARCH.GEMMA2,
        gemma2_metadata, norms_with_one),
    "gemma4": Architecture(
        transformers.Gemma4TextConfig, transformers.Gemma4ForCausalLM, gguf.MODEL_ARCH.GEMMA4,
        gemma4_metadata, keep, "gemma4", gemma4_extra_tensors),
    "smollm3": Architecture(
        transformers.SmolLM3Config, transformers.SmolLM3ForCausalLM, gguf.MODEL_ARCH.SMOLLM3,
        llama_metadata, interleave_heads, "llama-bpe"),
    "mistral3": Architecture(
        transformers.Ministral3Config, transformers.Ministral3ForCausalLM, gguf.MODEL_ARCH.MISTRAL3,
        mistral3_metadata, interleave_heads, "llama-bpe"),
    "olmo2": Architecture(
        transformers.Olmo2Config, transformers.Olmo2ForCausalLM, gguf.MODEL_ARCH.OLMO2,
        olmo2_metadata, keep, "gpt-2"),
    "olmo3": Architecture(
        transformers.Olmo3Config, transformers.Olmo3ForCausalLM, gguf.MODEL_ARCH.OLMO2,
        olmo3_metadata, keep, "gpt-2"),
    "exaone4": Architecture(
        transformers.Exaone4Config, transformers.Exaone4ForCausalLM, gguf.MODEL_ARCH.EXAONE4,
        exaone4_metadata, keep, "gpt-2", llama3_rope_freqs),
    "phi3": Architecture(
        transformers.Phi3Config, transformers.Phi3ForCausalLM, gguf.MODEL_ARCH.PHI3,
        phi3_metadata, keep, extra_tensors=longrope_factors),
    "starcoder2": Architecture(
        transformers.Starcoder2Config, transformers.Starcoder2ForCausalLM, gguf.MODEL_ARCH.STARCODER2,
        starcoder2_metadata, keep, "gpt-2"),
    "stablelm": Architecture(
        transformers.StableLmConfig, transformers.StableLmForCausalLM, gguf.MODEL_ARCH.STABLELM,
        stablelm_metadata, keep, "gpt-2"),
    "command-r": Architecture(
        transformers.CohereConfig, transformers.CohereForCausalLM, gguf.MODEL_ARCH.COMMAND_R,
        cohere_metadata, keep, "gpt-2"),
    "cohere2": Architecture(
        transformers.Cohere2Config, transformers.Cohere2ForCausalLM, gguf.MODEL_ARCH.COHERE2,
        cohere_metadata, keep, "gpt-2"),
    "glm4": Architecture(
        transformers.Glm4Config, transformers.Glm4ForCausalLM, gguf.MODEL_ARCH.GLM4,
        glm4_metadata, keep, "llama-bpe"),
    "seed_oss": Architecture(
        transformers.SeedOssConfig, transformers.SeedOssForCausalLM, gguf.MODEL_ARCH.SEED_OSS,
        rms_and_rope, keep, "gpt-2"),
    "ernie4_5": Architecture(
        transformers.Ernie4_5Config, transformers.Ernie4_5ForCausalLM, gguf.MODEL_ARCH.ERNIE4_5,
        rms_and_rope, keep),
    "mixtral": Architecture(
        transformers.MixtralConfig, transformers.MixtralForCausalLM, gguf.MODEL_ARCH.LLAMA,
        mixtral_metadata, interleave_heads),
    "qwen3moe": Architecture(
        transformers.Qwen3MoeConfig, transformers.Qwen3MoeForCausalLM, gguf.MODEL_ARCH.QWEN3MOE,
        qwen_moe_metadata, keep, "qwen2"),
    "qwen2moe": Architecture(
        transformers.Qwen2MoeConfig, transformers.Qwen2MoeForCausalLM, gguf.MODEL_ARCH.QWEN2MOE,
        qwen_moe_metadata, keep, "qwen2"),
    "granitemoe": Architecture(
        transformers.GraniteMoeConfig, transformers.GraniteMoeForCausalLM, gguf.MODEL_ARCH.GRANITE_MOE,
        granitemoe_metadata, interleave_heads, "refact"),
    "gpt-oss": Architecture(
        transformers.GptOssConfig, transformers.GptOssForCausalLM, gguf.MODEL_ARCH.GPT_OSS,
        gpt_oss_metadata, keep, "gpt-4o"),
    "glm4moe": Architecture(
        transformers.Glm4MoeConfig, transformers.Glm4MoeForCausalLM, gguf.MODEL_ARCH.GLM4_MOE,
        glm4moe_metadata, keep, "llama-bpe", further_layers),
    "deepseek-v2": Architecture(
        transformers.DeepseekV2Config, transformers.DeepseekV2ForCausalLM, gguf.MODEL_ARCH.DEEPSEEK2,
        deepseek2_metadata, keep, "deepseek-llm"),
    "deepseek-v3": Architecture(
        transformers.DeepseekV3Config, transformers.DeepseekV3ForCausalLM, gguf.MODEL_ARCH.DEEPSEEK2,
        deepseek2_metadata, keep, "deepseek-v3"),
    "glm4moe-lite": Architecture(
        transformers.Glm4MoeLiteConfig, transformers.Glm4MoeLiteForCausalLM, gguf.MODEL_ARCH.DEEPSEEK2,
        deepseek2_metadata, keep, "glm4"),
    "mistral4": Architecture(
        transformers.Mistral4Config, transformers.Mistral4ForCausalLM, gguf.MODEL_ARCH.MISTRAL4,
        mistral4_metadata, keep, "tekken"),
    "minimax-m2": Architecture(
        transformers.MiniMaxM2Config, transformers.MiniMaxM2ForCausalLM, gguf.MODEL_ARCH.MINIMAXM2,
        minimax_m2_metadata, keep, "gpt-2"),
    "hunyuan-dense": Architecture(
        transformers.HunYuanDenseV1Config, transformers.HunYuanDenseV1ForCausalLM, gguf.MODEL_ARCH.HUNYUAN_DENSE,
        hunyuan_metadata, keep, "gpt-2"),
    "qwen35": Architecture(
        transformers.Qwen3_5TextConfig, transformers.Qwen3_5ForCausalLM, gguf.MODEL_ARCH.QWEN35,
        qwen35_metadata, delta_net_norms_with_one, "qwen35"),
    "qwen35moe": Architecture(
        transformers.Qwen3_5MoeTextConfig, transformers.Qwen3_5MoeForCausalLM, gguf.MODEL_ARCH.QWEN35MOE,
        qwen35_metadata, delta_net_norms_with_one, "qwen35"),
    "qwen3next": Architecture(
        transformers.Qwen3NextConfig, transformers.Qwen3NextForCausalLM, gguf.MODEL_ARCH.QWEN3NEXT,
        delta_net_metadata, delta_net_norms_with_one, "qwen2"),
    "lfm2": Architecture(
        transformers.Lfm2Config, transformers.Lfm2ForCausalLM, gguf.MODEL_ARCH.LFM2,
        lfm2_metadata, keep, "gpt-2"),
    "lfm2moe": Architecture(
        transformers.Lfm2MoeConfig, transformers.Lfm2MoeForCausalLM, gguf.MODEL_ARCH.LFM2MOE,
        lfm2moe_metadata, keep, "gpt-2"),
    "granitehybrid": Architecture(
        transformers.GraniteMoeHybridConfig, transformers.GraniteMoeHybridForCausalLM, gguf.MODEL_ARCH.GRANITE_HYBRID,
        granitehybrid_metadata, interleave_attention_heads, "gpt-2"),
    "nemotron_h": Architecture(
        transformers.NemotronHConfig, transformers.NemotronHForCausalLM, gguf.MODEL_ARCH.NEMOTRON_H,
        nemotron_h_metadata, keep, "gpt-2"),
    "nemotron_h_moe": Architecture(
        transformers.NemotronHConfig, transformers.NemotronHForCausalLM, gguf.MODEL_ARCH.NEMOTRON_H_MOE,
        nemotron_h_moe_metadata, keep, "gpt-2"),
    "glm": Architecture(
        transformers.GlmConfig, transformers.GlmForCausalLM, gguf.MODEL_ARCH.CHATGLM, glm4_metadata, keep, "llama-bpe"),
    "cwm": Architecture(
        transformers.CwmConfig, transformers.CwmForCausalLM, gguf.MODEL_ARCH.LLAMA, cwm_metadata, interleave_heads, "llama-bpe", llama3_rope_freqs),
    "helium": Architecture(
        transformers.HeliumConfig, transformers.HeliumForCausalLM, gguf.MODEL_ARCH.LLAMA, llama_metadata, keep),
    "granitemoeshared": Architecture(
        transformers.GraniteMoeSharedConfig, transformers.GraniteMoeSharedForCausalLM, gguf.MODEL_ARCH.GRANITE_MOE, granitemoeshared_metadata,
        interleave_heads, "refact"),
    "arcee": Architecture(
        transformers.ArceeConfig, transformers.ArceeForCausalLM, gguf.MODEL_ARCH.ARCEE, llama_metadata, interleave_heads, "llama-bpe"),
    "exaone": Architecture(
        transformers.ExaoneConfig, transformers.LlamaForCausalLM, gguf.MODEL_ARCH.EXAONE, rms_and_rope, keep, "exaone", llama3_rope_freqs),
    "nemotron": Architecture(
        transformers.NemotronConfig, transformers.NemotronForCausalLM, gguf.MODEL_ARCH.NEMOTRON, nemotron_metadata, layer_norms_with_one),
    "gptneox": Architecture(
        transformers.GPTNeoXConfig, transformers.GPTNeoXForCausalLM, gguf.MODEL_ARCH.GPTNEOX, gptneox_metadata, heads_apart, "olmo"),
    "phi2": Architecture(
        transformers.PhiConfig, transformers.PhiForCausalLM, gguf.MODEL_ARCH.PHI2, phi2_metadata, keep, "gpt-2"),
    "starcoder": Architecture(
        transformers.GPTBigCodeConfig, transformers.GPTBigCodeForCausalLM, gguf.MODEL_ARCH.STARCODER, starcoder_metadata, keep, "starcoder"),
    "olmoe": Architecture(
        transformers.OlmoeConfig, transformers.OlmoeForCausalLM, gguf.MODEL_ARCH.OLMOE, olmoe_metadata, keep, "olmo"),
    "dots1": Architecture(
        transformers.Dots1Config, transformers.Dots1ForCausalLM, gguf.MODEL_ARCH.DOTS1, grouped_metadata, keep, "qwen2"),
    "exaone-moe": Architecture(
        transformers.ExaoneMoeConfig, transformers.ExaoneMoeForCausalLM, gguf.MODEL_ARCH.EXAONE_MOE, exaone_moe_metadata, keep, "gpt-2"),
    "ernie4_5-moe": Architecture(
        transformers.Ernie4_5_MoeConfig, transformers.Ernie4_5_MoeForCausalLM, gguf.MODEL_ARCH.ERNIE4_5_MOE, ernie_moe_metadata, keep),
    "hunyuan-moe": Architecture(
        transformers.HunYuanMoEV1Config, transformers.HunYuanMoEV1ForCausalLM, gguf.MODEL_ARCH.HUNYUAN_MOE, hunyuan_moe_metadata, keep, "gpt-2"),
}


def named_weights(model):
    """Parameters, and the buffers that a checkpoint has beside them."""
    yield from model.named_parameters()
    yield from (named for named in model.named_buffers() if named[0].endswith(("e_score_correction_bias", "expert_bias", "layer_scalar")))


def gpt_oss_expert_tensors(layer, kind, data) -> Tensors:
    """Rows of gate and up alternate; matrices are [in, out]."""
    part = "bias" if kind.endswith("_bias") else "weight"
    data = data if part == "bias" else data.swapaxes(1, 2)
    if kind.startswith("down_proj"):
        return {f"blk.{layer}.ffn_down_exps.{part}": data}
    return {f"blk.{layer}.ffn_gate_exps.{part}": data[:, ::2], f"blk.{layer}.ffn_up_exps.{part}": data[:, 1::2]}


def tiled_heads(config, data, axis, size):
    """Along `axis`: heads of `size`, from group by group to each group's first, each group's second ..."""
    groups = config.linear_num_key_heads
    shape = data.shape
    data = data.reshape(*shape[:axis], groups, config.linear_num_value_heads // groups, size, *shape[axis + 1:])
    return data.swapaxes(axis, axis + 1).reshape(shape)


def delta_net_tensors(config, layer, kind, data) -> Tensors:
    """Qwen3-Next keeps its order of heads; Qwen3.5's are dealt to groups in turn."""
    keys, groups = config.linear_key_head_dim, config.linear_num_key_heads
    heads, size = config.linear_num_value_heads, config.linear_value_head_dim
    tiled = (lambda data, axis, size: tiled_heads(config, data, axis, size)) if config.model_type != "qwen3_next" else (lambda data, *_: data)

    def mixed(data):
        return np.concatenate([data[:2 * keys * groups], tiled(data[2 * keys * groups:], 0, size)])

    if kind == "in_proj_qkvz":
        parts = np.split(data.reshape(groups, -1, data.shape[-1]), np.cumsum([keys, keys, heads // groups * size]), axis=1)
        q, k, v, z = (part.reshape(-1, data.shape[-1]) for part in parts)
        return {f"blk.{layer}.attn_qkv.weight": np.concatenate([q, k, v]), f"blk.{layer}.attn_gate.weight": z}
    return {
        "in_proj_ba": lambda: {f"blk.{layer}.ssm_ba.weight": data},
        "in_proj_qkv": lambda: {f"blk.{layer}.attn_qkv.weight": mixed(data)},
        "in_proj_z": lambda: {f"blk.{layer}.attn_gate.weight": tiled(data, 0, size)},
        "in_proj_b": lambda: {f"blk.{layer}.ssm_beta.weight": tiled(data, 0, 1)},
        "in_proj_a": lambda: {f"blk.{layer}.ssm_alpha.weight": tiled(data, 0, 1)},
        "conv1d": lambda: {f"blk.{layer}.ssm_conv1d.weight": mixed(data.squeeze(1))},
        "A_log": lambda: {f"blk.{layer}.ssm_a": tiled(-np.exp(data), 0, 1)},
        "dt_bias": lambda: {f"blk.{layer}.ssm_dt.bias": tiled(data, 0, 1)},
        "norm": lambda: {f"blk.{layer}.ssm_norm.weight": data},
        "out_proj": lambda: {f"blk.{layer}.ssm_out.weight": tiled(data, 1, size)},
    }[kind]()


def mamba2_tensors(config, layer, kind, part, data) -> Tensors:
    groups = config.mamba_n_groups if hasattr(config, "mamba_n_groups") else config.n_groups
    return {f"blk.{layer}.{name}": value for name, value in {
        "in_proj": lambda: {"ssm_in.weight": data},
        "conv1d": lambda: {f"ssm_conv1d.{part}": data.squeeze(1) if part == "weight" else data},
        "A_log": lambda: {"ssm_a": -np.exp(data).reshape(-1, 1)},
        "D": lambda: {"ssm_d": data.reshape(-1, 1)},
        "dt_bias": lambda: {"ssm_dt.bias": data},
        "norm": lambda: {"ssm_norm.weight": data.reshape(groups, -1)},
        "out_proj": lambda: {"ssm_out.weight": data},
    }[kind]().items()}


def recurrent_tensors(config, layer, name, data) -> Tensors:
    rest = name.split(".")[3:]  # mixer, kind, part
    if rest[0] == "linear_attn":
        return delta_net_tensors(config, layer, rest[1], data)
    if rest[0] == "mamba" or (rest[0] == "mixer" and rest[1] in ("in_proj", "conv1d", "A_log", "D", "dt_bias", "norm", "out_proj")):
        return mamba2_tensors(config, layer, rest[1], rest[-1], data)
    if rest[0] == "mixer":  # Nemotron-H's other layers
        if rest[-1] == "e_score_correction_bias":
            return {f"blk.{layer}.exp_probs_b.bias": data}
        if rest[1] in ("experts", "shared_experts"):
            end = "_exps" if rest[1] == "experts" else "_shexp"
            return {f"blk.{layer}.ffn_{rest[2].removesuffix('_proj')}{end}.weight": data}
        names = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "up_proj": "ffn_up", "down_proj": "ffn_down",
                 "gate": "ffn_gate_inp", "fc1_latent_proj": "ffn_latent_down", "fc2_latent_proj": "ffn_latent_up"}
        return {f"blk.{layer}.{names[rest[1]]}.{rest[2]}": data}
    if rest[:2] == ["conv", "conv"]:
        return {f"blk.{layer}.shortconv.conv.weight": data.squeeze(1)}
    return {}


def layer_tensors(config, name, data) -> Tensors:
    """What a file has of a layer's experts, of three dimensions, and of what the table of names lacks; none if it is
    another parameter."""
    layer = re.match(r"model\.layers\.(\d+)\.", name)
    if layer and (recurrent := recurrent_tensors(config, layer[1], name, data)):
        return recurrent
    if name.endswith("kv_b_proj.weight"):
        heads = data.reshape(config.num_attention_heads, -1, config.kv_lora_rank)
        keys, values = np.split(heads, [config.qk_nope_head_dim], axis=1)
        return {f"blk.{layer[1]}.attn_k_b.weight": keys.swapaxes(1, 2), f"blk.{layer[1]}.attn_v_b.weight": values}
    if name.endswith("expert_bias"):
        return {f"blk.{layer[1]}.exp_probs_b.bias": data}
    if config.model_type in ("granitemoehybrid", "granitemoeshared") and "shared_mlp" in name:
        end = "_shexp" if config.num_local_experts else ""
        if name.endswith("output_linear.weight"):
            return {f"blk.{layer[1]}.ffn_down{end}.weight": data}
        gate, up = np.split(data, 2)
        return {f"blk.{layer[1]}.ffn_gate{end}.weight": gate, f"blk.{layer[1]}.ffn_up{end}.weight": up}
    if name.endswith("self_attn.sinks"):
        return {f"blk.{layer[1]}.attn_sinks.weight": data}
    if name.endswith("e_score_correction_bias"):
        return {f"blk.{layer[1]}.exp_probs_b.bias": data}
    if name.endswith("layer_scalar"):
        return {f"blk.{layer[1]}.layer_output_scale.weight": data}
    if name.endswith("router.scale"):
        return {f"blk.{layer[1]}.ffn_gate_inp.scale": data}
    if name.endswith("router.per_expert_scale"):
        return {f"blk.{layer[1]}.ffn_down_exps.scale": data}
    if config.model_type in ("gemma4_text", "mistral4") and name.endswith("experts.gate_up_proj"):
        return {f"blk.{layer[1]}.ffn_gate_up_exps.weight": data}
    if config.model_type == "gpt_oss" and ".experts." in name:
        return gpt_oss_expert_tensors(layer[1], name.split(".")[-1], data)
    if name.endswith("experts.gate_up_proj"):
        gate, up = np.split(data, 2, axis=1)
        return {f"blk.{layer[1]}.ffn_gate_exps.weight": gate, f"blk.{layer[1]}.ffn_up_exps.weight": up}
    if name.endswith("experts.down_proj"):
        return {f"blk.{layer[1]}.ffn_down_exps.weight": data}
    if name.endswith("block_sparse_moe.router.weight"):
        return {f"blk.{layer[1]}.ffn_gate_inp.weight": data}
    if name.endswith("shared_expert_gate.weight"):
        return {f"blk.{layer[1]}.ffn_gate_inp_shexp.weight": data.reshape(-1)}
    return {}


def mtp_head_weights(model, head):
    """A transformers MtpModel's weights, named as if its decoder layer came behind the model's last."""
    layer = f"model.layers.{model.config.num_hidden_layers}."
    for name, parameter in named_weights(head):
        if name.startswith("layers.0."):
            yield layer + name.removeprefix("layers.0.").removeprefix("mtp_block."), parameter


# Of an MTP head, beside its decoder layer.
MTP_TENSORS = {"enorm": "enorm", "hnorm": "hnorm", "eh_proj": "eh_proj", "post_norm": "shared_head_norm"}


def gguf_tensors(architecture, model, head=None) -> Tensors:
    """The model's weights under their GGUF names, float32; no output tensor where tied. head: its MTP head."""
    config = model.config
    names = gguf.get_tensor_name_map(architecture.gguf_arch, config.num_hidden_layers + 1)
    tensors = dict(architecture.extra_tensors(config))
    # Not the state dict: that has other buffers, and a tied output a second time.
    for name, parameter in [*named_weights(model), *(mtp_head_weights(model, head) if head else ())]:
        parts = name.split(".")
        if head and parts[3:4] and parts[3] in MTP_TENSORS:
            data = architecture.convert(config, name, parameter.detach().numpy())
            tensors[f"blk.{parts[2]}.nextn.{MTP_TENSORS[parts[3]]}.weight"] = np.ascontiguousarray(data, dtype=np.float32)
            continue
        special = layer_tensors(config, name, parameter.detach().numpy())
        if special:
            tensors |= {key: np.ascontiguousarray(data, dtype=np.float32) for key, data in special.items()}
            continue
        new_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new_name is not None, f"no GGUF name for {name}"
        data = architecture.convert(config, name, parameter.detach().numpy())
        tensors[new_name] = np.ascontiguousarray(data, dtype=np.float32)
    return tensors
