#!/usr/bin/env python3
"""Writes data/*.gguf with gguf-py: files that our reader must read, made by an implementation that is not ours.

    pip install gguf numpy; python tests/files/make_goldens.py

Given a GGUF file (`make_goldens.py --read FILE`), reads it with gguf-py instead and prints its keys and tensors: the
other way round, for what our writer writes.
"""

import pathlib
import sys

import gguf
import numpy as np

DATA = pathlib.Path(__file__).parent / "data"


def every_type() -> None:
    w = gguf.GGUFWriter(DATA / "every_type.gguf", "test")
    w.add_uint8("u8", 200)
    w.add_int8("i8", -100)
    w.add_uint16("u16", 60000)
    w.add_int16("i16", -30000)
    w.add_uint32("u32", 4000000000)
    w.add_int32("i32", -2000000000)
    w.add_float32("f32", 1.5)
    w.add_bool("boolean", True)
    w.add_string("string", "zażółć gęślą jaźń")
    w.add_uint64("u64", 0xFEDCBA9876543210)
    w.add_int64("i64", -5000000000)
    w.add_float64("f64", -2.25)
    w.add_array("a.i32", [1, -2, 3])
    w.add_array("a.f32", [0.5, -8.0])
    w.add_array("a.boolean", [True, False])
    w.add_array("a.string", ["one", "two", "drei"])
    values = np.arange(-128, 128, dtype=np.float32).reshape(4, 64) / 16
    w.add_tensor("f32", values)
    w.add_tensor("f16", values.astype(np.float16))
    for kind in ("Q8_0", "Q4_0", "Q5_1"):
        kind_id = gguf.GGMLQuantizationType[kind]
        w.add_tensor(kind.lower(), gguf.quants.quantize(values, kind_id), raw_dtype=kind_id)
    finish(w)


def llama() -> None:
    """A whole tiny model's header, with an alignment of its own."""
    w = gguf.GGUFWriter(DATA / "llama.gguf", "llama")
    w.add_custom_alignment(64)
    w.add_name("tiny")
    w.add_context_length(16)
    w.add_embedding_length(8)
    w.add_block_count(1)
    w.add_feed_forward_length(12)
    w.add_head_count(2)
    w.add_head_count_kv([1])
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "</s>", "a"])
    w.add_token_scores([0.0, 0.0, 0.0, -1.0])
    w.add_token_types([2, 3, 3, 1])
    w.add_chat_template("{% for m in messages %}\n{{ m.content }}\n{% endfor %}")
    rng = np.random.default_rng(1)
    shapes = {"token_embd": (4, 8), "output_norm": (8,), "blk.0.attn_q": (8, 8), "blk.0.attn_k": (4, 8),
              "blk.0.attn_v": (4, 8), "blk.0.attn_output": (8, 8), "blk.0.ffn_up": (12, 8)}
    for name, shape in shapes.items():
        w.add_tensor(name + ".weight", rng.standard_normal(shape).astype(np.float32))
    finish(w)


def finish(w: gguf.GGUFWriter) -> None:
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def read(path: str) -> None:
    reader = gguf.GGUFReader(path)
    for key, field in reader.fields.items():
        print("key", key, field.contents() if len(field.data) < 10 else f"[{len(field.data)}]")
    for t in reader.tensors:
        print("tensor", t.name, t.tensor_type.name, t.shape.tolist(), t.n_bytes, bytes(t.data.tobytes()[:8]).hex())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(sys.argv[2])
    else:
        DATA.mkdir(exist_ok=True)
        every_type()
        llama()
