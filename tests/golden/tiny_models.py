"""Random tiny models: built from a configuration, filled from a seed, run in float32."""
import numpy as np
import torch
import transformers

from architectures import ARCHITECTURES, falcon_groups, named_weights

torch.set_num_threads(1)  # one order of additions, whatever the machine
transformers.logging.set_verbosity_error()

# Scores q.k / sqrt(head_dim) get about the square of this as their standard deviation:
# 0 would be uniform attention, which hides mistakes in rope, masks and head order.
SHARPNESS = 1.5


def build(arch, config_options, seed):
    architecture = ARCHITECTURES[arch]
    config = architecture.config_class(use_cache=False, **config_options)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = architecture.model_class(config).to(torch.float32).eval()
    randomise(model, seed)
    return model


def randomise(model, seed):
    """No norm weight is one and no bias zero, so that a reader that skips one is seen."""
    rng = np.random.Generator(np.random.PCG64(seed))
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, parameter in sorted(named_weights(model)):
            values = random_values(rng, model.config, name, tuple(parameter.shape), tied)
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))


def adds_one(config, name):
    """Whether a norm multiplies by 1 + its weight."""
    if config.model_type.startswith("gemma"):
        return config.model_type != "gemma4_text"
    qwen = config.model_type.startswith(("qwen3_next", "qwen3_5"))
    return qwen and name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")


def random_values(rng, config, name, shape, tied):
    module, kind = name.rsplit(".", 2)[-2:]
    if kind == "gate_up_proj_bias":
        return rng.normal(0, 4.0, shape)  # so that some of what they are added to is clamped
    if kind in ("bias", "down_proj_bias"):
        return rng.normal(0, 0.4, shape)
    if kind == "A_log":
        return rng.uniform(-2.5, 0.5, shape)  # states that remember some tokens, and states that remember many
    if kind in ("e_score_correction_bias", "expert_bias"):
        return rng.normal(0, 0.3, shape)  # of numbers between 0 and 1
    if kind == "layer_scalar":
        return rng.uniform(0.6, 1.4, shape)
    if kind == "sinks":
        return rng.normal(1.0, 1.0, shape)
    if config.model_type == "gpt_oss" and module == "experts":  # [experts, in, out]; the inputs of `down` are large
        return rng.normal(0, shape[1] ** -0.5, shape) * (0.2 if kind == "down_proj" else 1.0)
    if len(shape) == 1:
        # Of both signs: an absolute value or a square in the wrong place is seen too.
        # Not in QK norm, where larger weights are what makes attention sharp.
        gemma4 = config.model_type == "gemma4_text"
        added = 1.0 if adds_one(config, name) else 0.0  # by the model itself
        if module in ("q_norm", "k_norm", "query_layernorm", "key_layernorm", "q_layernorm", "k_layernorm"):
            # Gemma 4 does not scale its scores.
            return rng.uniform(0.7, 1.7, shape) * (shape[0] ** -0.25 if gemma4 else 1.0) - added
        return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape) - added
    if module == "embed_tokens_per_layer":
        return rng.normal(0, config.hidden_size_per_layer_input ** -0.5, shape)
    if module in ("embed_tokens", "word_embeddings", "embeddings", "wte", "wpe"):
        # Tied, the same numbers make logits: sums of d products that must be near 1.
        return rng.normal(0, config.hidden_size ** -0.5 if tied else 0.7, shape)
    conv1d = module in ("c_attn", "c_proj", "c_fc")
    fan_in = shape[0] if conv1d else shape[-1]
    values = rng.normal(0, fan_in ** -0.5, shape)
    if module in ("q_proj", "k_proj"):
        values *= SHARPNESS
    # What is divided by its length with an epsilon that no file says: small, so that this shows. Queries and keys of delta nets, latents.
    elif module == "conv1d" and hasattr(config, "linear_num_key_heads"):
        values[:2 * config.linear_num_key_heads * config.linear_key_head_dim] *= 0.02
    elif module in ("q_a_proj", "kv_a_proj_with_mqa"):
        values[:getattr(config, "kv_lora_rank" if module.startswith("kv") else "q_lora_rank")] *= 0.1
    elif module == "qkv_proj":  # queries, keys, values
        kept = config.num_key_value_heads * (config.hidden_size // config.num_attention_heads)
        values[:-kept] *= SHARPNESS
    elif module in ("gate", "router"):
        values *= 2.0  # experts whose weights differ
    elif name.endswith("router.proj.weight"):
        values *= 2.0 * config.hidden_size ** 0.5  # its input has a length of about 1
    elif module == "c_attn":
        values[:, : 2 * config.hidden_size] *= SHARPNESS
    elif module == "query_key_value" and config.model_type == "gpt_neox":
        values.reshape(config.num_attention_heads, 3, -1, config.hidden_size)[:, :-1] *= SHARPNESS
    elif module == "query_key_value":
        falcon_groups(config, values)[:, :-1] *= SHARPNESS
    elif module in ("down_proj", "dense_4h_to_h") or kind == "down_proj":
        values *= 2.0  # the gate or GELU has made its input small
    return values


def run(model, tokens):
    """Logits [tokens, vocab] and, a layer, the attention [heads, queries, keys]."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([tokens]), output_attentions=True)
    return out.logits[0].numpy(), [layer[0].numpy() for layer in out.attentions]


def random_tokens(count, vocab, seed):
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    return [int(t) for t in rng.integers(0, vocab, size=count)]
