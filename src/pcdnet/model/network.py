"""Network: PCDNet, from images to Decompositions and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import overload

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.data.intake import fitted, in_eight_bits
from pcdnet.data.pictures import read_picture
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError, Setting
from pcdnet.kinds import Kinds
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.batch import to_batch
from pcdnet.model.engine import Engine, Layers
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE
from pcdnet.model.poses.sprites import upright_positions
from pcdnet.model.rendering import recompose
from pcdnet.model.storage import save_model
from pcdnet.model.tiling import Tiling, decompose_tiles
from pcdnet.names import Names

CHUNK = 64
"""Images that are decomposed at a time: more are no faster and need more memory."""
POSED_CHUNK = 32
"""The same of a model whose objects lie in poses: it works on as many chunks at a time as there are threads."""


class PCDNet(Engine):
    """The Phase-Correlation Decomposition Network: a bank of prototypes that explains images as stacks of them.

    In training mode values are clamped softly and selection is plain greedy; in evaluation mode values are
    clamped to [0, 1], objects that overlap come into their order (`config.depth_order`), and badly explained images
    are searched again (`config.restarts`).

    Parameters
    ----------
    config
        Sizes of the bank, and how it explains an image.
    image_size
        Height and width of the images; needed where a background is learned.

    Examples
    --------
    >>> from pcdnet import ModelConfig, PCDNet
    >>> model = PCDNet(ModelConfig(num_prototypes=4, prototype_size=(9, 9)))
    >>> model(torch.zeros(2, 3, 35, 35)).reconstruction.shape
    torch.Size([2, 3, 35, 35])
    """

    def __init__(self, config: ModelConfig, image_size: tuple[int, int] | None = None) -> None:
        super().__init__(config, image_size)
        self.names = Names(count=config.num_prototypes)
        """What people call the prototypes, and their distinct colours; `pcdnet.load` takes them from the folder."""
        self.values: tuple[float, float] | None = None
        """Which values are black and white in images of more than 8 bits; `pcdnet.load` takes them from the folder."""
        self.learned_size: tuple[int, int] | None = None
        """Height and width of the images that it learned from, which its limits are meant for; `pcdnet.load` takes
        them from the folder. A larger picture has more objects, and is searched in tiles."""

    @property
    def kinds(self) -> Kinds:
        """The kinds of objects, by prototype, name and colour; `ids` names those of found objects."""
        return Kinds(self.names)

    @staticmethod
    def from_bank(bank: PrototypeBank, config: ModelConfig) -> PCDNet:
        """A model of given prototypes.

        Parameters
        ----------
        bank
            The prototypes, their masks and, if there is one, the background.
        config
            How images are explained; its sizes must fit the bank.

        Returns
        -------
        PCDNet
            The model, in evaluation mode.

        Examples
        --------
        >>> bank = PrototypeBank(torch.rand(4, 9, 9), torch.ones(4, 9, 9))
        >>> PCDNet.from_bank(bank, ModelConfig(num_prototypes=4, prototype_size=(9, 9)))
        PCDNet(4 prototypes of 9x9, up to 3 objects an image, 648 parameters)
        """
        wanted, given = (config.num_prototypes, *config.prototype_size), tuple(bank.prototypes.shape)
        if wanted != given:
            raise PcdnetError(
                f"the bank holds {given[0]} prototypes of {given[1]}x{given[2]}, the configuration wants "
                f"{wanted[0]} of {wanted[1]}x{wanted[2]}; set ",
                Setting("model.num_prototypes", given[0]),
                " and ",
                Setting("model.prototype_size", given[1:]),
            )
        if config.background in ("still", "moving") and bank.background is None:
            raise PcdnetError(
                *(Setting("model.background", config.background), " but the bank has none; give one, or use "),
                Setting("model.background", "black"),
            )
        if bank.background is not None and len(bank.background) != config.channels:
            raise PcdnetError(
                f"the bank's background has {len(bank.background)} channels, the configuration {config.channels}; set ",
                Setting("model.channels", len(bank.background)),
            )
        model = PCDNet(config, bank.image_size).to(bank.prototypes.device, bank.prototypes.dtype)
        model.load_state_dict(bank.tensors(), strict=False)  # colours come from elsewhere
        return model.eval()

    def decompose(self, image: str | Path | ArrayLike, *, name: str = "", refined: bool = True) -> Decomposition:
        """Explain one image as a stack of objects.

        It works as in evaluation mode, whatever mode the model is in, and changes nothing in the model.

        Parameters
        ----------
        image
            An image, `H W C` or `H W`, of uint8 (0 to 255), uint16 (see `values`) or floats (0 to 1); or the path of a
            picture file, which is made grey or RGB as the model wants it.
        name
            What the result is called; by default the path of the file.
        refined
            Whether objects that overlap come into their order and a badly explained image is searched again; without,
            selection is plain greedy.

        Returns
        -------
        Decomposition
            The objects front to back, with their labels and the image they make.

        Examples
        --------
        >>> from pcdnet import ModelConfig, PCDNet
        >>> from pcdnet.data import tetrominoes
        >>> from pcdnet.model.bank import PrototypeBank
        >>> true = PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes()))
        >>> model = PCDNet.from_bank(true, ModelConfig(min_error_reduction=1.0))
        >>> model.decompose(tetrominoes.generate(count=1, seed=0).images[0])
        Decomposition(3 objects: 1 of prototype 2, 1 of prototype 7, 1 of prototype 16, squared error 0)
        """
        pixels, file = self._pixels(image)
        return self._decompose(pixels[None], [name or file], refined)[0]

    def max_objects_in(self, size: tuple[int, int]) -> int:
        """How many objects are found in a picture of that height and width at most; more in larger ones.

        Parameters
        ----------
        size
            Height and width of the picture.

        Returns
        -------
        int
            The limit of the configuration, or what it comes to in the tiles of a larger picture.

        Examples
        --------
        >>> model = PCDNet(ModelConfig(max_objects=3))
        >>> model.learned_size = (35, 35)
        >>> model.max_objects_in((35, 35)), model.max_objects_in((70, 70))
        (3, 12)
        """
        tiling = Tiling.of(self, size, self.learned_size)
        return self.config.max_objects if tiling is None else len(tiling.corners) * tiling.config.max_objects

    @overload
    def decompose_all(
        self, images: NDArray[np.generic], *, refined: bool = True, backgrounds: bool = True
    ) -> list[Decomposition]: ...

    @overload
    def decompose_all(
        self, images: Iterable[str | Path | ArrayLike], *, refined: bool = True, backgrounds: bool = True
    ) -> Iterator[Decomposition]: ...

    def decompose_all(
        self,
        images: NDArray[np.generic] | Iterable[str | Path | ArrayLike],
        *,
        refined: bool = True,
        backgrounds: bool = True,
    ) -> list[Decomposition] | Iterator[Decomposition]:
        """Explain many images, in their order.

        Parameters
        ----------
        images
            A stack of images (an array `N H W C`), which gives a list; or any iterable of images and paths as
            `decompose` takes them, of whatever sizes, which gives an iterator. Of a stream, only a few images are
            held at a time.
        refined
            Whether badly explained images are searched again.
        backgrounds
            Whether results keep what is behind the objects, where the model makes it for each image; those of large
            images take much memory.

        Returns
        -------
        list or iterator of Decomposition
            One result an image.

        Examples
        --------
        >>> from pcdnet import ModelConfig, PCDNet
        >>> model = PCDNet(ModelConfig(num_prototypes=2, prototype_size=(9, 9)))
        >>> len(model.decompose_all(np.zeros((5, 35, 35, 3), np.uint8)))
        5
        """
        if isinstance(images, np.ndarray):
            if images.ndim != 4:
                raise PcdnetError(f"an array of shape {images.shape} is no stack of images; give N x H x W x C")
            size = self._chunk
            chunks = ((images[start : start + size], [""] * size) for start in range(0, len(images), size))
            return list(self._in_chunks(chunks, refined, backgrounds))
        return self._in_chunks(self._chunks(images), refined, backgrounds)

    def render(self, decomposition: Decomposition) -> Float32[np.ndarray, "H W C"]:
        """Paint the objects of a decomposition, found or edited, as an image of values in [0, 1].

        Parameters
        ----------
        decomposition
            Which objects, where and in which colours.

        Returns
        -------
        array
            The image that they make, as large as the decomposition.

        Examples
        --------
        >>> model = PCDNet(ModelConfig(num_prototypes=2))
        >>> model.render(model.decompose(np.zeros((35, 40, 3), np.uint8))).shape
        (35, 40, 3)
        """
        return self.recompose(decomposition).reconstruction

    def recompose(self, decomposition: Decomposition, image: ArrayLike | None = None) -> Decomposition:
        """The same objects painted anew, with the labels, the image and, for a given image, the errors they make.

        Parameters
        ----------
        decomposition
            Which objects, where and in which colours; its labels and its reconstruction are not used.
        image
            The image that the objects are to explain; without one, errors are 0.

        Returns
        -------
        Decomposition
            The decomposition with everything that follows from its objects.

        Examples
        --------
        >>> model = PCDNet(ModelConfig(num_prototypes=2))
        >>> scene = {"objects": [{"prototype": 1, "position": [3, 4], "colour": [1, 0, 0]}], "size": [35, 40]}
        >>> model.recompose(Decomposition.from_dict(scene)).instances.shape
        (35, 40)
        """
        pixels = None if image is None else self._batch(np.asarray(image))[0]
        own = self._own_background(decomposition, pixels)
        bank, config, seen = self.weights().clamped(), self.config, self.where_seen()
        return recompose(bank, decomposition, pixels, own, config.channels, seen, config.labels, config)

    def _own_background(
        self, decomposition: Decomposition, image: Float[Tensor, "C H W"] | None
    ) -> Float[Tensor, "C H W"] | None:
        """What is behind the objects of a decomposition, where that differs from image to image."""
        if self.config.background not in ("plain", "moving"):
            return None
        if decomposition.background is not None:
            return torch.from_numpy(decomposition.background).permute(2, 0, 1).to(self.prototypes)
        if image is None:
            raise PcdnetError("the background of this model follows from the image; give ", Setting("image"))
        self._check_size(image.shape[1], image.shape[2])
        own = self.own_backgrounds(image[None])
        return None if own is None else own[0]

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder that `pcdnet.load` reads: configuration, weights and names.

        Parameters
        ----------
        folder
            Where to; it is made if need be, and a model in it is replaced.

        Examples
        --------
        >>> import pcdnet, tempfile
        >>> from pcdnet import ModelConfig, PCDNet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     PCDNet(ModelConfig(num_prototypes=2)).save(folder)
        ...     pcdnet.load(folder)
        PCDNet(2 prototypes of 25x25, up to 3 objects an image, 2,500 parameters)
        """
        save_model(self.config, dict(self.state_dict()), self.names, folder, self.values, self.learned_size)

    def __repr__(self) -> str:
        (h, w), count = self.config.prototype_size, sum(parameter.numel() for parameter in self.parameters())
        return (
            f"PCDNet({self.config.num_prototypes} prototypes of {h}x{w}, up to {self.config.max_objects} objects "
            f"an image, {count:,} parameters)"
        )

    @property
    def _chunk(self) -> int:
        """How many images are explained together."""
        return POSED_CHUNK if self.config.posed else CHUNK

    def _chunks(self, images: Iterable[str | Path | ArrayLike]) -> Iterator[tuple[NDArray[np.generic], Sequence[str]]]:
        """Neighbours of one size together, with their names."""
        for _, alike in groupby(map(self._pixels, images), key=lambda pair: (pair[0].shape, pair[0].dtype)):
            while chunk := list(islice(alike, self._chunk)):
                pixels, names = zip(*chunk, strict=True)
                yield np.stack(pixels), names

    def _in_chunks(
        self, chunks: Iterable[tuple[NDArray[np.generic], Sequence[str]]], refined: bool, backgrounds: bool
    ) -> Iterator[Decomposition]:
        """Results in the order of the images."""

        def found(chunk: tuple[NDArray[np.generic], Sequence[str]]) -> list[Decomposition]:
            images, names = chunk
            return self._decompose(images, names[: len(images)], refined, backgrounds=backgrounds)

        for results in self.each(found, chunks):
            yield from results

    def _pixels(self, image: str | Path | ArrayLike) -> tuple[NDArray[np.generic], str]:
        """The pixels of one image, height x width x channels, and the path that they came from, if any."""
        if isinstance(image, str | Path):
            picture = in_eight_bits(read_picture(image), self.values, str(image))
            return fitted(picture, channels=self.config.channels, size=self.image_size), str(image)
        pixels = np.asarray(image)
        if pixels.ndim == 4:
            raise PcdnetError(f"an array of shape {pixels.shape} is a stack of images; use decompose_all")
        return (pixels[..., None] if pixels.ndim == 2 else pixels), ""

    def _batch(self, images: NDArray[np.generic]) -> Float[Tensor, "B C H W"]:
        if images.dtype == np.uint16:
            images = in_eight_bits(images, self.values, "the array")
        return to_batch(images, self.config.channels).to(self.prototypes.device, self.prototypes.dtype)

    @torch.inference_mode()
    def _decompose(
        self, images: NDArray[np.generic], names: Sequence[str], refined: bool, *, backgrounds: bool = True
    ) -> list[Decomposition]:
        """Explain equally large images together; large ones one by one, in tiles."""
        (H, W), (h, w) = images.shape[1:3], self.config.prototype_size
        if h > H or w > W:
            raise PcdnetError(f"{H}x{W} pixels are less than a prototype has ({h}x{w}); give a larger picture")
        try:
            tiling = Tiling.of(self, (H, W), self.learned_size)
            if tiling is not None and images.ndim == 4 and images.shape[-1] == self.config.channels:
                if images.dtype == np.uint16:
                    images = in_eight_bits(images, self.values, "the array")
                pairs = zip(images, names, strict=True)
                options = {"refined": refined, "background": backgrounds}
                return [decompose_tiles(self, image, tiling, name=name, **options) for image, name in pairs]
            batch = self.seen(self._batch(images))
            layers = self.explain(batch, None, training=False, refined=refined)
        except (MemoryError, RuntimeError) as failure:
            if isinstance(failure, RuntimeError) and "memory" not in str(failure):
                raise
            raise PcdnetError(f"there is not enough memory for {H}x{W} pixels; give smaller images") from None
        error = (layers.reconstruction - batch).square().sum(dim=(1, 2, 3))
        return _to_numpy(layers if backgrounds else replace(layers, own=None), error, names, self.config)


def _to_numpy(
    layers: Layers, error: Float[Tensor, "B"], names: Sequence[str], config: ModelConfig
) -> list[Decomposition]:
    where = layers.placement
    instances = layers.instances().cpu().numpy()
    pictures = layers.reconstruction.permute(0, 2, 3, 1).float().cpu().numpy()
    prototypes = where.prototype.int().cpu().numpy()
    positions, poses = upright_positions(where, config).cpu().numpy(), where.pose.float().cpu().numpy()
    colours, reductions = layers.colour.float().cpu().numpy(), where.error_reduction.float().cpu().numpy()
    counts = where.exists.sum(dim=1).tolist()
    own = None if layers.own is None else layers.own.permute(0, 2, 3, 1).float().contiguous().cpu().numpy()
    return [
        Decomposition(
            prototype_ids=prototypes[b, :n],
            positions=positions[b, :n],
            colours=colours[b, :n],
            error_reductions=reductions[b, :n],
            instances=instances[b],
            reconstruction=pictures[b],
            error=left,
            name=name,
            background=None if own is None else own[b],
            angles=poses[b, :n, ANGLE] % FULL_TURN if config.posed else None,
            scales=poses[b, :n, SCALE] if config.posed else None,
            mirrored=poses[b, :n, MIRRORED] > 0 if config.posed else None,
        )
        for b, (n, left, name) in enumerate(zip(counts, error.tolist(), names, strict=True))
    ]
