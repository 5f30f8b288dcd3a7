"""Engine: from a batch of images to objects and back to images, as tensors with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.abreast import Part, Result, abreast
from pcdnet.model.background import backgrounds
from pcdnet.model.background.flicker import steady
from pcdnet.model.bank import PrototypeBank, soft_clamp
from pcdnet.model.batch import check_batch
from pcdnet.model.colour import ColourNetwork, NetworkColours, Palette, least_squares_colours, network_colours
from pcdnet.model.composition import changed, compose, instance_labels
from pcdnet.model.depth import in_depth_order, selected_in_depth_order
from pcdnet.model.fidelity import unexplained_shares
from pcdnet.model.field import Field
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.peaks import Candidates
from pcdnet.model.placement import Placement, in_front, kept, reported, shifted, to_placement
from pcdnet.model.plan import PlanCache, SearchPlan
from pcdnet.model.poses.search import Look, PosedSearch
from pcdnet.model.poses.sprites import posed_sprites
from pcdnet.model.refinement import better, refine, unexplained
from pcdnet.model.selection import Selection, SelectionInput, replaced, select, subset
from pcdnet.model.sharing import WHOLE, Sharing
from pcdnet.model.windows import window_sums

DEEPER_PEAKS = 4
"""A badly explained image is searched again with this many times the peaks."""
INIT_GREY, INIT_CENTRE, INIT_MASK = 0.2, 1.0, 0.5
"""The paper's initial values: a bright centre pixel makes prototypes emerge in the middle of their frames."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A batch of images explained: objects front to back, and the images they make."""

    placement: Placement
    """Which objects, where; it carries no gradient."""
    colour: Float[Tensor, "B N C"]
    """The colour of every object."""
    reconstruction: Float[Tensor, "B C H W"]
    """The objects painted over the background."""
    masks: Float[Tensor, "B N h w"]
    """The alpha mask of every object, in its frame."""
    own: Float[Tensor, "B C H W"] | None = None
    """What is behind the objects of each image, where that differs from image to image."""
    seen: Float[Tensor, "1 1 H W"] | None = None
    """1 where objects can be seen, 0 where something always hides them; None stands for 1 everywhere."""
    bare: Float[Tensor, "b C H W"] | None = None
    """The pictures without objects, which pixels must differ from to be an object's; None if its mask says it all."""

    def instances(self) -> Int[Tensor, "B H W"]:
        """The object that each pixel belongs to: 0 is background, n + 1 the n-th object from the front."""
        (H, W), (h, w) = self.reconstruction.shape[-2:], self.masks.shape[-2:]
        labels = instance_labels(self.masks, self.placement.frames((H, W), (h, w)))
        if self.bare is not None:
            labels = labels * changed(self.reconstruction, self.bare, 1).to(labels)
        return labels if self.seen is None else labels * self.seen[0].to(labels)

    def inside(self, field: Field, outside: Float[Tensor, "b C H W"]) -> Layers:
        """Layers of a field as those of the whole images, of which the rest is `outside`."""
        placement = shifted(self.placement, field.top, field.left)
        painted, seen = field.around(self.reconstruction, outside), field.seen(self.seen, outside[0])
        return Layers(
            placement, self.colour, painted, self.masks, seen=seen, bare=None if self.bare is None else outside
        )


class Engine(nn.Module):
    """The search and the painting of PCDNet, for whoever works with tensors; users have `PCDNet`."""

    def __init__(self, config: ModelConfig, image_size: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.config = config
        P, (h, w) = config.num_prototypes, config.prototype_size
        prototypes = torch.full((P, h, w), INIT_GREY)
        prototypes[:, h // 2, w // 2] = INIT_CENTRE
        self.prototypes = nn.Parameter(prototypes)
        self.masks = nn.Parameter(torch.full((P, h, w), INIT_MASK))
        self.background: nn.Parameter | None = None
        if config.background in ("still", "moving"):
            if image_size is None:
                raise PcdnetError(
                    *(Setting("model.background", config.background), " needs the size of its picture; give "),
                    "image_size=(height, width)",
                )
            self.background = nn.Parameter(torch.zeros(config.channels, *image_size))
        self.ignored: Tensor | None
        still = config.background == "still" and image_size is not None
        self.register_buffer("ignored", torch.zeros(image_size or (), dtype=torch.bool) if still else None)
        self.hidden: Tensor | None
        self.register_buffer("hidden", torch.zeros(image_size or (), dtype=torch.bool) if still else None)
        self.seen_in: Tensor | None
        self.register_buffer("seen_in", torch.tensor([0, 0, *(image_size or ())]) if still else None)
        self.looks: Tensor | None
        self.register_buffer("looks", None)
        self.colour = ColourNetwork(config.channels) if config.colour == "network" else None
        self._plans, self._tile_plans = PlanCache(), PlanCache()

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Height and width that images must have; None where the background is not still, and so any size will do."""
        return self.weights().image_size if self.config.background == "still" else None

    @property
    def field(self) -> Field | None:
        """Where in the images things are seen at all; None stands for everywhere."""
        size = self.image_size
        if self.seen_in is None or size is None:
            return None
        found = Field(*self.seen_in.tolist())
        return None if found.size == size else found

    def seen(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """The images as they are searched and scored: the background in one of its looks is the background, and so is
        whatever is where nothing is looked for."""
        if self.background is None:
            return images
        background = self.background.detach().clamp(0, 1)
        if self.looks is not None:
            images = steady(images, self.looks, background)
        if self.ignored is None or not self.ignored.any():
            return images
        return torch.where(self.ignored, background, images)

    def own_backgrounds(
        self, images: Float[Tensor, "B C H W"], bank: PrototypeBank | None = None, sharing: Sharing = WHOLE
    ) -> Float[Tensor, "B C H W"] | None:
        """What is behind the objects of each image; None where it is the same for all, black or still."""
        return backgrounds(self.config.background, images, (bank or self.weights().clamped()).background, None, sharing)

    def weights(self) -> PrototypeBank:
        """The prototypes, masks and background as they are learned, unclamped."""
        return PrototypeBank(self.prototypes, self.masks, self.background)

    def bank(self) -> PrototypeBank:
        """The prototypes, masks and background as they are painted: clamped, with gradients."""
        return self.weights().map(soft_clamp) if self.training else self.weights().clamped()

    def plan(self, image_size: tuple[int, int]) -> SearchPlan:
        """How images of this size, or what of them is in the field, are searched in evaluation.

        It is derived once while the weights stay the same.
        """
        weights, field = self.weights(), self.field
        weights = weights if field is None else field.cut_bank(weights)
        return self._plans.get(weights, image_size, self.config, self.shown())

    def shown(self) -> Float[Tensor, "1 1 H W"] | None:
        """1 where objects of the field can be seen, 0 where something always hides them; None for 1 everywhere."""
        if self.hidden is None or not self.hidden.any():
            return None
        shown = (~self.hidden).to(self.masks)[None, None]
        return shown if self.field is None else self.field.cut(shown)

    def forward(
        self, images: Float[Tensor, "B C H W"], bank: PrototypeBank | None = None, sharing: Sharing = WHOLE
    ) -> Layers:
        """Explain images of values in [0, 1], with the model's own bank or another (a noisy one, in training).

        Gradients flow through what was chosen, into the bank and the colour network; the search has none. Where the
        images are a part of a batch, `sharing` says how.
        """
        return self.explain(images, bank, training=self.training, refined=not self.training, sharing=sharing)

    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank | None,
        *,
        training: bool,
        refined: bool,
        sharing: Sharing = WHOLE,
    ) -> Layers:
        """As `forward`, in training or in evaluation mode whatever mode the module is in, refined or plain greedy."""
        check_batch(images, self.config.channels)
        H, W = images.shape[-2:]
        self._check_size(H, W)
        images, field = self.seen(images), self.field
        if field is None:
            return self._explain_all(images, bank, training=training, refined=refined, sharing=sharing)
        whole = bank or (self.bank() if training else self.weights().clamped())
        inner = None if bank is None and not training and not torch.is_grad_enabled() else field.cut_bank(whole)
        layers = self._explain_all(field.cut(images), inner, training=training, refined=refined, sharing=sharing)
        return layers.inside(field, sharing.spread(whole.behind(images[0])[None]))

    def _explain_all(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank | None,
        *,
        training: bool,
        refined: bool,
        sharing: Sharing = WHOLE,
    ) -> Layers:
        """Explain all that is in the images; a bank of None is the model's own in evaluation, without gradients."""
        (H, W), shown = images.shape[-2:], self.shown()
        if shown is not None:
            images = images * shown
        if bank is None and not training:
            plan = self.plan((H, W))
            bank = plan.bank if shown is None and not torch.is_grad_enabled() else self._whole_bank()
        else:
            bank = bank or self.bank()
            dense = training and not self.config.sparse_training
            config = replace(self.config, min_error_reduction=0.0) if dense else self.config
            plan = SearchPlan.derive(bank, (H, W), config, shown)
        own = self.own_backgrounds(images, bank, sharing)
        twice = self.config.background == "plain" and not training
        first = refined and not (twice and plan.config.posed)  # of poses, what hides the ground is known well enough
        layers = self._explain(images, bank, own, plan, training=training, refined=first, sharing=sharing)
        if self.config.background != "plain" or training:
            return layers
        # Objects that cover much of an image bend the surface a little: without them it is straight.
        own = backgrounds("plain", images, None, replace(layers, bare=None).instances() > 0)
        known = layers.placement if plan.config.posed else None
        return self._explain(images, bank, own, plan, training=training, refined=refined, known=known)

    def _whole_bank(self) -> PrototypeBank:
        """The bank as it is painted in evaluation, with all of the field's background."""
        bank, field = self.weights().clamped(), self.field
        return bank if field is None else field.cut_bank(bank)

    def where_seen(self) -> Float[Tensor, "1 H W"] | None:
        """1 where objects can be seen in images, 0 around the field and where something hides them; None for all 1."""
        field, shown = self.field, self.shown()
        if field is None or self.background is None:
            return None if shown is None else shown[0]
        return field.seen(shown, self.background.detach())[0]

    @torch.no_grad()
    def look_as(self, other: Engine) -> None:
        """Look at images as another model of the same background does: what is ignored, hidden, around the field."""
        for name in ("ignored", "hidden", "seen_in"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
        self.looks = other.looks

    def tile_plan(self, size: tuple[int, int], config: ModelConfig) -> SearchPlan:
        """How tiles of large pictures are searched; `config` has limits that follow their size."""
        return self._tile_plans.get(self.weights(), size, config)

    def each(self, work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """What is done for each of some parts, in their order; side by side where threads have nothing else to share.

        Objects in poses are searched for by many small operations.
        """
        side_by_side = self.config.posed and self.prototypes.device.type == "cpu"
        return abreast(work, parts) if side_by_side else map(work, parts)

    @torch.no_grad()
    def search(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        refined: bool,
    ) -> Placement:
        """The objects of images over given backgrounds, by a plan of evaluation; nothing is painted."""
        check_batch(images, self.config.channels)
        return self._place(images, own, plan, training=False, refined=refined)

    def _explain(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank,
        own: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        training: bool,
        refined: bool,
        sharing: Sharing = WHOLE,
        known: Placement | None = None,
    ) -> Layers:
        with torch.no_grad():
            placement = self._place(images, own, plan, training=training, refined=refined, known=known)
        return self._paint(images, bank, own, placement, plan.seen, sharing)

    def _check_size(self, H: int, W: int) -> None:
        size = self.weights().image_size
        if size is None:
            return
        if self.config.background == "still" and size != (H, W):
            raise PcdnetError(
                f"images of {H}x{W} do not fit the background of {size[0]}x{size[1]}; resize or crop them to it"
            )
        if size[0] < H or size[1] < W:
            raise PcdnetError(f"images of {H}x{W} are larger than the background, {size[0]}x{size[1]}; crop them")

    def _paint(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank,
        own: Float[Tensor, "B C H W"] | None,
        where: Placement,
        seen: Float[Tensor, "1 1 H W"] | None,
        sharing: Sharing = WHOLE,
    ) -> Layers:
        """Colour and paint the placed objects, with gradients where they are on; what hides them stays as it is."""
        # A product with one-hot rows: its gradient is a matrix product too, not a slow scatter.
        ids = sharing.gathered(where.prototype).clamp(min=0)
        chosen = nn.functional.one_hot(ids, len(bank.prototypes)).to(images.dtype)
        chosen = chosen * sharing.gathered(where.exists)[..., None] if in_lockstep(chosen) else chosen
        prototypes, masks = (
            sharing.own(torch.einsum("bnp,phw->bnhw", chosen, x)) for x in (bank.prototypes, bank.masks)
        )
        if where.pose.shape[-1] > 0:
            prototypes, masks = posed_sprites(prototypes, masks, where, self.config)
        frames = where.frames((images.shape[-2], images.shape[-1]), (masks.shape[-2], masks.shape[-1]))
        colour, config = where.colour, self.config
        behind = bank.behind(images[0])[None] if own is None else own
        # Apart for each use, so that what flows back is summed in the order of a batch that nobody shares.
        ours = sharing.spread if own is None else (lambda each: each)
        if torch.is_grad_enabled() and config.colour != "none":  # as selection found them, now with gradients
            if self.colour is not None:
                colour = network_colours(images, masks, frames, self.colour, sharing)
            else:
                under = None if config.background == "black" else behind
                colour = least_squares_colours(images, under, prototypes, masks, frames, config.max_colour, seen)
        painted = compose(prototypes, masks, colour, frames, ours(behind))
        painted = painted if seen is None else torch.where(seen > 0, painted, ours(behind))
        own, bare = None if own is None else own.detach(), behind.detach() if config.labels == "change" else None
        return Layers(where, colour, painted, masks, own, seen, bare)

    def _place(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        training: bool,
        refined: bool,
        known: Placement | None = None,
    ) -> Placement:
        """The objects of images, in the poses that they may have; of these the search begins with those `known`."""
        if plan.config.posed:
            return self._place_posed(images, own, plan, training=training, refined=refined, known=known)
        return self._place_upright(images, own, plan, training=training, refined=refined)

    def _place_upright(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        training: bool,
        refined: bool,
    ) -> Placement:
        """Search: candidates, greedy selection and, where it left an error, refinement and further rounds.

        Before anything is added, and at the end, objects that overlap come into their order: in a wrong one they leave
        an error that something else would be found for.
        """
        given = self.selection_input(images, plan, plan.config.peaks_per_prototype, own, training=training)
        selection = select(given, advantages=training)
        selection = self._in_order(given, selection) if refined else selection
        placement = to_placement(given, selection)
        if refined and plan.config.restarts > 0:
            placement = self._refined(given, selection, placement)
        for _ in range(0 if training else plan.config.rounds - 1):  # what noise on the bank leaves is no object
            more = self._search_again(given, placement)
            if more is placement:
                break
            ordered = refined and plan.config.depth_order
            placement = in_depth_order(images, given.behind(), plan, more) if ordered else more
        return placement if training else self._reported(given, placement)

    def look(self, plan: SearchPlan, *, training: bool, refined: bool) -> Look:
        """How images are searched for objects in poses, by the plan of the upright bank."""
        search = plan.derived.get("posed search")
        if search is None:
            search = PosedSearch.derive(plan)
            if not training:  # where every step has a bank of its own
                plan.derived["posed search"] = search

        def palette(shown: Tensor, plan: SearchPlan, candidates: Candidates) -> Palette:
            return self._palette(shown, plan, candidates, training=training)

        def paint(shown: Tensor, behind: Tensor | None, where: Placement) -> Tensor:
            return self._paint(shown, plan.bank, behind, where, plan.seen).reconstruction

        return Look(search, palette, paint, training, refined)

    def _place_posed(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        training: bool,
        refined: bool,
        known: Placement | None,
    ) -> Placement:
        """The same for objects that have poses.

        Where nothing lies between the coarse poses, every prototype in every pose is searched for like one of its own.
        """
        look, own = self.look(plan, training=training, refined=refined), None if own is None else own.detach()
        search = look.search
        if search.variants is None:
            found = look.placed(images, own, known)
        else:
            modes = {"training": training, "refined": refined}
            variants = self._place_upright(images, own, search.variants.plan, **modes)
            found = look.improved(images, own, search.variants.as_posed(variants))
        behind = plan.bank.behind(images[0]).expand_as(images) if own is None else own
        return found if training else self._faithful(images, own, behind, plan, found)

    def _reported(self, given: SelectionInput, placement: Placement) -> Placement:
        """The objects that count: those that the border does not cut off, and that explain what they cover."""
        return self._faithful(given.images, given.own, given.behind(), given.plan, reported(placement, given.plan))

    def _faithful(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        behind: Float[Tensor, "B C H W"],
        plan: SearchPlan,
        placement: Placement,
    ) -> Placement:
        """The objects that leave no more of the error where they are seen than they may."""
        if plan.config.max_unexplained == 1:
            return placement
        layers = self._paint(images, plan.bank, own, placement, plan.seen)
        left = unexplained_shares(images, layers.reconstruction, behind, layers.instances(), placement.exists.shape[1])
        return kept(placement, placement.exists & (left <= plan.config.max_unexplained))

    def _in_order(self, given: SelectionInput, selection: Selection) -> Selection:
        """Objects that overlap in the order that the pixels they share speak for, if that is asked for."""
        return selected_in_depth_order(given, selection) if given.plan.config.depth_order else selection

    def _refined(self, given: SelectionInput, selection: Selection, placement: Placement) -> Placement:
        """Search the images that greedy selection explains badly with more peaks, sweeps and restarts."""
        open_images = unexplained(given, selection)
        if len(open_images) == 0:
            return placement
        own = None if given.own is None else given.own[open_images]
        peaks = DEEPER_PEAKS * given.plan.config.peaks_per_prototype
        deeper = self.selection_input(given.images[open_images], given.plan, peaks, own)
        start = self._in_order(deeper, select(deeper))
        again = refine(deeper, start, given.plan.config.restarts)
        changed = (again.candidate != start.candidate).any(dim=1).nonzero()[:, 0]
        if len(changed):
            again = replaced(again, changed, self._in_order(deeper.subset(changed), subset(again, changed)))
        found, which = to_placement(deeper, again), better(again, subset(selection, open_images)).nonzero()[:, 0]
        return replaced(placement, open_images[which], subset(found, which))

    def _search_again(self, given: SelectionInput, placement: Placement) -> Placement:
        """Search once more where something is left over and objects may be added; they come in front of the others."""
        images, plan = given.images, given.plan
        painted = self._paint(images, plan.bank, given.own, placement, plan.seen).reconstruction
        room = placement.exists.sum(1) < placement.exists.shape[1]
        # No object reduces the error by more than what is left in its window.
        most = window_sums((painted - images).square().sum(1), plan.geometry.frame).flatten(1).amax(1)
        image = (room & (most >= self.config.min_error_reduction)).nonzero()[:, 0]
        if len(image) == 0:
            return placement
        left = self.selection_input(images[image], plan, plan.config.peaks_per_prototype, painted[image])
        found = to_placement(left, select(left))
        return replaced(placement, image, in_front(found, subset(placement, image)))

    def selection_input(
        self,
        images: Float[Tensor, "B C H W"],
        plan: SearchPlan,
        peaks: int,
        own: Float[Tensor, "B C H W"] | None = None,
        *,
        training: bool = False,
    ) -> SelectionInput:
        """What selection chooses from: the candidates of a plan in the images, and how they are coloured.

        `own` are backgrounds of the images other than the bank's.
        """
        own = None if own is None else own.detach()
        candidates = plan.candidates(images, peaks, own)
        palette = self._palette(images, plan, candidates, training=training)
        return SelectionInput(images, plan, candidates, palette, plan.min_visible_area(candidates), own)

    def _palette(
        self, images: Float[Tensor, "B C H W"], plan: SearchPlan, candidates: Candidates, *, training: bool
    ) -> Palette:
        """How candidates are coloured."""
        if self.colour is not None and not training:
            return NetworkColours(self.colour, images, plan, candidates)
        # In training the closed form chooses for the network too: one that knows no colours yet would find that
        # nothing explains anything, and so never learn any.
        return Palette(None if self.config.colour == "none" else self.config.max_colour)
