#!/usr/bin/env python3
"""Writes data/every_type.safetensors with the safetensors package: a file that our reader must read, made by an implementation that is not
ours.

    pip install safetensors; python tests/files/make_safetensors_goldens.py

Given files (`make_safetensors_goldens.py --accepts FILES`), says which of them the package reads: to compare our checks with its own.
"""

import ctypes
import pathlib
import sys

import safetensors

DATA = pathlib.Path(__file__).parent / "data"

# Each type: its name in files, the package's name for it, the bits of a value. The package writes no F6_E2M3 and no F6_E3M2.
TYPES = [("BOOL", "bool", 8), ("F4", "float4_e2m1fn_x2", 4), ("U8", "uint8", 8), ("I8", "int8", 8), ("F8_E5M2", "float8_e5m2", 8),
         ("F8_E4M3", "float8_e4m3fn", 8), ("F8_E5M2FNUZ", "float8_e5m2fnuz", 8), ("F8_E4M3FNUZ", "float8_e4m3fnuz", 8),
         ("F8_E8M0", "float8_e8m0fnu", 8), ("I16", "int16", 16), ("U16", "uint16", 16), ("F16", "float16", 16), ("BF16", "bfloat16", 16),
         ("I32", "int32", 32), ("U32", "uint32", 32), ("F32", "float32", 32), ("C64", "complex64", 64), ("F64", "float64", 64),
         ("I64", "int64", 64), ("U64", "uint64", 64)]


def spec(dtype: str, shape: list, data: ctypes.Array) -> safetensors.TensorSpec:
    return safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(data), data_len=len(data.raw) - 1)


def every_type() -> None:
    tensors, buffers = {}, []
    for index, (name, dtype, bits) in enumerate(TYPES):
        # The package wants the shape of an F4 tensor in bytes, and doubles its last number.
        shape = [2, 2] if name == "F4" else [2, 4]
        buffers.append(ctypes.create_string_buffer(bytes([index + 1]) * bits))
        tensors[f"a.{name}"] = spec(dtype, shape, buffers[-1])
    buffers.append(ctypes.create_string_buffer(b"\xc8" * 4))
    tensors['zażółć "gęślą" \\ 🙂'] = spec("float32", [], buffers[-1])
    buffers.append(ctypes.create_string_buffer(b""))
    tensors["empty"] = spec("float16", [0, 5], buffers[-1])
    data = safetensors.serialize(tensors, {"format": "pt", "note": "line\nnext \u0001 ü"})
    (DATA / "every_type.safetensors").write_bytes(bytes(data))


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--accepts":
        for path in sys.argv[2:]:
            try:
                safetensors.deserialize(pathlib.Path(path).read_bytes())
                print("yes", path)
            except Exception as error:  # the package has one type of its own for all
                print("no ", path, error)
        return
    every_type()


main()
