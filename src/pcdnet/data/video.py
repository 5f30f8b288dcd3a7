"""Video: the frames of a video file, one by one or as Scenes; it needs the extra `video`.

Files come from strangers: the container is told by its first bytes and never guessed, since some formats are lists of
other files and addresses to open. A video that is cut off gives the frames that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from pcdnet.data.notes import Note, to_stderr
from pcdnet.data.pictures import MOST_PIXELS
from pcdnet.data.view import MOST_BYTES, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

VIDEOS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".gif")
"""How the names of video files end, in lower case."""

_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")  # what files of the MP4 family begin with


def is_video(path: str | Path) -> bool:
    """Whether a name ends like that of a video."""
    return Path(path).suffix.lower() in VIDEOS


def read(
    path: str | Path,
    *,
    limit: int | None = None,
    stride: int = 1,
    crop: tuple[int, int, int, int] | None = None,
    resize: tuple[int, int] | None = None,
    grey: bool = False,
    note: Note = to_stderr,
) -> Scenes:
    """Return every `stride`-th frame of a video, at most `limit` of them; `note` hears of a video that is cut off."""
    if limit is not None and limit < 1:
        raise PcdnetError(f"the limit is {limit} frames; give at least 1, or none to read the whole video")
    view = View(resize=resize, crop=crop, stride=stride, grey=grey)
    images: list[UInt8[np.ndarray, "H W C"]] = []
    room = MOST_BYTES
    for frame in islice(frames(path, stride, note=note), limit):
        view.size(frame.shape[:2], f"frames of {path}")
        image = view.image(frame)
        if images and image.shape != images[0].shape:
            (H, W), (height, width) = images[0].shape[:2], image.shape[:2]
            raise PcdnetError(f"{path} changes from {H}x{W} to {height}x{width}; use --resize {H} {W}")
        room -= image.size
        if room < 0:
            raise PcdnetError(
                f"the frames of {path} take more than the limit of {MOST_BYTES / 2**30:.0f} GiB; "
                f"use --stride, --crop or --resize, or fewer frames"
            )
        images.append(image if image.base is None else image.copy())  # a crop would keep the whole frame alive
    stem = Path(path).stem
    names = tuple(f"{stem}-{number * stride:06}" for number in range(len(images)))
    return Scenes(images=np.stack(images), names=names, name=Path(path).name)


def frames(
    path: str | Path, stride: int = 1, *, most_pixels: int = MOST_PIXELS, note: Note = to_stderr
) -> Iterator[UInt8[np.ndarray, "H W C"]]:
    """Yield every `stride`-th frame of a video as it is decoded; C is 1 for grey videos and 3 for all others."""
    path = Path(path)
    View(stride=stride)  # complains of a stride that is none
    errors = _av().error
    number = 0
    try:
        with _container(path) as container:
            stream = _stream(container, path, most_pixels)
            for frame in _decoded(container, stream, path, note):
                if number % stride == 0:
                    yield _array(frame)
                number += 1
    except errors.FFmpegError as error:
        if number == 0:
            raise _unreadable(path, error) from None
        note(f"{path} is damaged after frame {number}; what comes before is used")
    if number == 0:
        raise PcdnetError(f"{path} has no frame that can be decoded; give a sound video file")


def count(path: str | Path) -> int:
    """How many frames a video claims to have; 0 if it claims nothing. A file that is cut off has fewer."""
    path = Path(path)
    try:
        with _container(path) as container:
            return _claimed(container, _stream(container, path, MOST_PIXELS))
    except _av().error.FFmpegError as error:
        raise _unreadable(path, error) from None


def _claimed(container: InputContainer, stream: VideoStream) -> int:
    if stream.frames or not container.duration or not stream.average_rate:
        return stream.frames
    return int(container.duration / 1_000_000 * stream.average_rate)  # containers count microseconds


def _unreadable(path: Path, error: Any) -> PcdnetError:
    reason = error.strerror or error
    return PcdnetError(f"{path} cannot be read as a video ({reason}); give a sound video file")


def _av() -> Any:
    try:
        import av
        import av.error
    except ImportError:
        raise PcdnetError("videos are read through PyAV, which is missing; pip install 'pcdnet[video]'") from None
    return av


def _container(path: Path) -> InputContainer:
    """The file as a container of the kind that its first bytes tell, and of no other."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
    except FileNotFoundError:
        raise PcdnetError(f"{path} does not exist; give the path of a video") from None
    except OSError as error:
        raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); give a readable video") from None
    if not start:
        raise PcdnetError(f"{path} is empty; give a sound video file")
    if start[4:8] in _BOXES:
        kind = "mov"
    elif start[:4] == b"\x1aE\xdf\xa3":
        kind = "matroska"
    elif start[:4] == b"RIFF" and start[8:] == b"AVI ":
        kind = "avi"
    elif start[:4] == b"GIF8":
        kind = "gif"
    else:
        raise PcdnetError(f"{path} is no video of a known kind; give one of {', '.join(VIDEOS)}")
    container: InputContainer = _av().open(str(path.absolute()), format=kind, metadata_errors="replace")
    return container


def _stream(container: InputContainer, path: Path, most_pixels: int) -> VideoStream:
    if not container.streams.video:
        raise PcdnetError(f"{path} has no pictures, only sound or text; give a video")
    stream = container.streams.video[0]
    if getattr(stream, "codec_context", None) is None:  # PyAV leaves it out where it has no decoder
        raise PcdnetError(f"{path} is written in a way that is unknown here; convert it to H.264 in .mp4")
    if stream.width * stream.height > most_pixels:
        raise PcdnetError(
            f"the frames of {path} have {stream.height}x{stream.width} pixels, more than the limit of {most_pixels:,}; "
            f"give a smaller video"
        )
    stream.codec_context.options = {"max_pixels": str(most_pixels)}  # frames may differ from what the file says
    return stream


def _decoded(container: InputContainer, stream: VideoStream, path: Path, note: Note) -> Iterator[VideoFrame]:
    """The frames that can be decoded; what is damaged between them, or missing at the end, is told."""
    broken = number = 0
    for packet in container.demux(stream):
        try:
            found = packet.decode()
        except _av().error.InvalidDataError:
            broken += 1
            continue
        for frame in found:
            number += 1
            yield frame
    claimed = max(number + broken, _claimed(container, stream))
    if number and (broken or number < 0.95 * claimed):  # what files claim is not exact
        note(f"{path} is damaged or cut off: {number} of its {claimed} frames can be decoded")


def _array(frame: VideoFrame) -> UInt8[np.ndarray, "H W C"]:
    """The frame as it is meant to be seen: telephones turn videos by a note beside the frames."""
    grey = frame.format.name.startswith("gray")
    values = np.asarray(frame.to_ndarray(format="gray" if grey else "rgb24"))
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(values if values.ndim == 3 else values[..., None], turns))
