"""Tiny random models that packages quantise and save, for check_quantised_folders.py."""
import dataclasses
import importlib
import json
import shutil
import sys
import types
from typing import Callable

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def small_model(arch="llama", seed=1, dtype=torch.bfloat16, **more):
    kind = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM), "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
            "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM)}[arch]
    sizes = dict(vocab_size=96, hidden_size=256, intermediate_size=384, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
                 max_position_embeddings=256, tie_word_embeddings=False, head_dim=32, use_cache=False)
    torch.manual_seed(seed)
    model = kind[1](kind[0](**(sizes | more))).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn_like(weight) * 0.2 + 1 if weight.ndim == 1 else torch.randn_like(weight) * weight.shape[-1] ** -0.5)
    return model.to(dtype)


def linear_layers(model, skip=()):
    """Names and modules of the layers that formats quantise."""
    return [(name, module) for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear) and name.endswith(LINEAR) and not any(part in name for part in skip)]


def save(model, folder, tensors, how):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = model.config.to_dict() | {"quantization_config": how, "torch_dtype": str(model.dtype).removeprefix("torch.")}
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"})


def save_layers(model, folder, layers, how):
    """Replaces the weights of the layers by their tensors: {module's name: {tensor's name: tensor}}."""
    tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items() if name.removesuffix(".weight") not in layers}
    for name, parts in layers.items():
        tensors |= {f"{name}.{part}": tensor.detach().clone() for part, tensor in parts.items()}
    save(model, folder, tensors, how)


@dataclasses.dataclass
class Case:
    name: str
    write: Callable  # (folder, sources) -> (model, {name: decoded weight}); raises ImportError if the package is not there


CASES = []


def case(name, function, *arguments, **options):
    CASES.append(Case(name, lambda folder, sources: function(folder, sources, *arguments, **options)))


def package_in(sources, name, inner):
    """Makes the package `name` of unpacked sources importable, without the code of its __init__ files, which need a GPU's packages."""
    found = sorted(sources.glob(inner)) if sources else []
    if not found:
        raise ImportError(f"no sources of {name} (--sources)")
    for path in [found[-1], *(p for p in found[-1].rglob("*") if p.is_dir())]:
        full = ".".join([name, *path.relative_to(found[-1]).parts])
        if full not in sys.modules:
            module = types.ModuleType(full)
            module.__path__ = [str(path)]
            sys.modules[full] = module


# compressed-tensors: its own lifecycle, as llm-compressor drives it.
def compressed(folder, _, groups, arch="llama", ignore=("lm_head",), reorder=False, kv=None, dtype=torch.bfloat16, force=None):
    try:
        from compressed_tensors.compressors import ModelCompressor
        from compressed_tensors.quantization import QuantizationConfig, QuantizationStatus, apply_quantization_config
        from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
    except ImportError as problem:
        raise ImportError(str(problem)) from None
    model = small_model(arch, dtype=dtype)
    original = small_model(arch, dtype=dtype)
    apply_quantization_config(model, QuantizationConfig(config_groups=groups, ignore=list(ignore), kv_cache_scheme=kv, quantization_status=QuantizationStatus.INITIALIZED))
    for name, module in model.named_modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is None or not hasattr(module, "weight_scale"):
            continue
        args, w = scheme.weights, module.weight.detach()
        size = args.group_size or 0
        if args.strategy == "tensor":
            low, high = w.min().reshape(1), w.max().reshape(1)
        elif args.strategy == "channel":
            low, high = w.amin(1, keepdim=True), w.amax(1, keepdim=True)
        elif args.strategy == "block":
            rows, columns = args.block_structure
            parts = w.reshape(w.shape[0] // rows, rows, w.shape[1] // columns, columns)
            low, high = parts.amin((1, 3)), parts.amax((1, 3))
        else:
            parts = w.reshape(w.shape[0], -1, size)
            low, high = parts.amin(2), parts.amax(2)
        whole = None
        if hasattr(module, "weight_global_scale"):
            whole = generate_gparam(w.min(), w.max())
            module.weight_global_scale.data.copy_(whole)
        scale, zero = calculate_qparams(low, high, args, global_scale=whole)
        module.weight_scale.data.copy_(scale.reshape(module.weight_scale.shape))
        if getattr(module, "weight_zero_point", None) is not None:
            module.weight_zero_point.data.copy_(zero.reshape(module.weight_zero_point.shape))
        for extra in ("input_scale", "input_global_scale", "k_scale", "v_scale"):
            if isinstance(getattr(module, extra, None), torch.Tensor):
                getattr(module, extra).data.fill_(0.5)
    compressor = ModelCompressor.from_pretrained_model(model, quantization_format=force)
    compressor.compress_model(model)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    compressor.update_config(folder)
    compressor.decompress_model(model)
    decoded = {name: weight.detach() for name, weight in model.state_dict().items() if name.endswith("_proj.weight") or name in ("lm_head.weight", "model.embed_tokens.weight")}
    return original, decoded


def weights(bits, **more):
    return dict(num_bits=bits, type=more.pop("type", "int"), symmetric=more.pop("symmetric", True), **more)


def one_group(**parts):
    return {"group_0": {"targets": ["Linear"], **parts}}


for bits in (4, 8):
    for symmetric in (True, False):
        for strategy in (dict(strategy="group", group_size=128), dict(strategy="channel")):
            mark = f"w{bits}a16-{'symmetric' if symmetric else 'zeros'}-{strategy['strategy']}"
            case("compressed-" + mark, compressed, one_group(weights=weights(bits, symmetric=symmetric, **strategy)))
case("compressed-w4a16-group-32-f16", compressed, one_group(weights=weights(4, strategy="group", group_size=32)), dtype=torch.float16, arch="qwen2")
case("compressed-w4a16-act-order", compressed, one_group(weights=weights(4, strategy="group", group_size=64, actorder="weight")))
DYNAMIC_8 = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True)
case("compressed-w8a8", compressed, one_group(weights=weights(8, strategy="channel"), input_activations=DYNAMIC_8))
case("compressed-w8a8-static", compressed, one_group(weights=weights(8, strategy="channel"), input_activations=dict(num_bits=8, type="int", strategy="tensor")))
case("compressed-w4a8", compressed, one_group(weights=weights(4, strategy="group", group_size=128), input_activations=DYNAMIC_8))
case("compressed-w4a8-int-quantized", compressed, one_group(weights=weights(4, strategy="channel"), input_activations=DYNAMIC_8), force="int-quantized")
FP8 = dict(num_bits=8, type="float", symmetric=True)
case("compressed-fp8-tensor-static", compressed, one_group(weights=FP8 | dict(strategy="tensor"), input_activations=FP8 | dict(strategy="tensor")))
case("compressed-fp8-dynamic", compressed, one_group(weights=FP8 | dict(strategy="channel"), input_activations=FP8 | dict(strategy="token", dynamic=True)))
case("compressed-fp8-block", compressed, one_group(weights=FP8 | dict(strategy="block", block_structure=[128, 128]),
                                                   input_activations=FP8 | dict(strategy="group", group_size=128, dynamic=True)), arch="qwen3")
case("compressed-fp8-kv", compressed, one_group(weights=FP8 | dict(strategy="channel")), kv=FP8 | dict(strategy="tensor", dynamic=False))
FP4 = dict(num_bits=4, type="float", symmetric=True)
case("compressed-nvfp4", compressed, one_group(weights=FP4 | dict(strategy="tensor_group", group_size=16, scale_dtype="torch.float8_e4m3fn"),
                                               input_activations=FP4 | dict(strategy="tensor_group", group_size=16, dynamic="local", scale_dtype="torch.float8_e4m3fn")))
case("compressed-nvfp4a16", compressed, one_group(weights=FP4 | dict(strategy="tensor_group", group_size=16, scale_dtype="torch.float8_e4m3fn")))
case("compressed-mxfp4", compressed, one_group(weights=FP4 | dict(strategy="group", group_size=32, scale_dtype="torch.uint8")))
case("compressed-mxfp8", compressed, one_group(weights=FP8 | dict(strategy="group", group_size=32, scale_dtype="torch.uint8")))
case("compressed-ignored", compressed, one_group(weights=weights(4, strategy="group", group_size=128)), ignore=["lm_head", "re:.*layers\\.0\\.self_attn.*", "model.layers.1.mlp.down_proj"])
case("compressed-lm_head", compressed, one_group(weights=weights(8, strategy="group", group_size=64)), ignore=[])
case("compressed-several-groups", compressed, {
    "group_0": {"targets": ["re:.*self_attn.*"], "weights": weights(4, strategy="group", group_size=64, symmetric=False)},
    "group_1": {"targets": ["re:.*mlp.(gate|up)_proj"], "weights": weights(8, strategy="channel")},
    "group_2": {"targets": ["re:.*down_proj"], "weights": FP8 | dict(strategy="channel"), "input_activations": FP8 | dict(strategy="token", dynamic=True)}})


# bitsandbytes: transformers' own loading and saving.
def bitsandbytes(folder, _, kind, nested=False, dtype=torch.bfloat16, arch="llama", skip=()):
    import bitsandbytes as bnb
    model = small_model(arch, dtype=dtype)
    layers, decoded = {}, {}
    for name, module in linear_layers(model, skip):
        if kind == "int8":
            packed = bnb.nn.Linear8bitLt(module.in_features, module.out_features, bias=False, has_fp16_weights=False)
            packed.weight = bnb.nn.Int8Params(module.weight.detach().to(torch.float16).clone(), requires_grad=False, has_fp16_weights=False)
            packed.to("cpu")
            if packed.weight.SCB is None:
                codes, scb, _ = bnb.functional.int8_vectorwise_quant(module.weight.detach().to(torch.float16))
                packed.weight = bnb.nn.Int8Params(codes, requires_grad=False, has_fp16_weights=False, CB=codes, SCB=scb)
            parts = packed.state_dict()
            decoded[name + ".weight"] = bnb.functional.int8_vectorwise_dequant(parts["weight"], parts["SCB"])
        else:
            packed = bnb.nn.Linear4bit(module.in_features, module.out_features, bias=False, compute_dtype=dtype, compress_statistics=nested, quant_type=kind)
            packed.weight = bnb.nn.Params4bit(module.weight.detach().clone(), requires_grad=False, compress_statistics=nested, quant_type=kind)
            packed = packed.to("cpu")
            if packed.weight.quant_state is None:
                packed.weight = packed.weight._quantize(torch.device("cpu"))
            parts = packed.state_dict()
            decoded[name + ".weight"] = bnb.functional.dequantize_4bit(packed.weight.data, packed.weight.quant_state)
        layers[name] = parts
    how = transformers.BitsAndBytesConfig(load_in_8bit=kind == "int8", load_in_4bit=kind != "int8", bnb_4bit_quant_type=kind if kind != "int8" else "fp4",
                                          bnb_4bit_use_double_quant=nested, bnb_4bit_compute_dtype=dtype, llm_int8_skip_modules=list(skip) or None)
    save_layers(model, folder, layers, how.to_dict())
    return model, decoded


case("bitsandbytes-nf4", bitsandbytes, "nf4")
case("bitsandbytes-nf4-nested", bitsandbytes, "nf4", nested=True, arch="qwen2")
case("bitsandbytes-nf4-nested-f16", bitsandbytes, "nf4", nested=True, dtype=torch.float16)
case("bitsandbytes-fp4", bitsandbytes, "fp4", skip=["o_proj"])
case("bitsandbytes-fp4-f32", bitsandbytes, "fp4", nested=True, dtype=torch.float32)
case("bitsandbytes-int8", bitsandbytes, "int8")


def group_parameters(w, bits, group, symmetric, order=None):
    """Scales and zero points of F32 [outputs, groups], as GPTQ's and AWQ's quantisers find them, and the group of each input."""
    outputs, inputs = w.shape
    idx = torch.arange(inputs) // group if order is None else order
    top = 2 ** bits - 1
    scales, zeros = torch.empty(outputs, int(idx.max()) + 1), torch.empty(outputs, int(idx.max()) + 1)
    for g in range(scales.shape[1]):
        part = w[:, idx == g].float()
        low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
        if symmetric:
            high = torch.maximum(low.abs(), high)
            scales[:, g], zeros[:, g] = 2 * high / top, (top + 1) / 2
        else:
            scales[:, g] = (high - low) / top
            zeros[:, g] = torch.round(-low / scales[:, g])
    return scales.half().float(), zeros, idx


# AutoGPTQ's QuantLinear ("cuda_old", which packs on the CPU), and the unpacking of its forward().
def auto_gptq(folder, sources, bits, group, symmetric, act_order=False, v2=False, dynamic=None, lm_head=False, arch="llama"):
    package_in(sources, "auto_gptq", "auto_gptq*/auto_gptq")
    packer = importlib.import_module("auto_gptq.nn_modules.qlinear.qlinear_cuda" if act_order else "auto_gptq.nn_modules.qlinear.qlinear_cuda_old").QuantLinear
    model = small_model(arch, dtype=torch.float16)
    generator = torch.Generator().manual_seed(5)
    layers, decoded = {}, {}
    targets = linear_layers(model) + ([("lm_head", model.lm_head)] if lm_head else [])
    for name, module in targets:
        own = dict(bits=bits, group_size=group, sym=symmetric)
        for pattern, options in (dynamic or {}).items():
            if pattern.removeprefix("+:").removeprefix("-:").split("|")[0] in name:
                own = None if pattern.startswith("-:") else own | options
        if own is None:
            continue
        size = own["group_size"] if own["group_size"] > 0 else module.in_features
        order = torch.arange(module.in_features) // size
        if act_order:
            order = order[torch.randperm(module.in_features, generator=generator)]
        scales, zeros, idx = group_parameters(module.weight.detach(), own["bits"], size, own["sym"], order)
        zeros = zeros.clamp(min=1)  # a zero point of 0 is packed wrongly by AutoGPTQ
        packed = packer(own["bits"], size, module.in_features, module.out_features, bias=False)
        packed.pack(as_linear(module.weight, scales, zeros, idx, own["bits"]), scales.clone(), zeros.clone(), idx.int())
        parts = dict(packed.state_dict())
        parts["scales"], parts["g_idx"] = parts["scales"].half(), idx.int()
        q = gptq_integers(parts["qweight"], own["bits"])
        decoded[name + ".weight"] = ((q - zeros.T[idx.long()]) * parts["scales"].float()[idx.long()]).T.to(torch.float16)
        if v2:
            parts["qzeros"] = repack_zeros(zeros, own["bits"])
        layers[name] = parts
    how = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": act_order, "checkpoint_format": "gptq_v2" if v2 else "gptq",
           "lm_head": lm_head, "true_sequential": True} | ({"dynamic": dynamic} if dynamic else {})
    save_layers(model, folder, layers, how)
    return model, decoded


def as_linear(weight, scales, zeros, idx, bits):
    """A layer with the weights rounded to the grid, as packers want them."""
    scale, zero = scales[:, idx.long()], zeros[:, idx.long()]
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = ((torch.round(weight.detach().float() / scale) + zero).clamp(0, 2 ** bits - 1) - zero) * scale
    return layer


def gptq_integers(qweight, bits):
    """[inputs, outputs], by AutoGPTQ's own way to unpack in 2, 4 and 8 bits; 3 bits as a stream of bits."""
    words = qweight.numpy().view(np.uint32).T  # [outputs, words]
    stream = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    values = stream.reshape(words.shape[0], -1, bits) @ (1 << np.arange(bits))
    return torch.from_numpy(values.T.astype(np.float32))


def repack_zeros(zeros, bits):
    bit = (zeros.T.numpy().astype(np.uint8)[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    packed = np.packbits(bit.reshape(bit.shape[0], -1), axis=1, bitorder="little")
    return torch.from_numpy(np.ascontiguousarray(packed).view(np.int32).copy())


for bits in (2, 3, 4, 8):
    case(f"gptq-{bits}-symmetric", auto_gptq, bits, 128, True)
    case(f"gptq-{bits}-zeros", auto_gptq, bits, 128, False)
case("gptq-4-channel", auto_gptq, 4, -1, True)
case("gptq-4-group-32", auto_gptq, 4, 32, False, arch="qwen2")
case("gptq-4-act-order", auto_gptq, 4, 128, True, act_order=True)
case("gptq-4-act-order-zeros", auto_gptq, 4, 64, False, act_order=True)
case("gptq-4-v2", auto_gptq, 4, 128, False, v2=True)
case("gptq-3-v2", auto_gptq, 3, 128, False, v2=True)
case("gptq-4-lm_head", auto_gptq, 4, 128, True, lm_head=True)
case("gptq-dynamic", auto_gptq, 4, 128, True, dynamic={"+:mlp.down_proj": {"bits": 8, "group_size": 64}, "-:layers.0.self_attn": {}, "layers.1.self_attn": {"sym": False}})


# GPTQModel's TorchLinear packs in its format 2, and converts to format 1; its dequantize_weight() decodes. Some zero points are 0.
def gptqmodel(folder, sources, bits, group, symmetric, v2):
    found = sorted(sources.glob("gptqmodel*/gptqmodel")) if sources else []
    if not found:
        raise ImportError("no sources of gptqmodel (--sources)")
    sys.path.insert(0, str(found[-1].parent))
    torch_linear = importlib.import_module("gptqmodel.nn_modules.qlinear.torch").TorchLinear
    convert = importlib.import_module("gptqmodel.utils.model").convert_gptq_v2_to_v1_format_module
    model = small_model(dtype=torch.float16)
    layers, decoded = {}, {}
    for name, module in linear_layers(model):
        scales, zeros, idx = group_parameters(module.weight.detach(), bits, group, symmetric)
        if not symmetric:
            zeros[::3, 0] = 0
        packed = torch_linear(bits=bits, group_size=group, sym=symmetric, desc_act=False, in_features=module.in_features, out_features=module.out_features,
                              bias=False, register_buffers=True)
        packed.pack_original(as_linear(module.weight, scales, zeros, idx, bits), scales.clone(), zeros.to(torch.int32), idx.int())
        packed.post_init()
        decoded[name + ".weight"] = packed.dequantize_weight().T.contiguous().to(torch.float16)
        if not v2:
            convert(packed, types.SimpleNamespace(bits=bits, pack_dtype=torch.int32))
        layers[name] = {part: tensor for part, tensor in packed.state_dict().items() if part in ("qweight", "qzeros", "scales", "g_idx")}
    how = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": False, "checkpoint_format": "gptq_v2" if v2 else "gptq",
           "pack_dtype": "int32", "meta": {"quantizer": ["gptqmodel:7.7.0"]}}
    save_layers(model, folder, layers, how)
    return model, decoded


for bits in (2, 3, 4, 8):
    for symmetric in (True, False):
        for v2 in (False, True):
            case(f"gptqmodel-{bits}-{'symmetric' if symmetric else 'zeros'}-{'v2' if v2 else 'v1'}", gptqmodel, bits, 64, symmetric, v2)


# AutoAWQ's linear layers pack on the CPU; its own dequantize_gemm decodes.
def auto_awq(folder, sources, layout, group, skip=()):
    package_in(sources, "awq", "autoawq*/awq")
    stub = types.ModuleType("awq.modules.triton.gemm")
    stub.awq_gemm_triton = stub.awq_dequantize_triton = None
    sys.modules["awq.modules.triton.gemm"] = stub
    module_utils = types.ModuleType("awq.utils.module")
    module_utils.try_import = lambda name: (None, "")
    sys.modules["awq.utils.module"] = module_utils
    utility = types.ModuleType("awq.utils.utils")
    utility.get_best_device = lambda: "cpu"
    sys.modules["awq.utils.utils"] = utility
    packer = getattr(importlib.import_module(f"awq.modules.linear.{layout}"), f"WQLinear_{layout.upper()}")
    decode = importlib.import_module("awq.utils.packing_utils").dequantize_gemm
    gemm = importlib.import_module("awq.modules.linear.gemm").WQLinear_GEMM
    model = small_model(dtype=torch.float16)
    layers, decoded = {}, {}
    for name, module in linear_layers(model, skip):
        size = group if group > 0 else module.in_features
        scales, zeros, idx = group_parameters(module.weight.detach(), 4, size, False)
        arguments = (scales.T.contiguous(), zeros.T.contiguous()) if layout == "gemm" else (scales, zeros)
        linear = as_linear(module.weight, scales, zeros, idx, 4)
        packed = packer.from_linear(linear, 4, size, False, *arguments)
        reference = gemm.from_linear(linear, 4, size, False, scales.T.contiguous(), zeros.T.contiguous())
        decoded[name + ".weight"] = decode(reference.qweight, reference.qzeros, reference.scales, 4, size).T.contiguous()
        layers[name] = dict(packed.state_dict())
    how = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": layout, "modules_to_not_convert": list(skip) or None}
    save_layers(model, folder, layers, how)
    return model, decoded


case("awq-gemm", auto_awq, "gemm", 128)
case("awq-gemm-32-skipped", auto_awq, "gemm", 32, skip=["o_proj", "layers.0.mlp"])
case("awq-gemm-channel", auto_awq, "gemm", -1)
case("awq-gemv", auto_awq, "gemv", 128)
case("awq-gemv-64", auto_awq, "gemv", 64)
case("awq-gemv-32", auto_awq, "gemv", 32)


# FP8 by torch's own types, as Qwen, DeepSeek and ModelOpt publish it.
def torch_fp8(folder, _, how, scale_of, scale_name="weight_scale_inv", kind=torch.float8_e4m3fn, extra=None, dtype=torch.bfloat16, skip=()):
    model = small_model("qwen3", dtype=dtype)
    layers, decoded = {}, {}
    top = torch.finfo(kind).max
    for name, module in linear_layers(model, skip):
        w = module.weight.detach().float()
        scale = scale_of(w, top)
        full = scale.float()
        if full.ndim == 2 and full.shape[1] > 1 or full.ndim == 2 and full.shape[0] not in (1, w.shape[0]):
            full = full.repeat_interleave(128, 0)[:w.shape[0]].repeat_interleave(128, 1)[:, :w.shape[1]]
        q = (w / full).clamp(-top, top).to(kind)
        layers[name] = {"weight": q, scale_name: scale} | (extra or {})
        decoded[name + ".weight"] = (q.float() * full).to(torch.bfloat16)
    save_layers(model, folder, layers, how)
    return model, decoded


def block_scale(w, top):
    rows, columns = (-(-size // 128) for size in w.shape)
    padded = torch.zeros(rows * 128, columns * 128)
    padded[:w.shape[0], :w.shape[1]] = w
    return padded.reshape(rows, 128, columns, 128).abs().amax((1, 3)) / top


def power_scale(w, top):
    return torch.exp2(torch.ceil(torch.log2(block_scale(w, top)))).to(torch.float8_e8m0fnu)


def whole_scale(w, top):
    return (w.abs().amax() / top).float()


BLOCKS = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
ONE = torch.tensor(0.5)
case("fp8-block", torch_fp8, BLOCKS, block_scale)
case("fp8-block-bf16-scales", torch_fp8, BLOCKS, lambda w, top: block_scale(w, top).to(torch.bfloat16))
case("fp8-block-e8m0", torch_fp8, BLOCKS | {"scale_fmt": "ue8m0"}, power_scale, skip=["o_proj"])
case("fp8-static-mistral", torch_fp8, {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None, "modules_to_not_convert": ["lm_head"]},
     lambda w, top: whole_scale(w, top).to(torch.bfloat16), extra={"activation_scale": ONE.to(torch.bfloat16)})
case("fp8-e5m2", torch_fp8, {"quant_method": "fp8"}, whole_scale, kind=torch.float8_e5m2)
case("modelopt-fp8", torch_fp8, {"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head", "*o_proj*"], "kv_cache_quant_algo": None}, whole_scale,
     scale_name="weight_scale", extra={"input_scale": ONE}, skip=["o_proj"])
case("modelopt-mixed", torch_fp8, {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "exclude_modules": ["lm_head"],
                                   "quantized_layers": {"model.layers.0.mlp.up_proj": {"quant_algo": "FP8"}}}, whole_scale,
     scale_name="weight_scale", extra={"input_scale": ONE}, skip=["self_attn"])
