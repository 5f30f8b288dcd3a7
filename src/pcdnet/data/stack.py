"""Stack: the images of an .npz file one by one, so that its size does not matter."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from pcdnet.data import npz
from pcdnet.data.pictures import MOST_PIXELS
from pcdnet.errors import PcdnetError


def count(path: Path) -> int:
    """How many images the file claims to hold."""
    with _opened(path) as member:
        return member.shape[0]


def images(path: Path) -> Iterator[UInt8[np.ndarray, "H W C"]]:
    """The images of the array `image`; what the file claims beyond its end is told when it is reached."""
    with _opened(path) as member:
        N, H, W = member.shape[:3]
        if H * W > MOST_PIXELS:
            raise PcdnetError(f"{member.label} has images of {H}x{W} pixels, more than the limit; save smaller ones")
        size = prod(member.shape[1:])
        for number in range(N):
            content = member.stream.read(size)
            if len(content) < size:
                raise PcdnetError(f"{member.label} is cut off after {number} of {N} images; save it again")
            yield np.frombuffer(content, np.uint8).reshape(H, W, -1)


@contextmanager
def _opened(path: Path) -> Iterator[npz.Member]:
    """The array `image` with its header read; whatever goes wrong until it is closed is told as one sentence."""
    try:
        with ExitStack() as open_files:
            file = open_files.enter_context(zipfile.ZipFile(path))
            if not {"image", "image.npy"} & set(file.namelist()):
                there = ", ".join(name.removesuffix(".npy") for name in file.namelist()[:5]) or "nothing"
                raise PcdnetError(f"{path} has no array 'image' (it holds {there}); save the images under that name")
            member = npz.open_member(file, "image", path, open_files)
            npz.check_sizes({"image": member})
            yield member
    except FileNotFoundError:
        raise PcdnetError(f"{path} does not exist; give the path of an .npz file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise PcdnetError(f"{path} is no sound .npz file ({error}); save it again with numpy.savez") from None
    except OSError as error:
        raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); give a readable file") from None
