"""The bundle's programs, in one archive: they have the library in common, and so take hardly more than one of them.

programs.py FOLDER ARCHIVE packs what is in the folder.
"""
import lzma
import sys
import tarfile
from pathlib import Path

ARCHIVE = "programs.tar.xz"
# Larger than a few programs, so that what one has in common with another is found.
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
