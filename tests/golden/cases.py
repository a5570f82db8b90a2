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


def gpt2(vocab, d, heads, layers=2, **more):
    return {"vocab_size": vocab, "n_embd": d, "n_head": heads, "n_layer": layers,
            "n_positions": 64, "layer_norm_epsilon": 1e-5, "bos_token_id": vocab - 1,
            "eos_token_id": vocab - 1, **more}


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
         gated(104, 32, 4, 2, 40, attention_multiplier=0.3, embedding_multiplier=3.0, residual_multiplier=0.4,
               logits_scaling=0.6),
         must_matter=({"attention_multiplier": 0.35}, {"embedding_multiplier": 1.0}, {"residual_multiplier": 1.0},
                      {"logits_scaling": 1.0})),
]
