"""Configurations that folders have and that GGUF converters lose or do not expect: odd windows, ropes and routings.

ODD has, for an architecture, a function of a random generator and a configuration that returns the keys to change.
"""
import dataclasses

from cases import rope, yarn


def pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def kinds(rng, config):
    """Windowed layers and others, in any order."""
    return [pick(rng, "sliding_attention", "full_attention") for _ in range(config["num_hidden_layers"])]


def window(rng):
    return int(rng.integers(1, 60))


def mixed(rng, config):
    return {"layer_types": kinds(rng, config), "sliding_window": window(rng)}


def windowed_from(rng, config):
    """Qwen 2: a window in the last layers, in those of a list, or in none."""
    how = pick(rng, "off", "count", "list")
    if how == "list":
        return {"use_sliding_window": True, **mixed(rng, config)}
    return {"use_sliding_window": how == "count", "sliding_window": window(rng),
            "max_window_layers": int(rng.integers(0, config["num_hidden_layers"] + 2))}


def smollm3(rng, config):
    ropes = [int(rng.integers(2)) for _ in range(config["num_hidden_layers"])]
    how = pick(rng, {}, {"use_sliding_window": True, "sliding_window": window(rng)}, {"use_sliding_window": True, **mixed(rng, config)})
    return {"no_rope_layers": pick(rng, ropes, None), "no_rope_layer_interval": int(rng.integers(1, 5)), **how}


def scaled(rng):
    """A rope of any kind that all models of transformers know."""
    kind = pick(rng, "default", "linear", "yarn", "llama3")
    theta = pick(rng, 100.0, 1e4, 1e6)
    if kind == "linear":
        return rope(theta, kind, factor=float(rng.uniform(1.5, 8)))
    if kind == "yarn":
        return yarn(theta, float(rng.uniform(1.5, 8)), int(rng.integers(16, 300)))
    if kind == "llama3":
        return rope(theta, kind, factor=float(rng.uniform(2, 32)), low_freq_factor=1.0, high_freq_factor=float(rng.uniform(1.5, 8)),
                    original_max_position_embeddings=int(rng.integers(16, 300)))
    return rope(theta)


def either(name):
    return lambda rng, config: {name: bool(rng.integers(2))}


def both(*makers):
    def make(rng, config):
        changed = {}
        for maker in makers:
            changed |= maker(rng, config)
        return changed
    return make


def any_rope(rng, config):
    return scaled(rng)


def any_window(rng, config):
    return {"sliding_window": pick(rng, None, window(rng))}


def any_theta(rng, config):
    old = config["rope_parameters"]
    return {"rope_parameters": old | {"rope_theta": pick(rng, 100.0, 1e6)}}


def odd_layers(other):
    return lambda rng, config: {"layer_types": [pick(rng, other, "full_attention") for _ in range(config["num_hidden_layers"])]}


ODD = {
    "llama": any_rope, "mistral": both(any_rope, any_window), "granite": any_rope, "seed_oss": any_rope, "ernie4_5": any_rope, "olmo2": any_rope,
    "qwen2": both(any_rope, windowed_from), "qwen3": both(any_rope, windowed_from),
    "qwen2moe": both(windowed_from, either("norm_topk_prob")),
    "qwen3moe": lambda rng, config: any_rope(rng, config) | {"norm_topk_prob": bool(rng.integers(2)), "sliding_window": window(rng),
                                                             "use_sliding_window": bool(rng.integers(2))},
    "smollm3": both(any_rope, smollm3), "starcoder2": both(any_rope, any_window), "mixtral": any_window, "phi3": any_window,
    "gemma2": mixed, "gemma3": mixed, "cohere2": mixed, "olmo3": mixed, "exaone4": mixed, "gpt-oss": mixed, "gemma4": lambda rng, config: {},
    "stablelm": any_theta, "glm4": any_theta,
    "qwen3next": both(odd_layers("linear_attention"), either("norm_topk_prob")), "qwen35": odd_layers("linear_attention"),
    "qwen35moe": odd_layers("linear_attention"), "lfm2": odd_layers("conv"), "lfm2moe": both(odd_layers("conv"), either("norm_topk_prob")),
    "granitehybrid": odd_layers("linear_attention"),
}


def defaults(config_class):
    """The values that keys of config.json have if they are absent."""
    return {field.name: field.default for field in dataclasses.fields(config_class) if field.default is not dataclasses.MISSING}
