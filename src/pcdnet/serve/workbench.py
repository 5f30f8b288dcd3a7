"""Workbench: a run's model with its pictures, names and edits, and the work that is asked of it.

Several threads may use it at once.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8

import pcdnet
from pcdnet.colours import as_hex, as_rgb, instance_colours, prototype_colours
from pcdnet.config import ModelConfig
from pcdnet.corrections import Drawn
from pcdnet.data.strip import Strip
from pcdnet.decomposition import Decomposition
from pcdnet.edits import FOLDER as EDITS
from pcdnet.edits import Edited, Edits, Placed
from pcdnet.errors import PcdnetError
from pcdnet.model.batch import to_batch
from pcdnet.model.inspection import Inspection, Proposal, inspect, locate
from pcdnet.model.network import PCDNet
from pcdnet.model.posed import Pose, posed_place, poses_frame
from pcdnet.names import Names
from pcdnet.output.figures import panels
from pcdnet.output.formats import Format, checked_formats
from pcdnet.output.record import Results, records
from pcdnet.run import RunFolder
from pcdnet.serve import messages
from pcdnet.serve.browsing import Browsing
from pcdnet.serve.counting import Counting
from pcdnet.serve.folder_messages import KindChange
from pcdnet.serve.learning import Relearning
from pcdnet.serve.limits import (
    MOST_BYTES,
    MOST_PAINTED,
    MOST_PIXELS,
    QUICK_BYTES,
    QUICK_PAINTED,
    QUICK_PIXELS,
    QUICK_SEARCHED,
    painted_pixels,
)
from pcdnet.serve.messages import Array
from pcdnet.serve.orders import Orders
from pcdnet.serve.pictures import checked, decoded, fitted, png, shrinking, shrunk, size_of
from pcdnet.serve.refusal import Refusal
from pcdnet.training.correction import thing_in

LOOKED_AT = 16
"""Pictures from which it is read how often prototypes are used."""
INSTANCE_COLOURS = 64
"""Colours for objects in instance views; after them they come again."""


@dataclass(kw_only=True)
class Workbench:
    """A run's model, and what can be done with it."""

    folder: Path
    """The run's folder, where names are kept."""
    model: PCDNet
    """Its model."""
    pictures: Strip | None = None
    """Pictures to begin with, where there are some."""
    data: str | None = None
    """What was named to begin with, where it is not the run's own."""
    own: bool = True
    """Whether the run is the user's, who may change what is kept with it; a trained model of the package is not."""

    def __post_init__(self) -> None:
        self._inspected: tuple[UInt8[np.ndarray, "H W C"], Inspection] | None = None
        self._renaming = threading.Lock()
        self.edits = Edits(self.folder / EDITS)
        """What people made of the pictures, kept with the run."""
        self.relearning = Relearning(self.folder, self.data)
        """The process that learns again from what they corrected."""
        self.browsing = Browsing(self.pictures, self.model.config.channels, self.edits)
        """The pictures, and what is remembered of them."""
        self.counting = Counting(self.browsing, self.model, self.fitted)
        """What is found in all of them."""
        self.orders = Orders(self.counting)
        """The files of results that were asked for."""

    @staticmethod
    def for_run(run: RunFolder, data: str | None = None, device: str = "cpu") -> Workbench:
        """The workbench of a run, with the pictures of its own data unless others are named.

        Where its own data are gone there are no pictures; others that are named must be there.
        """
        pictures = None
        try:
            pictures = run.strip(data)
        except PcdnetError:
            if data is not None:
                raise
        model = run.load_model(device)
        return Workbench(folder=run.path, model=model, pictures=pictures, data=data, own=run.is_changeable)

    def warm_up(self) -> None:
        """Search a picture as the first visitor will: whatever is compiled or planned once is then ready."""
        with suppress(PcdnetError):  # a damaged one is shown as such
            if len(self.browsing) > 0 and not self.is_large_number(0):
                self.model.decompose(self.fitted(0))
        h, w = self.model.config.prototype_size
        shape = *(self.model.image_size or (2 * h, 2 * w)), self.model.config.channels
        if not self.is_large(shape):  # in noise nothing is explained, and so all is tried that the search knows
            self.model.decompose(np.random.default_rng(0).integers(0, 256, shape, np.uint8))

    @property
    def names(self) -> Names:
        """What the prototypes are called."""
        return self.model.names

    @property
    def size(self) -> tuple[int, int] | None:
        """The size that pictures should have: the still background's, or else that of the first picture."""
        return self.model.image_size or self.browsing.usual_size()

    def describe(self, *, renaming: bool) -> messages.Model:
        """What there is to know of the model before the first picture."""
        bank, config = self.model.bank().to_numpy(), self.model.config
        fixed = self.model.image_size is not None
        return messages.Model(
            name=self.folder.resolve().name,
            version=pcdnet.__version__,
            size=self.size,
            fixed=fixed,
            channels=config.channels,
            objects=config.max_objects,
            min_gain=config.min_error_reduction,
            prototypes=Array.from_numpy(bank.prototypes),
            masks=Array.from_numpy(bank.masks),
            background=Array.from_numpy(bank.background) if fixed and bank.background is not None else None,
            **self.named().model_dump(),
            poses=_poses(config) if config.posed else None,
            use=self._use(),
            instance_colours=list(map(as_hex, instance_colours(INSTANCE_COLOURS))),
            renaming=renaming,
            most_bytes=MOST_BYTES,
            most_pixels=MOST_PIXELS,
        )

    def decompose_file(self, content: bytes, name: str, *, fit: bool) -> messages.Explained:
        """Decompose a picture that came as a file."""
        return self._decompose(decoded(content, self.model.config.channels, self.model.values), name, fit=fit)

    def decompose(self, message: messages.Picture | messages.Numbered) -> messages.Explained:
        """Decompose a picture that came as numbers, or one of the strip, of which kept edits are added."""
        if isinstance(message, messages.Numbered):
            number = message.picture
            name = self.browsing.name(number)
            answer = self._decompose(self.browsing.pixels(number), name, fit=message.fit)
            return self._with_edits(answer, number)
        picture = checked(message.image.values(), self.model.config.channels)
        return self._decompose(picture, message.name, fit=message.fit)

    def fitted(self, number: int) -> UInt8[np.ndarray, "H W C"]:
        """A picture of the strip as the model takes it; one that it cannot take is refused."""
        tiles = self.model.config.background in ("black", "plain")
        return fitted(self.browsing.pixels(number), self.model, self.size, fit=False, whole=tiles)

    def is_large(self, shape: Sequence[int]) -> bool:
        """Whether searching a picture, height first, takes long."""
        return prod(shape[:2]) > max(QUICK_SEARCHED, prod(self.size or (0,)))

    def is_large_file(self, content: bytes) -> bool:
        """Whether reading or searching the picture in a file takes long; a large file is not even looked at."""
        own = prod(self.size or (0,))
        return len(content) > max(QUICK_BYTES, 8 * own) or self.is_large(size_of(content))

    def is_large_number(self, number: int) -> bool:
        """The same of a picture of the strip."""
        try:
            return self.is_large(self.browsing.size(number))
        except Refusal as refused:
            if refused.status == 404:
                raise
            return False  # it cannot be read, and that is soon said

    def is_large_scene(self, scene: messages.Scene) -> bool:
        """Whether painting a scene takes long; one that would take too long is refused."""
        (H, W), (h, w), count = scene.size, self.model.config.prototype_size, len(scene.objects)
        if H * W > MOST_PIXELS:
            problem = f"a scene of {H}x{W} has more than {MOST_PIXELS:,} pixels"
            raise Refusal(422, f"{problem}; ask for a smaller one")
        painted = painted_pixels(count, (h, w), scene.size) + self._resampled_pixels(scene)
        if painted > MOST_PAINTED:
            problem = f"{count} objects of {h}x{w} have more than {MOST_PAINTED:,} pixels"
            raise Refusal(422, f"{problem}; send {count * MOST_PAINTED // painted} or fewer")
        return H * W > QUICK_PIXELS or painted > QUICK_PAINTED

    def _resampled_pixels(self, scene: messages.Scene) -> int:
        """Pixels that are made for the objects of a scene that are turned, scaled or at fractions of a pixel."""
        frame, config = self.model.config.prototype_size, self.model.config
        poses = (Pose(*each.position, each.angle, each.scale, each.mirrored) for each in scene.objects)
        return sum(prod(posed_place(frame, pose, config)[2]) for pose in poses if not pose.plain)

    def render(self, scene: messages.Scene) -> messages.Explained:
        """Paint a scene that may never have been found anywhere."""
        return _explained(*self._painted(scene))

    def inspect(self, question: messages.Question) -> messages.Inside:
        """Look inside the search on a picture; asked again for another map, the same picture is not searched anew."""
        pixels = checked(question.image.values(), self.model.config.channels)
        pixels = fitted(pixels, self.model, self.size, fit=False)
        image = to_batch(pixels, self.model.config.channels)[0].to(self.model.masks)
        known = self._inspected
        if known is None or not np.array_equal(known[0], pixels):
            self._inspected = known = pixels, inspect(self.model, image)
        seen = known[1]
        heat = None if question.prototype is None else self._heat(image, question.prototype, question.pose)
        found = {"candidates": list(map(_proposed, seen.proposals)), "error": seen.error, "refined": seen.refined}
        steps = [
            {
                "error": step.error,
                "chosen": None if step.chosen is None else _proposed(step.chosen),
                "rivals": list(map(_proposed, step.rivals)),
            }
            for step in seen.steps
        ]
        tuned: dict[str, Any] = {"fitted": True} if seen.fitted else {}
        return messages.Inside.model_validate({**found, "steps": steps, "map": heat, **tuned})

    def named(self) -> messages.Names:
        """What the prototypes are called, and their colours in semantic views: those of one name share theirs."""
        colours = map(as_hex, prototype_colours(self.names.first))
        return messages.Names(names=list(self.names), colours=list(colours), hidden=sorted(self.names.hidden))

    def rename(self, prototype: int, name: str) -> messages.Names:
        """Call a prototype by another name from now on, in the run's folder too."""
        self.check(prototype)
        return self._renamed(lambda names: names.renamed(prototype, name))

    def change_kinds(self, change: KindChange) -> messages.Names:
        """Name, merge, hide or show prototypes, in the run's folder too."""
        for prototype in change.prototypes:
            self.check(prototype)

        def changed(names: Names) -> Names:
            if change.hidden is not None:
                names = names.hiding(change.prototypes, hidden=change.hidden)
            for prototype in change.prototypes if change.name is not None else ():
                names = names.renamed(prototype, change.name or "")
            return names

        return self._renamed(changed)

    def keep_edits(self, number: int, scene: messages.Scene) -> None:
        """Keep what somebody made of a picture with the run, in the place of what there was."""
        size = self.fitted(number).shape[:2]
        if tuple(scene.size) != size:
            problem = f"a scene of {scene.size[0]}x{scene.size[1]} was sent for a picture of {size[0]}x{size[1]}"
            raise Refusal(422, f"{problem}; send one of the same size")
        self.is_large_scene(scene)
        things = tuple(map(_placed, scene.objects))
        edited = Edited(self.browsing.name(number), self.browsing.digest(number), (size[0], size[1]), things)
        config = self.model.config
        self.edits.keep(edited.checked(config.num_prototypes, config.channels))
        self.counting.note_edit(number, edited)

    def discard_edits(self, number: int | None = None) -> None:
        """Forget the edits of a picture, or of all; damaged ones, too."""
        if number is None:
            self.edits.discard_all()
            self.counting.forget_edits()
            return
        self.edits.discard(self.browsing.name(number))
        self.counting.note_edit(number, None)

    @property
    def run(self) -> RunFolder:
        """The run as it is in its folder."""
        return RunFolder.open(self.folder)

    def changed_by(self, change: Callable[[], None]) -> None:
        """Have something put another model into the run's folder, and go on with that; the pictures stay."""
        with self._renaming:
            change()
            device = str(self.model.masks.device)
            former, model = self.counting, self.run.load_model(device)
            self._inspected, self.model = None, model
            self.counting = Counting(self.browsing, model, self.fitted)
            self.orders = Orders(self.counting)
        former.close()

    def explained(self, number: int, model: PCDNet) -> messages.Explained:
        """A picture of the strip as a model explains it."""
        picture = self.fitted(number)
        return _explained(model.decompose(picture, name=self.browsing.name(number)), picture)

    def check_drawn(self, drawn: Drawn) -> None:
        """Refuse a box in which nothing stands out from the background."""
        thing_in(self.model, drawn)

    def close(self) -> None:
        """End all that goes on in the background."""
        self.relearning.close()
        self.counting.close()

    def _renamed(self, change: Callable[[Names], Names]) -> messages.Names:
        with self._renaming:
            names = change(self.names)
            names.write(self.folder)
            self.model.names = names
        return self.named()

    def export(self, message: messages.Export) -> tuple[Format, bytes]:
        """A scene as a file: its format, and its bytes."""
        found, picture = self._painted(message.scene)
        wanted = checked_formats([message.format])[0]
        if wanted.writer is None:
            return wanted, png(_view(found, picture, message.view, self.names))
        results = Results(records([found], [found.name]), self.model.kinds, self.model.config.channels)
        with TemporaryDirectory() as folder:
            first = wanted.write(results, Path(folder))[0]
            return wanted, (next(first.rglob("*.txt")) if first.is_dir() else first).read_bytes()

    def _decompose(self, picture: UInt8[np.ndarray, "H W C"], name: str, *, fit: bool) -> messages.Explained:
        tiles = self.model.config.background in ("black", "plain")
        picture = fitted(picture, self.model, self.size, fit=fit, whole=tiles)
        found = self.model.decompose(picture, name=name)
        answer = _explained(found, picture)
        answer.at_limit = len(found) >= self.model.max_objects_in((picture.shape[0], picture.shape[1]))
        return answer

    def _with_edits(self, answer: messages.Explained, number: int) -> messages.Explained:
        """The answer with what is kept of a picture; edits that cannot be used are reported, and not believed."""
        config = self.model.config
        try:
            edited = self.browsing.edits_of(number)
            if edited is not None:
                edited.checked(config.num_prototypes, config.channels)
        except PcdnetError as error:
            answer.note = str(error)
            return answer
        if edited is not None and list(edited.size) == list(answer.scene["size"]):
            words = {"size": edited.size, "objects": edited.objects, "name": edited.name}
            answer.edits = messages.Scene.model_validate(words)
            self.counting.note_edit(number, edited)
        return answer

    def _painted(self, scene: messages.Scene) -> tuple[Decomposition, UInt8[np.ndarray, "H W C"] | None]:
        """The scene painted, and the picture that it explains, if there is one."""
        channels = self.model.config.channels
        self.is_large_scene(scene)
        picture = None if scene.image is None else checked(scene.image.values(), channels)
        try:
            asked = Decomposition.from_dict(_record(scene), channels)
        except PcdnetError:
            raise PcdnetError(f"objects differ in how many colour values they have; give {channels} each") from None
        asked = dataclasses.replace(asked, background=self._behind(scene))
        return self.model.recompose(asked, picture), picture

    def _behind(self, scene: messages.Scene) -> Float32[np.ndarray, "H W C"] | None:
        """The background that came with a scene, if there is one and the model has use for it."""
        if scene.background is None:
            return None
        if self.model.config.background not in ("plain", "moving"):
            raise PcdnetError("this model has one background for all pictures; leave out background")
        values, wanted = scene.background.values(), (*scene.size, self.model.config.channels)
        if values.shape != wanted or values.dtype != np.float32 or not np.isfinite(values).all():
            raise PcdnetError(
                f"the background is an array of shape {list(values.shape)} and type {values.dtype.name}; "
                f"send {'x'.join(map(str, wanted))} finite numbers of float32"
            )
        return values

    def check(self, prototype: int) -> None:
        """Refuse a prototype that there is not."""
        if not 0 <= prototype < len(self.names):
            raise Refusal(404, f"there is no prototype {prototype}; give a number of 0 to {len(self.names) - 1}")

    def _heat(self, image: Float[torch.Tensor, "C H W"], prototype: int, pose: int | None) -> messages.Heat:
        self.check(prototype)
        if pose is not None and not self.model.config.posed:
            raise PcdnetError("this model has no poses; leave out pose")
        found = locate(self.model, image, prototype, pose)
        heat = Array.from_numpy(found.heat.float().cpu().contiguous().numpy())
        tried = [messages.Tried.model_validate(each) for each in found.poses]
        posed: dict[str, Any] = {"step": found.step, "poses": tried, "pose": found.pose} if tried else {}
        return messages.Heat(prototype=prototype, heat=heat, origin=found.origin, middle=found.middle, **posed)

    def _use(self) -> list[float] | None:
        """Each prototype's share of all objects in some of the pictures."""
        count = len(self.browsing)
        used = np.zeros(self.model.config.num_prototypes)
        for number in range(0, count, -(-count // LOOKED_AT) or 1):
            with suppress(PcdnetError):
                if not self.is_large_number(number):
                    np.add.at(used, self.model.decompose(self.fitted(number), refined=False).prototype_ids, 1)
        shares: list[float] = (used / max(used.sum(), 1)).tolist()
        return shares if count else None


def _poses(config: ModelConfig) -> messages.Poses:
    """What poses the objects of a model may have."""
    return messages.Poses(
        angles=config.rotation_range if config.rotations > 1 else None,
        scales=config.scale_range if config.scales > 1 else None,
        mirror=config.mirror,
        subpixel=config.subpixel,
        frame=poses_frame(config.prototype_size, config),
        interpolated=config.poses > 1,
    )


def _proposed(found: Proposal) -> dict[str, Any]:
    """A candidate as a message; what it does not have is left out."""
    words = ("prototype", "position", "height", "colour", "error_reduction", "pose", "proposed")
    return {word: value for word in words if (value := getattr(found, word)) is not None}


def _placed(thing: messages.Thing) -> Placed:
    pose = thing.angle, thing.scale, thing.mirrored
    return Placed(thing.prototype, thing.position, tuple(thing.colour), *pose)


def _record(scene: messages.Scene) -> dict[str, Any]:
    """A scene as the record that it stands for."""
    return {"size": scene.size, "name": scene.name, "objects": [_placed(each).to_dict() for each in scene.objects]}


def _explained(found: Decomposition, picture: UInt8[np.ndarray, "H W C"] | None) -> messages.Explained:
    painted, factor = np.rint(255 * found.reconstruction.clip(0, 1)).astype(np.uint8), shrinking(found.instances.shape)
    if factor > 1 and picture is not None:
        height, width, _ = (small := shrunk(picture, factor)).shape
        labels = found.instances[factor // 2 :: factor, factor // 2 :: factor][:height, :width]
        return messages.Explained(
            scene=found.to_dict(),
            image=Array.from_numpy(small),
            reconstruction=Array.from_numpy(shrunk(painted, factor)),
            instances=Array.from_numpy(labels.astype(np.uint16)),
            shrunk=factor,
        )
    own: dict[str, Any] = {} if found.background is None else {"background": Array.from_numpy(found.background)}
    return messages.Explained(
        scene=found.to_dict(),
        image=None if picture is None else Array.from_numpy(picture),
        reconstruction=Array.from_numpy(painted),
        instances=Array.from_numpy(found.instances.astype(np.uint16)),
        **own,
    )


def _view(
    found: Decomposition, picture: UInt8[np.ndarray, "H W C"] | None, view: str, names: Names
) -> UInt8[np.ndarray, "H W 3"]:
    """One way to look at a scene: image, reconstruction, residual, instances or semantics."""
    if view in ("image", "residual") and picture is None:
        raise PcdnetError(f"the view {view!r} needs the picture that the scene explains; send it as image")
    image = found.reconstruction if picture is None else picture.astype(np.float32) / 255
    if view == "residual":
        return as_rgb(np.abs(image - found.reconstruction))
    return panels(image, found, names.first)[view]
