"""Packs the bundle's programs into one archive. They share the code of the library, so the archive is hardly larger than for one program.

programs.py FOLDER ARCHIVE packs what is in the folder.
"""
import lzma
import sys
import tarfile
from pathlib import Path

ARCHIVE = "programs.tar.xz"
# The dictionary is larger than a few programs, so that the compressor finds the code that two programs share.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": 64 << 20}]


def pack(folder, archive):
    with lzma.open(archive, "wb", filters=FILTERS) as out, tarfile.open(fileobj=out, mode="w") as tar:
        for program in sorted(folder.iterdir()):
            tar.add(program, arcname=program.name)


def unpack(bundle, folder):
    with tarfile.open(bundle / ARCHIVE, "r:xz") as tar:
        tar.extractall(folder)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
