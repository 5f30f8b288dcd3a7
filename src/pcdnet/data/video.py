"""Video: the frames of a video file, one by one or as Scenes; it needs the extra `video`.

Files come from strangers: the container is recognised by its first bytes and never guessed, since some formats are
lists of other files and addresses to open. A video that is cut off gives the frames that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from pcdnet.data.intake import MOST_PIXELS, check_memory
from pcdnet.data.keeping import Keep, most_in_memory, stamp
from pcdnet.data.notes import noted, readable
from pcdnet.data.sources import VIDEOS
from pcdnet.data.streaming import streamed
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import Incomplete, PcdnetError, Setting
from pcdnet.scene import Scenes

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")  # what files of the MP4 family begin with


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the frames of a video, at most `limit` of them."""
    view.chosen(limit)  # refuses a limit that is none
    if _would_fill_memory(path, limit, view):
        return _streamed(path, limit, view)
    found: dict[int, UInt8[np.ndarray, "H W C"]] = {}
    for number, frame in islice(noted(images(path, stride=view.stride)), limit):
        view.size(frame.shape[:2], f"frames of {path}")
        image = view.image(frame)
        H, W, C = next(iter(found.values()), image).shape
        if image.shape != (H, W, C):
            h, w = image.shape[:2]
            raise PcdnetError(f"{path} changes from {H}x{W} to {h}x{w}; use ", Setting("resize", (H, W)))
        check_memory((len(found) + 1) * image.size, f"the frames of {path}")
        found[number] = image if image.base is None else image.copy()  # a crop would keep the whole frame alive
    names = tuple(f"{path.stem}-{number:06}" for number in found)
    seen = replace(UNCHANGED, tiles=view.tiles, ignore=view.ignore)  # of what is looked at so already
    return seen.scenes(Scenes(images=np.stack([*found.values()]), names=names, name=path.name))


def _would_fill_memory(path: Path, limit: int | None, view: View) -> bool:
    """Whether so many frames as the file claims would."""
    frames = count(path) // view.stride
    _, first = next(images(path))
    view.size(first.shape[:2], f"frames of {path}")
    frame = view.image(first)
    return (frames if limit is None else min(frames, limit)) * frame.size > most_in_memory()


def _streamed(path: Path, limit: int | None, view: View) -> Scenes:
    """The same scenes where they would fill the memory."""

    def stream() -> Iterator[tuple[str, UInt8[np.ndarray, "H W C"]]]:
        for number, frame in islice(noted(images(path, stride=view.stride)), limit):
            yield f"frame {number} of {path}", frame

    keep = Keep(name=str(path), key=(str(path.absolute()), stamp(path), limit, repr(view)))
    found = streamed(stream, view, keep)
    return Scenes(images=found.images, name=path.name, places=found.places)


def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, UInt8[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th frame of a video with its number as it is decoded; C is 1 for grey videos, else 3.

    At the end Incomplete is raised if there are fewer than there should be.
    """
    View(stride=stride)  # refuses a stride that is none
    av, number, broken = _av(), 0, 0
    with _opened(path) as (container, stream):
        try:
            for packet in container.demux(stream):
                try:
                    found = packet.decode()
                except av.error.InvalidDataError:
                    broken += 1
                    continue
                for frame in found:
                    if number % stride == 0:
                        yield number, _array(frame)
                    number += 1
        except av.error.FFmpegError:
            if number == 0:
                raise
            broken += 1
        claimed = max(number + broken, _claimed(container, stream))
    if number == 0:
        raise PcdnetError(f"{path} has no frame that can be decoded; give a sound video file")
    if broken or number < 0.95 * claimed:  # what files claim is not exact
        problem = f"{path} is damaged or cut off: {number} of its {claimed} frames can be decoded"
        raise Incomplete(f"{problem}; give the whole film")


def count(path: Path) -> int:
    """How many frames a video claims to have; 0 if it claims nothing. A file that is cut off has fewer."""
    with _opened(path) as (container, stream):
        return _claimed(container, stream)


def _claimed(container: InputContainer, stream: VideoStream) -> int:
    if stream.frames or not container.duration or not stream.average_rate:
        return stream.frames
    return int(container.duration / 1_000_000 * stream.average_rate)  # containers count microseconds


def _av() -> Any:
    try:
        import av
        import av.error
    except ImportError:
        raise PcdnetError("videos are read through PyAV, which is missing; pip install 'pcdnet[video]'") from None
    return av


@contextmanager
def _opened(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The file and its video; whatever PyAV says of it until it is closed is reported as one sentence."""
    av = _av()
    with (
        readable(path, "a video", (av.error.FFmpegError,), "give a sound video file"),
        av.open(str(path.absolute()), format=_container(path), metadata_errors="replace") as container,
    ):
        yield container, _stream(container, path)


def _container(path: Path) -> str:
    """The kind of container that the first bytes of a file show."""
    with path.open("rb") as file:
        start = file.read(12)
    if not start:
        raise PcdnetError(f"{path} is empty; give a sound video file")
    if start[4:8] in _BOXES:
        return "mov"
    beginnings = {b"\x1aE\xdf\xa3": "matroska", b"GIF8": "gif", b"RIFF": "avi" if start[8:] == b"AVI " else None}
    kind = beginnings.get(start[:4])
    if kind is None:
        raise PcdnetError(f"{path} is no video of a known kind; give one of {', '.join(VIDEOS)}")
    return kind


def _stream(container: InputContainer, path: Path) -> VideoStream:
    if not container.streams.video:
        raise PcdnetError(f"{path} has no pictures, only sound or text; give a video")
    stream = container.streams.video[0]
    if getattr(stream, "codec_context", None) is None:  # PyAV leaves it out where it has no decoder
        raise PcdnetError(f"{path} is written in a way that is unknown here; convert it to H.264 in .mp4")
    if stream.width * stream.height > MOST_PIXELS:
        size = f"{stream.height}x{stream.width} pixels, more than the limit of {MOST_PIXELS:,}"
        raise PcdnetError(f"the frames of {path} have {size}; give a smaller video")
    stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}  # frames may differ from what the file says
    return stream


def _array(frame: VideoFrame) -> UInt8[np.ndarray, "H W C"]:
    """The frame as it is meant to be seen: telephones turn videos by a note beside the frames."""
    grey = frame.format.name.startswith("gray")
    values = np.asarray(frame.to_ndarray(format="gray" if grey else "rgb24"))
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(values if values.ndim == 3 else values[..., None], turns))
