"""The adapters of data/adapters/: what each one is there to show, and the goldens that are made with them."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Adapter:
    """A folder of PEFT's for a model of data/folders/."""
    base: str
    config: dict                 # keys of peft.LoraConfig; r and lora_alpha have other defaults here
    dtype: str = "float32"       # of the matrices in the file
    layout: str = "peft"         # "each": with a pair of matrices for each expert, as transformers 4 had the modules
    refused: bool = False        # it holds more than an adapter: it has no golden, and a reader must refuse it


@dataclasses.dataclass(frozen=True)
class Golden:
    """Logits with adapters, each with its scale."""
    adapters: tuple[tuple[str, float], ...]
    tokens: tuple[int, ...] = ()   # if none: those of the base's folder
    first_row: int = -4            # logits of earlier tokens are not stored
    same_as_base: bool = False     # the adapters change nothing here


ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
FEED = ["gate_proj", "up_proj", "down_proj"]
DENSE = ATTENTION + FEED
EXPERTS = ["experts.gate_up_proj", "experts.down_proj"]
INVOCATION = [7, 11, 5]
PLAIN = [40, 3, 62, 17, 28, 9, 33, 51, 20, 71]

ADAPTERS = {
    # Names, scales and matrices, without anything else; the head is tied.
    "llama": Adapter("llama3-tied", {"target_modules": DENSE}),
    # Another rank, fewer modules, one layer of two: to be used beside the first.
    "llama-few": Adapter("llama3-tied", {"target_modules": ["q_proj", "down_proj"], "layers_to_transform": [1], "r": 7, "lora_alpha": 5}),
    # Ranks and alphas of their own: by a suffix, by a whole name, by an expression. The first key that fits counts.
    "llama-patterns": Adapter("llama-bias", {
        "target_modules": DENSE, "rank_pattern": {"q_proj": 2, "model.layers.1.mlp.down_proj": 6, r".*\.1\.self_attn\.v_proj": 5, "v_proj": 1},
        "alpha_pattern": {r"layers\.\d+\.mlp\.gate_proj": 11, "gate_proj": 1, "^model.layers.0.self_attn.o_proj": 2, "proj": 6}}),
    "llama-rslora": Adapter("llama-linear", {"target_modules": DENSE, "use_rslora": True, "r": 5, "rank_pattern": {"k_proj": 2}, "alpha_pattern": {"up_proj": 3}}),
    "llama-dora": Adapter("llama-bias", {"target_modules": DENSE, "use_dora": True}),
    "llama-f16": Adapter("llama-bias", {"target_modules": DENSE}, dtype="float16"),
    "llama-bf16": Adapter("llama-linear", {"target_modules": DENSE}, dtype="bfloat16"),
    # Table and head of their own.
    "llama-embed": Adapter("llama-linear", {"target_modules": ["embed_tokens", "lm_head", "v_proj"]}),
    # The head is tied to the table, whose adapter does not change the head.
    "llama-embed-tied": Adapter("llama3-tied", {"target_modules": ["embed_tokens", "up_proj"]}),
    "llama-both-tied": Adapter("llama3-tied", {"target_modules": ["embed_tokens", "lm_head"], "ensure_weight_tying": True}),
    "llama-embed-dora": Adapter("llama-linear", {"target_modules": ["embed_tokens", "lm_head", "k_proj"], "use_dora": True}),
    "llama-alora": Adapter("llama3-tied", {"target_modules": DENSE, "alora_invocation_tokens": INVOCATION}),
    # Fused matrices: rows of several of the library's tensors.
    "phi3": Adapter("phi3-long", {"target_modules": ["qkv_proj", "gate_up_proj", "o_proj", "down_proj"]}),
    "phi3-dora": Adapter("phi3-long", {"target_modules": ["qkv_proj", "gate_up_proj"], "use_dora": True}),
    "gpt2": Adapter("gpt2-output", {"target_modules": ["c_attn", "c_proj", "c_fc", "wte", "lm_head"], "fan_in_fan_out": True}),
    "gpt2-dora": Adapter("gpt2-output", {"target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True, "use_dora": True}),
    "falcon-7b": Adapter("falcon-7b", {"target_modules": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]}),
    "falcon-40b": Adapter("falcon-40b", {"target_modules": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]}),
    "gptneox": Adapter("gptneox", {"target_modules": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]}),
    "qwen2": Adapter("qwen2-yarn", {"target_modules": "all-linear", "exclude_modules": ["model.layers.0.self_attn.o_proj"]}),
    # The table's rows are multiplied by sqrt(d), the adapter's too. The head is tied.
    "gemma2": Adapter("gemma2", {"target_modules": ["q_proj", "v_proj", "down_proj", "lm_head"]}),
    "gemma3": Adapter("gemma3", {"target_modules": DENSE + ["embed_tokens"]}),
    "gemma3-embed-dora": Adapter("gemma3", {"target_modules": ["embed_tokens"], "use_dora": True}),
    # Experts, as transformers 5 has them: parameters of three dimensions.
    "mixtral": Adapter("mixtral", {"target_modules": ATTENTION, "target_parameters": EXPERTS}),
    "mixtral-down": Adapter("mixtral", {"target_modules": ["q_proj"], "target_parameters": ["experts.down_proj"]}),
    "qwen3moe": Adapter("qwen3moe", {"target_modules": ATTENTION, "target_parameters": EXPERTS + ["mlp.gate.weight"], "use_rslora": True,
                                     "rank_pattern": {r".*\.gate_up_proj": 5}}),
    "qwen3moe-each": Adapter("qwen3moe", {"target_modules": ["q_proj"] + FEED}, layout="each"),
    # [experts, inputs, outputs], and rows of gate and up in turn.
    "gpt-oss": Adapter("gpt-oss", {"target_modules": ATTENTION, "target_parameters": EXPERTS}),
    "deepseek-v3": Adapter("deepseek-v3", {
        "target_modules": ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"] + FEED, "target_parameters": EXPERTS}),
    "deepseek-v2-lite": Adapter("deepseek-v2-lite", {"target_modules": ["q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"] + FEED}),
    # Recurrent layers beside attention.
    "qwen35": Adapter("qwen35", {"target_modules": DENSE + ["in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj"]}),
    "qwen35-dora": Adapter("qwen35", {"target_modules": ["in_proj_qkv", "in_proj_z", "out_proj"], "use_dora": True}),
    "qwen3next": Adapter("qwen3next", {"target_modules": ATTENTION + FEED + ["in_proj_qkvz", "in_proj_ba", "out_proj"], "target_parameters": EXPERTS}),
    "granitehybrid": Adapter("granitehybrid", {"target_modules": ATTENTION + ["in_proj", "out_proj", "input_linear", "output_linear", "embed_tokens"]}),
    "nemotron_h": Adapter("nemotron_h", {"target_modules": ATTENTION + ["in_proj", "up_proj", "down_proj"]}),
    "lfm2": Adapter("lfm2", {"target_modules": ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]}),
    # To be refused.
    "saved-modules": Adapter("llama3-tied", {"target_modules": ["q_proj"], "modules_to_save": ["input_layernorm"]}, refused=True),
    "trained-biases": Adapter("llama-bias", {"target_modules": ["q_proj"], "bias": "lora_only"}, refused=True),
    "bias-of-b": Adapter("llama-bias", {"target_modules": ["q_proj"], "lora_bias": True}, refused=True),
    "trained-tokens": Adapter("llama3-tied", {"target_modules": ["q_proj"], "trainable_token_indices": [3, 5]}, refused=True),
}

GOLDENS = {name: Golden(((name, 1.0),)) for name, adapter in ADAPTERS.items() if not adapter.refused and name != "llama-alora"} | {
    "llama-half": Golden((("llama", 0.5),)),
    "llama-minus": Golden((("llama", -1.0),)),
    "llama-two": Golden((("llama", 0.7), ("llama-few", 1.3))),
    "llama-three": Golden((("llama", -0.4), ("llama-few", 1.0), ("llama-embed-tied", 0.6))),
    # The rows' lengths are those of the magnitudes, whatever the scale.
    "llama-dora-half": Golden((("llama-dora", 0.5),)),
    # PEFT scales what was added before DoRA too, so that the order matters; in this one each adapter changes the base alone.
    "llama-dora-beside": Golden((("llama-dora", 1.0), ("llama-patterns", 0.8))),
    "mixtral-half": Golden((("mixtral", 0.5),)),
    # From the beginning of the invocation on: all rows are stored.
    "llama-alora": Golden((("llama-alora", 1.0),), tuple(PLAIN + INVOCATION + PLAIN[:6]), 0),
    "llama-alora-last": Golden((("llama-alora", 0.5),), tuple(PLAIN[:4] + INVOCATION + PLAIN[:5] + INVOCATION + PLAIN[5:]), 0),
    "llama-alora-absent": Golden((("llama-alora", 1.0),), tuple(PLAIN + INVOCATION[:2] + PLAIN), 0, same_as_base=True),
    "llama-alora-beside": Golden((("llama", 0.7), ("llama-alora", 1.0)), tuple(PLAIN + INVOCATION + PLAIN[:6]), 0),
}
