"""Further entries of ARCHITECTURES: models that differ from the others by little. See architectures.py, which adds them."""
import gguf
import numpy as np
import transformers

from architectures import (Architecture, common, expert_counts, glm4_metadata, granitemoe_metadata, head_dim_of, hunyuan_metadata, interleave_heads,
                           keep, layer_norm_and_rope, llama3_rope_freqs, llama_metadata, partial_dim, rms_and_rope)


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


MORE_ARCHITECTURES = {
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
