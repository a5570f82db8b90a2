"""The models whose logits are in data/: what each is there to show."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    arch: str
    config: dict
    tokens: int = 24
    first_row: int = 0            # logits of earlier tokens are not stored
    tokenizer: str | None = None  # None: the architecture's own
    # Each of these changes must change the logits, else the case does not test that key.
    must_matter: tuple[dict, ...] = ()


def rope(theta, rope_type="default", **more):
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": float(theta), **more}}


def llama3_rope(theta, original_length):
    """Lengths far below a real model's, so that short prompts meet changed frequencies."""
    return rope(theta, "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=original_length)


def gated(vocab, d, heads, kv_heads, ffn, layers=2, eps=1e-5, context=64, theta=10000.0, **more):
    """Configuration of the models with RMS norm, gated FFN and rope. (About eps, see below.)"""
    return {"vocab_size": vocab, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn,
            "num_hidden_layers": layers, "rms_norm_eps": eps,
            "max_position_embeddings": context, "tie_word_embeddings": False,
            **rope(theta), **more}


def kinds(layers, other="linear_attention", period=2):
    return ["full_attention" if (i + 1) % period == 0 else other for i in range(layers)]


def delta_net(vocab, d, heads, kv_heads, ffn, layers=3, period=2, eps=0.02, groups=2, values_a_group=3, keys=8, values=20, **more):
    """Every `period`-th layer is attention, the others gated delta nets."""
    return gated(vocab, d, heads, kv_heads, ffn, layers, eps) | {
        "head_dim": 16, "layer_types": kinds(layers, period=period), "linear_conv_kernel_dim": 4, "linear_key_head_dim": keys,
        "linear_value_head_dim": values, "linear_num_key_heads": groups, "linear_num_value_heads": groups * values_a_group,
        **rope(1e4, partial_rotary_factor=0.5), **more}


def next_experts(count, used, dim=20, shared=24):
    return {"num_experts": count, "num_experts_per_tok": used, "moe_intermediate_size": dim, "shared_expert_intermediate_size": shared}


def latent(vocab, d, heads, ffn, layers=3, eps=0.02, plain=10, turned=6, value=14, rank=20, query_rank=18, experts=8, used=3, **more):
    return gated(vocab, d, heads, heads, ffn, layers, eps) | {
        "qk_nope_head_dim": plain, "qk_rope_head_dim": turned, "v_head_dim": value, "kv_lora_rank": rank, "q_lora_rank": query_rank,
        "n_routed_experts": experts, "num_experts_per_tok": used, "n_shared_experts": 2, "moe_intermediate_size": 20, "n_group": 1,
        "topk_group": 1, "routed_scaling_factor": 1.7, "first_k_dense_replace": 1, **more}


def lfm2(vocab, d, heads, kv_heads, ffn, layers=3, period=2, eps=0.02, **more):
    config = gated(vocab, d, heads, kv_heads, ffn, layers) | {
        "norm_eps": eps, "conv_L_cache": 3, "block_auto_adjust_ff_dim": False, "layer_types": kinds(layers, "conv", period),
        "tie_word_embeddings": True, "pad_token_id": 0, **more}
    del config["rms_norm_eps"]
    return config


def granitehybrid(vocab, d, heads, kv_heads, ffn, layers=3, period=2, eps=0.02, mamba_heads=4, groups=2, state=12, **more):
    return gated(vocab, d, heads, kv_heads, ffn, layers, eps) | {
        "layer_types": kinds(layers, period=period), "shared_intermediate_size": 28, "mamba_n_heads": mamba_heads,
        "mamba_n_groups": groups, "mamba_d_state": state, "mamba_d_head": 2 * d // mamba_heads, "mamba_expand": 2, "mamba_d_conv": 4,
        "attention_multiplier": 0.3, "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "logits_scaling": 0.6,
        "pad_token_id": 0, "position_embedding_type": None, **more}


def nemotron_h(vocab, d, heads, kv_heads, ffn, pattern="M-*M-", eps=0.02, mamba_heads=6, mamba_dim=20, groups=2, state=12, **more):
    names = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    return {"vocab_size": vocab, "hidden_size": d, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "intermediate_size": ffn,
            "layers_block_type": [names[kind] for kind in pattern], "layer_norm_epsilon": eps, "head_dim": 12,
            "mamba_num_heads": mamba_heads, "mamba_head_dim": mamba_dim, "n_groups": groups, "ssm_state_size": state, "conv_kernel": 4,
            "max_position_embeddings": 64, "tie_word_embeddings": False, "rescale_prenorm_residual": False, **more}


def ungated_experts(count, used, dim=20, shared=28, narrow=None, groups=1, used_groups=1):
    return {"n_routed_experts": count, "num_experts_per_tok": used, "moe_intermediate_size": dim,
            "moe_shared_expert_intermediate_size": shared, "moe_latent_size": narrow, "n_group": groups, "topk_group": used_groups,
            "routed_scaling_factor": 1.7, "norm_topk_prob": True}


def gpt2(vocab, d, heads, layers=2, **more):
    return {"vocab_size": vocab, "n_embd": d, "n_head": heads, "n_layer": layers,
            "n_positions": 64, "layer_norm_epsilon": 1e-5, "bos_token_id": vocab - 1,
            "eos_token_id": vocab - 1, **more}


def bigcode(vocab, d, heads, kv_heads, ffn, layers=2, **more):
    """kv_heads: there is one, whatever it says."""
    more.pop("pad_token_id", None)
    return gpt2(vocab, d, heads, layers, n_inner=ffn, **more)


def falcon(vocab, d, heads, layers=2, **more):
    return {"vocab_size": vocab, "hidden_size": d, "num_attention_heads": heads,
            "num_hidden_layers": layers, "layer_norm_epsilon": 1e-5,
            "max_position_embeddings": 64, "bos_token_id": vocab - 1,
            "eos_token_id": vocab - 1, **rope(10000), **more}


def gemma3(vocab, d, heads, kv_heads, ffn, layers, head_dim, window, period=6, theta=1e6,
           windowed_theta=10000.0, context=64, eps=1e-6, full="default", **more):
    """Every `period`-th layer sees everything; the others have a window and a rope base of their own."""
    kinds = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(layers)]
    scaling = {"rope_type": full} | ({"factor": 8.0} if full == "linear" else {})
    return {"vocab_size": vocab, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn,
            "num_hidden_layers": layers, "head_dim": head_dim, "query_pre_attn_scalar": head_dim,
            "rms_norm_eps": eps, "max_position_embeddings": context, "sliding_window": window,
            "layer_types": kinds, "tie_word_embeddings": True,
            "rope_parameters": {"full_attention": scaling | {"rope_theta": theta},
                                "sliding_attention": {"rope_type": "default",
                                                      "rope_theta": windowed_theta}}, **more}


def gemma3_case(name, *shape, must_matter=(), tokens=40, **more):
    changed = tuple(gemma3(*shape, **(more | change)) for change in must_matter)
    return Case(name, "gemma3", gemma3(*shape, **more), tokens=tokens, must_matter=changed)


def gemma4(vocab, d, heads, kv_heads, ffn, kinds, head_dim, full_dim, window, eps=1e-6, context=64, theta=1e6,
           windowed_theta=10000.0, rotated=0.25, per_layer=0, softcap=4.0, **more):
    """kinds: a letter a layer, w for those with a window and f for those that see everything."""
    return {"vocab_size": vocab, "vocab_size_per_layer_input": vocab, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn, "num_hidden_layers": len(kinds),
            "head_dim": head_dim, "global_head_dim": full_dim, "rms_norm_eps": eps, "max_position_embeddings": context,
            "sliding_window": window, "hidden_size_per_layer_input": per_layer, "final_logit_softcapping": softcap,
            "layer_types": ["full_attention" if kind == "f" else "sliding_attention" for kind in kinds],
            "tie_word_embeddings": True,
            "rope_parameters": {"full_attention": {"rope_type": "proportional", "rope_theta": theta,
                                                   "partial_rotary_factor": rotated},
                                "sliding_attention": {"rope_type": "default", "rope_theta": windowed_theta}}, **more}


def gemma4_case(name, *shape, must_matter, **options):
    """must_matter: changes of gemma4()'s options."""
    config = gemma4(*shape, **options)
    return Case(name, "gemma4", config, tokens=40,
                must_matter=tuple(gemma4(*shape, **{**options, **change}) for change in must_matter))


def mixed(layers, period, window):
    """Every `period`-th layer sees everything."""
    kinds = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(layers)]
    return {"layer_types": kinds, "sliding_window": window}


def yarn(theta, factor, original, **more):
    return rope(theta, "yarn", factor=factor, original_max_position_embeddings=original, **more)


def growing(scaled, rate, plain=10, turned=6):
    """Mistral 4's: queries grow; a part of each head rotates, just above, so that int(dim * share) is what is meant."""
    more = {"llama_4_scaling_beta": rate, "partial_rotary_factor": (turned + 0.01) / (plain + turned)}
    return {"rope_parameters": scaled["rope_parameters"] | more}


def growing_yarn(**change):
    """Mistral 3's."""
    return yarn(100, 4.0, 24, **({"beta_fast": 1.0, "beta_slow": 0.25, "mscale": 1.0, "mscale_all_dim": 1.0,
                                  "llama_4_scaling_beta": 0.3} | change))


def olmo3_rope(theta, full):
    """`full`: of the layers that see everything."""
    return {"rope_parameters": {"full_attention": full["rope_parameters"], "sliding_attention": rope(theta)["rope_parameters"]}}


def longrope(theta, context, original, pairs, **more):
    """Factors that no real model has; attention_factor is made of the two contexts."""
    factors = {"long_factor": [1.5 + 0.75 * i for i in range(pairs)],
               "short_factor": [1.0 + 0.125 * i for i in range(pairs)]}
    return {"max_position_embeddings": context, "original_max_position_embeddings": original,
            **rope(theta, "longrope", original_max_position_embeddings=original, **factors, **more)}


def layer_normed(vocab, d, heads, kv_heads, ffn, layers=2, theta=10000.0, context=64, **more):
    return {"vocab_size": vocab, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn, "num_hidden_layers": layers,
            "max_position_embeddings": context, "tie_word_embeddings": False, **rope(theta), **more}


# An epsilon as large as 0.02 is in no real model: it is what makes a reader that has its
# own constant, or the epsilon outside the root, visible in the logits.
CASES = [
    Case("llama-mha", "llama", gated(96, 32, 4, 4, 40)),
    Case("llama-gqa", "llama", gated(104, 36, 6, 2, 40, eps=0.02),
         must_matter=({"rms_norm_eps": 1e-5},)),
    Case("llama-mqa", "llama", gated(96, 32, 4, 1, 48, theta=500.0),
         must_matter=(rope(10000),)),
    Case("llama-tied", "llama", gated(96, 32, 4, 2, 40, tie_word_embeddings=True)),
    Case("llama-head-dim", "llama", gated(96, 32, 4, 2, 40, head_dim=12)),
    Case("llama-bias", "llama", gated(96, 32, 4, 2, 40, attention_bias=True)),
    Case("llama-mlp-bias", "llama", gated(96, 32, 4, 2, 40, attention_bias=True, mlp_bias=True)),
    Case("llama-linear", "llama",
         gated(96, 32, 4, 2, 40) | rope(10000, "linear", factor=4.0),
         must_matter=(rope(10000), rope(10000, "linear", factor=2.0))),
    Case("llama3", "llama", gated(100, 32, 2, 2, 40) | llama3_rope(500000, 256),
         tokenizer="llama-bpe",
         must_matter=(rope(500000), rope(500000, "linear", factor=8.0))),
    Case("llama3-tied", "llama",
         gated(112, 32, 2, 1, 40, tie_word_embeddings=True) | llama3_rope(1000, 64),
         tokenizer="llama-bpe", must_matter=(rope(1000),)),
    Case("llama-long", "llama", gated(96, 32, 4, 2, 40, context=1024), tokens=600, first_row=536),
    # 40 tokens, window 8; 600 tokens, window 300, over the borders of 256-key chunks.
    Case("mistral", "mistral", gated(96, 32, 4, 2, 40, sliding_window=8), tokens=40,
         must_matter=({"sliding_window": 7}, {"sliding_window": 9}, {"sliding_window": None})),
    Case("mistral-long", "mistral",
         gated(96, 32, 4, 2, 40, context=1024, sliding_window=300), tokens=600, first_row=536,
         must_matter=({"sliding_window": 299}, {"sliding_window": 301},
                      {"sliding_window": None})),
    Case("qwen2", "qwen2", gated(100, 32, 4, 2, 40, eps=0.02, theta=1e6),
         must_matter=({"rms_norm_eps": 1e-5}, rope(10000))),
    Case("qwen2-tied", "qwen2", gated(104, 36, 6, 2, 40, tie_word_embeddings=True)),
    Case("qwen3", "qwen3", gated(100, 32, 4, 2, 40, head_dim=16, eps=0.02, theta=1e6),
         must_matter=({"rms_norm_eps": 1e-5}, rope(10000))),
    Case("qwen3-tied", "qwen3", gated(100, 36, 2, 1, 40, head_dim=24, tie_word_embeddings=True)),
    Case("gpt2", "gpt2", gpt2(100, 32, 4), must_matter=({"activation_function": "gelu"},)),
    # With an output.weight of its own, different from token_embd.weight.
    Case("gpt2-output", "gpt2",
         gpt2(100, 24, 3, n_inner=60, tie_word_embeddings=False, layer_norm_epsilon=0.02),
         must_matter=({"layer_norm_epsilon": 1e-5},)),
    # 7B-style: one KV head, one norm for attention and FFN. d = 40 is no multiple of 32.
    Case("falcon-7b", "falcon", falcon(100, 40, 5, ffn_hidden_size=72),
         must_matter=({"activation": "gelu_new"},)),
    Case("falcon-7b-theta", "falcon",
         falcon(100, 24, 2, layers=3, tie_word_embeddings=False, layer_norm_epsilon=0.02) | rope(500),
         must_matter=({"layer_norm_epsilon": 1e-5}, rope(10000))),
    # 40B-style: KV groups, a norm each (attn_norm_2 is the attention's); 11B: one again.
    Case("falcon-40b", "falcon",
         falcon(100, 32, 4, num_kv_heads=2, new_decoder_architecture=True,
                tie_word_embeddings=False, ffn_hidden_size=80)),
    Case("falcon-11b", "falcon",
         falcon(100, 32, 4, num_kv_heads=2, new_decoder_architecture=True,
                num_ln_in_parallel_attn=1, ffn_hidden_size=72), must_matter=({"activation": "gelu_new"},)),
    # Seven layers: five with a window, one without, one with.
    gemma3_case("gemma3", 100, 32, 4, 2, 40, 7, 12, window=8, eps=0.02,
                must_matter=({"eps": 1e-6}, {"window": 7}, {"window": 9}, {"period": 5}, {"theta": 1e4},
                             {"windowed_theta": 1e6}, {"hidden_activation": "gelu"})),
    gemma3_case("gemma3-linear", 96, 24, 2, 1, 40, 4, 16, window=12, period=2, windowed_theta=500.0, full="linear",
                must_matter=({"full": "default"}, {"period": 3}, {"windowed_theta": 1e4})),
    Case("granite", "granite",
         gated(104, 32, 4, 2, 40, eps=0.02, attention_multiplier=0.3, embedding_multiplier=3.0, residual_multiplier=0.4,
               logits_scaling=0.6),
         must_matter=({"rms_norm_eps": 1e-5}, {"attention_multiplier": 0.35}, {"embedding_multiplier": 1.0}, {"residual_multiplier": 1.0},
                      {"logits_scaling": 1.0})),
    Case("qwen2-yarn", "qwen2", gated(100, 32, 4, 2, 40) | yarn(1e4, 4.0, 24), tokens=40,
         must_matter=(rope(1e4), rope(1e4, "linear", factor=4.0), yarn(1e4, 3.0, 24), yarn(1e4, 4.0, 64))),
    Case("gemma", "gemma", gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, tie_word_embeddings=True),
         must_matter=({"rms_norm_eps": 1e-5},)),
    Case("smollm3", "smollm3", gated(96, 32, 4, 2, 40, layers=4, eps=0.02, pad_token_id=0, no_rope_layers=[1, 1, 1, 0]),
         must_matter=({"rms_norm_eps": 1e-5}, {"no_rope_layers": [1, 1, 1, 1]}, {"no_rope_layers": [1, 1, 0, 1]})),
    # As these betas are, and no others, pair 0 keeps its frequency and pair 4 is the first that is divided.
    Case("mistral3", "mistral3", gated(96, 32, 4, 2, 40, eps=0.02, head_dim=12) | growing_yarn(), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, rope(100, llama_4_scaling_beta=0.3, original_max_position_embeddings=24), growing_yarn(mscale_all_dim=0.5),
                      growing_yarn(llama_4_scaling_beta=0.35), growing_yarn(beta_fast=32.0), growing_yarn(beta_slow=1.0))),
    Case("olmo2", "olmo2", gated(100, 32, 4, 2, 40, eps=0.02), must_matter=({"rms_norm_eps": 1e-5},)),
    Case("olmo3", "olmo3", gated(100, 32, 4, 2, 40, layers=4, **mixed(4, 4, 8)) | olmo3_rope(1e4, yarn(1e4, 4.0, 16)), tokens=40,
         must_matter=({"sliding_window": 7}, {"sliding_window": 9}, mixed(4, 3, 8), olmo3_rope(500, yarn(1e4, 4.0, 16)),
                      olmo3_rope(1e4, rope(1e4)), olmo3_rope(1e4, yarn(1e4, 3.0, 16)))),
    Case("exaone4", "exaone4", gated(100, 32, 4, 2, 40, layers=4, eps=0.02, head_dim=12, sliding_window_pattern=4, **mixed(4, 4, 8)),
         tokens=40, must_matter=({"rms_norm_eps": 1e-5}, {"sliding_window": 7}, {"sliding_window": 9}, mixed(4, 3, 8), rope(500))),
    Case("exaone4-full", "exaone4", gated(100, 32, 2, 1, 40, sliding_window=None, layer_types=["full_attention"] * 2) | llama3_rope(500000, 256)),
    Case("phi3", "phi3", gated(100, 32, 4, 2, 40, eps=0.02, sliding_window=9, original_max_position_embeddings=64, pad_token_id=0)
         | rope(1e4, partial_rotary_factor=0.75), must_matter=({"rms_norm_eps": 1e-5}, rope(1e4), {"sliding_window": 10}, {"sliding_window": 8})),
    # A row is as in a sequence of the whole context: transformers has it so where the prompt is longer than the original.
    Case("phi3-long", "phi3", gated(100, 32, 4, 2, 40, pad_token_id=0) | longrope(1e4, 64, 16, 4), tokens=40,
         must_matter=(longrope(1e4, 63, 16, 4), longrope(1e4, 64, 15, 4), rope(1e4))),
    Case("phi3-short", "phi3", gated(100, 32, 4, 2, 40, pad_token_id=0) | longrope(1e4, 64, 64, 4), tokens=40, must_matter=(rope(1e4),)),
    Case("starcoder2", "starcoder2",
         layer_normed(100, 32, 4, 2, 40, norm_epsilon=0.02, use_bias=True, sliding_window=None),
         must_matter=({"norm_epsilon": 1e-5}, {"hidden_act": "gelu"})),
    Case("stablelm", "stablelm",
         layer_normed(100, 32, 4, 2, 40, layer_norm_eps=0.02, use_qkv_bias=True) | rope(1e4, partial_rotary_factor=0.5),
         must_matter=({"layer_norm_eps": 1e-5}, rope(1e4, partial_rotary_factor=0.25), rope(9e3, partial_rotary_factor=0.5))),
    Case("command-r", "command-r",
         layer_normed(100, 32, 4, 2, 40, layer_norm_eps=0.02, logit_scale=0.7, tie_word_embeddings=True, pad_token_id=0),
         must_matter=({"layer_norm_eps": 1e-5}, {"logit_scale": 1.0})),
    Case("cohere2", "cohere2",
         layer_normed(100, 32, 4, 2, 40, layers=4, layer_norm_eps=0.02, logit_scale=0.7, tie_word_embeddings=True, pad_token_id=0,
                      **mixed(4, 4, 8)), tokens=40,
         must_matter=({"layer_norm_eps": 1e-5}, {"logit_scale": 1.0}, {"sliding_window": 7}, {"sliding_window": 9}, mixed(4, 3, 8))),
    Case("glm4", "glm4",
         gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, attention_bias=True, pad_token_id=0) | rope(1e4, partial_rotary_factor=0.5),
         must_matter=({"rms_norm_eps": 1e-5}, rope(1e4, partial_rotary_factor=1.0),)),
    Case("seed_oss", "seed_oss", gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, attention_bias=True), must_matter=({"rms_norm_eps": 1e-5},)),
    Case("ernie4_5", "ernie4_5", gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, use_bias=True), must_matter=({"rms_norm_eps": 1e-5},)),
    Case("mixtral", "mixtral", gated(96, 32, 4, 2, 24, num_local_experts=6, num_experts_per_tok=2), tokens=40,
         must_matter=({"num_experts_per_tok": 3},)),
    Case("qwen3moe", "qwen3moe",
         gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, num_experts=10, num_experts_per_tok=3, moe_intermediate_size=20,
               norm_topk_prob=True), tokens=40, must_matter=({"rms_norm_eps": 1e-5}, {"norm_topk_prob": False}, {"num_experts_per_tok": 2})),
    Case("qwen2moe", "qwen2moe",
         gated(100, 32, 4, 2, 40, eps=0.02, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20,
               shared_expert_intermediate_size=24), tokens=40, must_matter=({"rms_norm_eps": 1e-5}, {"norm_topk_prob": True})),
    Case("granitemoe", "granitemoe",
         gated(104, 32, 4, 2, 24, eps=0.02, num_local_experts=6, num_experts_per_tok=2, attention_multiplier=0.3, embedding_multiplier=3.0,
               residual_multiplier=0.4, logits_scaling=0.6, pad_token_id=0), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 3}, {"residual_multiplier": 1.0})),
    Case("gemma2", "gemma2",
         gated(100, 32, 4, 2, 40, layers=3, eps=0.02, head_dim=12, query_pre_attn_scalar=12, tie_word_embeddings=True,
               sliding_window=8, attn_logit_softcapping=1.5, final_logit_softcapping=2.0), tokens=40,
         must_matter=({"attn_logit_softcapping": None}, {"attn_logit_softcapping": 1.6}, {"final_logit_softcapping": None},
                      {"final_logit_softcapping": 2.1}, {"sliding_window": 7}, {"sliding_window": 9},
                      {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, {"hidden_activation": "gelu"},
                      {"rms_norm_eps": 1e-6})),
    Case("gpt-oss", "gpt-oss",
         gated(100, 32, 4, 2, 20, layers=3, eps=0.02, head_dim=12, sliding_window=8, num_local_experts=6, num_experts_per_tok=2, context=2400)
         | yarn(100, 4.0, 600, truncate=False), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"swiglu_alpha": 1.0}, {"swiglu_alpha": 1.6}, {"swiglu_limit": 1e9}, {"swiglu_limit": 6.5},
                      {"num_experts_per_tok": 3}, {"sliding_window": 7}, {"sliding_window": 9},
                      {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, rope(100),
                      yarn(100, 3.0, 600, truncate=False), yarn(100, 4.0, 600, truncate=True))),
    Case("glm4moe", "glm4moe",
         gated(100, 32, 4, 2, 40, layers=3, eps=0.02, head_dim=12, attention_bias=True, use_qk_norm=True, first_k_dense_replace=1,
               n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=20, n_group=2, topk_group=1,
               routed_scaling_factor=1.7, norm_topk_prob=True, num_mtp_layers=1)
         | rope(1e4, partial_rotary_factor=0.5), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False},
                      {"topk_group": 2}, rope(1e4, partial_rotary_factor=1.0))),
    Case("minimax-m2", "minimax-m2",
         gated(100, 32, 4, 2, 20, eps=0.02, head_dim=12, num_local_experts=8, num_experts_per_tok=3)
         | rope(1e4, partial_rotary_factor=0.5), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, rope(1e4, partial_rotary_factor=1.0))),
    Case("hunyuan-dense", "hunyuan-dense",
         gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, pad_token_id=0) | rope(1e4, "dynamic", alpha=20.0, factor=1.0), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, rope(1e4), rope(1e4, "dynamic", alpha=10.0, factor=1.0))),
    Case("qwen35", "qwen35", delta_net(100, 32, 4, 2, 40), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, rope(1e4, partial_rotary_factor=0.25))),
    Case("qwen35moe", "qwen35moe", delta_net(100, 32, 4, 2, 40, **next_experts(8, 3)), tokens=40,
         must_matter=({"num_experts_per_tok": 2}, rope(1e4, partial_rotary_factor=0.25))),
    Case("qwen3next", "qwen3next", delta_net(100, 32, 4, 2, 40, norm_topk_prob=True, **next_experts(8, 3)), tokens=40,
         must_matter=({"num_experts_per_tok": 2}, {"norm_topk_prob": False}, rope(1e4, partial_rotary_factor=0.25))),
    Case("lfm2", "lfm2", lfm2(100, 32, 4, 2, 40), tokens=40, must_matter=({"norm_eps": 1e-5}, rope(100))),
    Case("lfm2moe", "lfm2moe",
         lfm2(100, 32, 4, 2, 40, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, num_dense_layers=1,
              norm_topk_prob=True, use_expert_bias=True), tokens=40,
         must_matter=({"num_experts_per_tok": 2}, {"norm_topk_prob": False}, rope(100))),
    Case("granitehybrid", "granitehybrid", granitehybrid(104, 32, 4, 2, 40, num_local_experts=0), tokens=40,
         must_matter=({"residual_multiplier": 1.0}, {"attention_multiplier": 0.5}, {"rms_norm_eps": 1e-5}, {"position_embedding_type": "rope"})),
    Case("granitehybrid-moe", "granitehybrid",
         granitehybrid(104, 32, 4, 2, 24, num_local_experts=6, num_experts_per_tok=2, position_embedding_type="rope"), tokens=40,
         must_matter=({"num_experts_per_tok": 3}, {"position_embedding_type": None})),
    Case("nemotron_h", "nemotron_h", nemotron_h(100, 32, 4, 2, 40), tokens=40, must_matter=({"layer_norm_epsilon": 1e-5},)),
    # Lite: queries in one product; YaRN with a multiplier.
    Case("deepseek-v2-lite", "deepseek-v2",
         latent(100, 32, 4, 40, query_rank=None) | yarn(1e4, 4.0, 16, mscale=0.7, mscale_all_dim=0.7), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}, rope(1e4),
                      yarn(1e4, 4.0, 16, mscale=0.7, mscale_all_dim=0.5), yarn(1e4, 4.0, 16, mscale=0.6, mscale_all_dim=0.7))),
    Case("deepseek-v2", "deepseek-v2",
         latent(100, 32, 4, 40, experts=12, topk_method="group_limited_greedy", n_group=4, topk_group=2), tokens=40,
         must_matter=({"topk_group": 1}, {"topk_group": 3}, {"num_experts_per_tok": 2})),
    Case("deepseek-v3", "deepseek-v3",
         latent(100, 32, 5, 40, turned=8, value=10, norm_topk_prob=True, n_group=2, topk_group=1, num_mtp_layers=0)
         | yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0), tokens=40,
         must_matter=({"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False}, {"topk_group": 2}, rope(1e4),
                      yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=0.9))),
    Case("glm4moe-lite", "glm4moe-lite",
         {key: value for key, value in latent(100, 32, 3, 40, norm_topk_prob=True).items() if key != "first_k_dense_replace"}, tokens=40,
         must_matter=({"num_experts_per_tok": 2}, {"norm_topk_prob": False})),
    # As E2B: the last three layers share keys and values, with wider FFNs; each layer has an embedding of its own.
    gemma4_case("gemma4-e", 100, 32, 4, 2, 24, "wfwwwf", 8, 12, window=8, eps=0.05, per_layer=6, num_kv_shared_layers=3,
                use_double_wide_mlp=True, theta=100.0, windowed_theta=500.0, rotated=0.5, softcap=2.0,
                must_matter=({"eps": 1e-6}, {"theta": 200.0}, {"windowed_theta": 200.0}, {"rotated": 1.0}, {"softcap": None},
                             {"softcap": 2.1}, {"hidden_activation": "gelu"}, {"window": 7}, {"window": 9})),
    # As 31B: where everything is seen, fewer KV heads, whose values are the keys.
    gemma4_case("gemma4-v-is-k", 100, 32, 4, 2, 40, "wwf", 12, 16, window=8, eps=0.02, theta=100.0, attention_k_eq_v=True,
                num_global_key_value_heads=1,
                must_matter=({"theta": 200.0}, {"rotated": 0.5}, {"window": 7}, {"window": 9})),
    # As 26B-A4B: experts beside the dense FFN.
    gemma4_case("gemma4-moe", 100, 32, 4, 2, 20, "wf", 12, 8, window=8, eps=0.05, attention_k_eq_v=True, num_global_key_value_heads=1,
                enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=16,
                must_matter=({"top_k_experts": 3}, {"eps": 1e-6}, {"hidden_activation": "gelu"})),
    # As Nano: groups of experts.
    Case("nemotron_h_moe", "nemotron_h_moe",
         nemotron_h(100, 32, 4, 2, 40, "ME*ME", **ungated_experts(8, 3, groups=2)), tokens=40,
         must_matter=({"layer_norm_epsilon": 1e-5}, {"num_experts_per_tok": 2}, {"topk_group": 2}, {"norm_topk_prob": False},
                      {"routed_scaling_factor": 1.0})),
    # As Super: experts in a narrower vector.
    Case("nemotron_h_moe-narrow", "nemotron_h_moe",
         nemotron_h(100, 32, 4, 2, 40, "M*EME", **ungated_experts(6, 2, narrow=20)), tokens=40,
         must_matter=({"num_experts_per_tok": 3}, {"norm_topk_prob": False})),
    Case("mistral4", "mistral4",
         latent(100, 32, 4, 40, norm_topk_prob=True) | growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0), 0.3), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False},
                      growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0), 0.35),
                      growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=0.9), 0.3),
                      growing(yarn(1e4, 3.0, 16, mscale=1.0, mscale_all_dim=1.0), 0.3))),
    Case("olmo3-magnitude", "olmo3",
         gated(100, 32, 4, 2, 40, layers=4, **mixed(4, 4, 8)) | olmo3_rope(1e4, yarn(1e4, 4.0, 16, attention_factor=1.4)), tokens=40,
         must_matter=(olmo3_rope(1e4, yarn(1e4, 4.0, 16)), olmo3_rope(1e4, yarn(1e4, 4.0, 16, attention_factor=1.0)))),
    Case("mistral4-magnitude", "mistral4",
         latent(100, 32, 4, 40, norm_topk_prob=True)
         | growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0, attention_factor=1.3), 0.1), tokens=40,
         must_matter=(growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0), 0.1),
                      growing(yarn(1e4, 4.0, 16, mscale=1.0, mscale_all_dim=1.0, attention_factor=1.3), 0.15))),
    Case("arcee", "arcee", gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12), must_matter=({"rms_norm_eps": 1e-5}, {"hidden_act": "relu"})),
    Case("exaone", "exaone", gated(100, 32, 2, 1, 40, eps=0.02) | llama3_rope(500000, 256), must_matter=({"rms_norm_eps": 1e-5}, rope(500000))),
    Case("nemotron", "nemotron",
         layer_normed(100, 32, 4, 2, 40, norm_eps=0.02, attention_bias=True, mlp_bias=True) | rope(1e4, partial_rotary_factor=0.5),
         must_matter=({"norm_eps": 1e-5}, rope(1e4, partial_rotary_factor=1.0))),
    # Attention and FFN in parallel, each behind its own norm; and one after the other.
    Case("gptneox", "gptneox", layer_normed(100, 32, 4, 4, 40, layer_norm_eps=0.02) | rope(1e4, partial_rotary_factor=0.25),
         must_matter=({"layer_norm_eps": 1e-5}, {"use_parallel_residual": False}, {"hidden_act": "gelu_new"},
                      rope(1e4, partial_rotary_factor=0.5))),
    Case("gptneox-sequential", "gptneox",
         layer_normed(100, 32, 4, 4, 40, use_parallel_residual=False) | rope(1e4, partial_rotary_factor=1.0), must_matter=({"use_parallel_residual": True},)),
    # The logits have a bias.
    Case("phi2", "phi2", layer_normed(100, 32, 4, 2, 40, layer_norm_eps=0.02) | rope(1e4, partial_rotary_factor=0.5),
         must_matter=({"layer_norm_eps": 1e-5}, {"hidden_act": "gelu"}, rope(1e4, partial_rotary_factor=0.25))),
    Case("starcoder", "starcoder", bigcode(100, 32, 4, 1, 40, layer_norm_epsilon=0.02), must_matter=({"layer_norm_epsilon": 1e-5},)),
    Case("olmoe", "olmoe", gated(100, 32, 4, 2, 40, eps=0.02, num_experts=6, num_experts_per_tok=2, norm_topk_prob=False, pad_token_id=0),
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 3}, {"norm_topk_prob": True})),
    Case("dots1", "dots1",
         gated(100, 32, 4, 2, 40, layers=3, eps=0.02, head_dim=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, n_group=2,
               topk_group=1, moe_intermediate_size=20, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               sliding_window=None),
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, {"norm_topk_prob": False}, {"routed_scaling_factor": 1.0},
                      {"topk_group": 2})),
    Case("exaone-moe", "exaone-moe",
         gated(100, 32, 4, 2, 40, layers=4, eps=0.02, head_dim=12, num_experts=8, num_experts_per_tok=3, num_shared_experts=1,
               moe_intermediate_size=20, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7, sliding_window_pattern=4,
               **mixed(4, 4, 8)), tokens=40,
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}, {"sliding_window": 7})),
    Case("ernie4_5-moe", "ernie4_5-moe",
         gated(100, 32, 4, 2, 40, layers=3, eps=0.02, moe_num_experts=6, moe_k=2, moe_num_shared_experts=2, moe_intermediate_size=20,
               moe_layer_start_index=1),
         must_matter=({"rms_norm_eps": 1e-5}, {"moe_k": 3})),
    Case("hunyuan-moe", "hunyuan-moe",
         gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, num_experts=6, moe_topk=2, pad_token_id=0) | rope(1e4, "dynamic", factor=1.0, alpha=100.0),
         must_matter=({"rms_norm_eps": 1e-5}, {"moe_topk": 3}, rope(1e4))),
    Case("glm", "glm", gated(100, 32, 4, 2, 40, eps=0.02, attention_bias=True, head_dim=8, pad_token_id=0) | rope(1e4, partial_rotary_factor=0.5),
         must_matter=({"rms_norm_eps": 1e-5}, rope(1e4, partial_rotary_factor=1.0))),
    Case("cwm", "cwm", gated(100, 32, 4, 2, 40, eps=0.02, head_dim=12, layer_types=["sliding_attention"] * 2, sliding_window=8) | llama3_rope(1000, 64),
         tokens=40, must_matter=({"rms_norm_eps": 1e-5}, {"sliding_window": 7})),
    Case("granitemoeshared", "granitemoeshared",
         gated(104, 32, 4, 2, 40, eps=0.02, attention_multiplier=0.3, embedding_multiplier=3.0, residual_multiplier=0.4, logits_scaling=0.6,
               num_local_experts=6, num_experts_per_tok=2, shared_intermediate_size=20, pad_token_id=0),
         must_matter=({"rms_norm_eps": 1e-5}, {"num_experts_per_tok": 3})),
]
