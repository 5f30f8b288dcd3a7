"""Relearning: a run learns again from what people corrected, for a short time, into a candidate inside its folder.

The candidate is a run of its own. Until it is adopted the run stays as it is, to the byte.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcdnet.config import Config
from pcdnet.corrections import Drawn
from pcdnet.data.opening import open_data, split_scenes, to_scenes, training_data
from pcdnet.data.sources import TRAINING_SEED, VALIDATION_SEED, is_generated
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import content_of, sealed_json, sealed_toml, text_of, unsealed_json, whole_file
from pcdnet.history import is_number
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import CONFIG, WEIGHTS
from pcdnet.names import Names
from pcdnet.run import STATE, RunFolder
from pcdnet.scene import Scenes
from pcdnet.succession import CANDIDATE, discard
from pcdnet.training.correction import Correction, correct
from pcdnet.training.diagnosis import diagnose
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress
from pcdnet.training.verdict import Verdict

FILE, FORMAT = "learning.json", "pcdnet-learning-1"
"""The file of a candidate that says that it is whole, and the schema of it."""
MINUTES = 1.0
"""How long training takes where nobody says otherwise."""
STEPS, LEARNING_RATE = 400, 0.5
"""Steps at most, and the share of the first training's learning rate that they begin with."""
SCENES, MEASURED = 4000, 64
"""Scenes that are learned from at most, and images that before and after are measured on."""

_LARGEST_WEIGHTS = 2**31  # bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """How well a model explains images that were not learned from."""

    mse: float
    """Mean squared error of a pixel and channel."""
    explained: float
    """Share of the squared error of what stands out that the objects remove."""
    objects: float
    """Mean number of objects in an image."""
    prototypes: int
    """Prototypes in the bank."""
    f1: float | None
    """Detection F1 by place, where the ground truth is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """What learning again made of a run."""

    before: Measured
    """The run as it is."""
    after: Measured
    """The candidate."""
    reasons: tuple[str, ...]
    """What was changed, in words."""
    numbers: Mapping[int, int]
    """The new numbers of the prototypes that stayed, by the former ones."""
    shift: tuple[int, int]
    """What is added to the positions of edited objects, as frames may have grown."""

    def __str__(self) -> str:
        pair = self.before, self.after
        parts = [f"explained {' -> '.join(f'{100 * each.explained:.1f} %' for each in pair)}"]
        parts += [f"error {' -> '.join(f'{each.mse:.2g}' for each in pair)}"]
        if None not in (self.before.f1, self.after.f1):
            parts.insert(0, f"F1 {' -> '.join(f'{each.f1:.3f}' for each in pair)}")
        return "  ".join([*parts, f"prototypes {self.before.prototypes} -> {self.after.prototypes}"])


def learn_again(
    run: RunFolder | str | Path,
    drawn: Sequence[Drawn] = (),
    removed: Collection[int] = (),
    *,
    minutes: float = MINUTES,
    data: str | Path | NDArray[np.generic] | Scenes | None = None,
    kept: bool = True,
    device: str = "cpu",
    quiet: bool = False,
    watch: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Learned:
    """Correct a run's model and train it for a short time; the run itself stays as it is until that is adopted.

    A drawn box becomes a prototype; frames, the number of objects and the smallest error reduction follow. Prototypes
    that have one name stay apart, and are one kind.

    Parameters
    ----------
    run
        The run, or its folder. The models of the package are never changed: learn again from a copy.
    drawn
        Boxes around things that the model misses, or mistakes for others.
    removed
        Prototypes that are no objects.
    minutes
        Time for training.
    data
        What to learn from; by default what the run learned from.
    kept
        Whether the corrections that are kept with the run, those made in the browser, count as well.
    device
        Where to compute: `cpu`, `cuda`, ...
    quiet
        Show no progress.
    watch
        Called with the progress every now and then.
    stop
        Asked after every step; when it says True, learning ends with `Interrupted`.

    Returns
    -------
    Learned
        How well images that were not learned from are explained before and after; `pcdnet.adopt` makes it the run's
        model, and `pcdnet.load(run.candidate)` is that model until then.

    Examples
    --------
    >>> import pcdnet
    >>> pcdnet.learn_again("tetrominoes", removed=[3])
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: ... comes with pcdnet and stays as it is; ...
    """
    run = RunFolder.open(run)
    run.check_changeable()
    if not minutes > 0:
        raise PcdnetError(Setting("minutes", minutes), " is no time to learn in; give more than 0")
    with RunFolder.locked(run.path):
        discard(run.path, CANDIDATE)
        corrections = run.corrections
        boxes = [*drawn, *(corrections.load() if kept else ())]
        gone = {*removed, *(corrections.removed() if kept else ())}
        former = run.load_model(device)
        scenes, valid = _scenes(run, data)
        valid = valid.part(slice(None, None, -(-len(valid) // MEASURED)))
        correction = correct(former, boxes, gone, scenes.images)
        before = measure(former, valid)
        start = correction.model
        config = _config(run.config, start)
        best = fit(
            _with_drawn(scenes, boxes),
            config,
            validation=valid,
            view=View(tiles=0),
            start=start,
            out=run.path / CANDIDATE,
            minutes=minutes,
            device=device,
            quiet=quiet,
            watch=watch,
            stop=stop,
        )
        best.values, best.learned_size = former.values, former.learned_size
        judged = RunFolder.at(run.path / CANDIDATE).verdict()  # by the same images
        assert judged is not None, "training ends with it"
        learned = Learned(
            before=before,
            after=_as_measured(Verdict.from_json(judged).figures, best, valid),
            reasons=correction.reasons,
            numbers=correction.numbers,
            shift=correction.shift,
        )
        _finish(run, best, learned, correction)
        return learned


def measure(model: PCDNet, scenes: Scenes) -> Measured:
    """How well a model explains some scenes."""
    return _as_measured(dataclasses.asdict(diagnose(model, scenes.images)), model, scenes)


def _as_measured(figures: Mapping[str, Any], model: PCDNet, scenes: Scenes) -> Measured:
    known = scenes.boxes is not None or scenes.labels is not None
    return Measured(
        mse=figures["error"],
        explained=figures["explained"],
        objects=figures["objects"],
        prototypes=figures["prototypes"],
        f1=evaluate(model, scenes).f1 if known else None,
    )


def candidate_of(run: RunFolder) -> Learned | None:
    """What waits to be adopted by a run; None where nothing does, or what does is about another model."""
    path = run.path / CANDIDATE / FILE
    if not path.is_file():
        return None
    try:
        base, learned = learned_from(text_of(content_of(path)))
        return learned if base == _digest(run.path) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PcdnetError(f"cannot read {path}: {reason}; learn again") from None


def adopt(run: RunFolder | str | Path) -> Path:
    """Have the candidate take the place of a run's model; where the former one is kept.

    Names that were given meanwhile stay, and edits are taken over: objects of removed prototypes are lost in them, but
    not in what is kept. `restore` takes it back.

    Parameters
    ----------
    run
        The run, or its folder.

    Returns
    -------
    Path
        The folder inside the run in which the former model is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     adopt(RunFolder.open("tetrominoes").copy(f"{folder}/mine"))
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: nothing waits to be adopted in ...; learn again first
    """
    run = RunFolder.open(run)
    run.check_changeable()
    with RunFolder.locked(run.path):
        learned = candidate_of(run)
        if learned is None:
            raise PcdnetError(f"nothing waits to be adopted in {run.path}; learn again first")
        place = run.path / CANDIDATE
        candidate = RunFolder.at(place)
        shutil.rmtree(candidate.edits.folder, ignore_errors=True)
        run.edits.renumbered(dict(learned.numbers), learned.shift, candidate.edits.folder)
        _with_names_of(candidate.names(), run.names(), dict(learned.numbers)).write(place)
        return run.succeed(CANDIDATE)


def restore(run: RunFolder | str | Path) -> Path:
    """Take the last adoption back: the former model, its names and its edits return; where the present one is kept.

    Parameters
    ----------
    run
        The run, or its folder.

    Returns
    -------
    Path
        The folder inside the run in which the present model is from now on; restoring once more brings it back.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     restore(RunFolder.open("tetrominoes").copy(f"{folder}/mine"))
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: ... has no former model; nothing was adopted
    """
    run = RunFolder.open(run)
    run.check_changeable()
    with RunFolder.locked(run.path):
        formers = run.formers()
        if not formers:
            raise PcdnetError(f"{run.path} has no former model; nothing was adopted")
        return run.succeed(formers[-1].relative_to(run.path).as_posix())


def _config(config: Config, start: PCDNet) -> Config:
    """A short training from a bank that is nearly right: without its first noise, and without resets."""
    train = config.train
    return dataclasses.replace(
        config,
        model=start.config,
        train=dataclasses.replace(
            train,
            steps=min(train.steps, STEPS),
            learning_rate=LEARNING_RATE * train.learning_rate,
            noise_steps=0,
            reset_every=0,
            settle=False,
            cooldown=max(train.cooldown, 0.5),
            validate_every=max(1, min(train.steps, STEPS) // 4),
        ),
    )


def _scenes(run: RunFolder, data: str | Path | NDArray[np.generic] | Scenes | None) -> tuple[Scenes, Scenes]:
    """Scenes to learn from and, apart from them, to measure on; generated ones are few."""
    data = run.data if data is None else data
    seed = run.config.train.seed
    if not isinstance(data, str | Path):
        return split_scenes(to_scenes(data, view=run.view_of(None)))
    view = run.view_of(str(data))
    if is_generated(data):
        counts = ((SCENES // 4, TRAINING_SEED), (MEASURED, VALIDATION_SEED))
        train, valid = (open_data(data, count=count, seed=start + seed, view=view) for count, start in counts)
    else:
        train, valid = training_data(data, seed=seed, view=view)
    return train.part(slice(None, None, -(-len(train) // SCENES))), valid


def _with_drawn(scenes: Scenes, drawn: Sequence[Drawn]) -> Scenes:
    """The scenes, and the pictures with boxes that are as large: they may be others than those of the run."""
    shape = scenes.images.shape[1:]
    own = [each.image for each in drawn if each.image.shape == shape]
    if not own or not isinstance(scenes.images, np.ndarray):
        return dataclasses.replace(scenes.part(slice(None)), labels=None, boxes=None)
    images = np.concatenate([scenes.images, np.stack(own)])
    return Scenes(images=images, name=scenes.name)


def _finish(run: RunFolder, best: PCDNet, learned: Learned, correction: Correction) -> None:
    """Make the candidate a run like the one that it came from; the last file says that it is whole."""
    place = run.path / CANDIDATE
    candidate = RunFolder.at(place).with_origin(run.origin)
    config = dataclasses.replace(run.config, model=best.config)
    with whole_file(place / CONFIG, "make room", durable=True) as file:
        file.write(sealed_toml(config.to_toml() if run.has_origin else config.to_toml("model")).encode())
    candidate.save_weights(best, settled=True)
    (place / STATE).unlink(missing_ok=True)
    words = {"format": FORMAT, "base": _digest(run.path), **dataclasses.asdict(learned)}
    words["numbers"] = sorted(correction.numbers.items())
    with whole_file(place / FILE, "make room", durable=True) as file:
        file.write(sealed_json(json.dumps(words, indent=1) + "\n").encode())


def _with_names_of(candidate: Names, present: Names, numbers: dict[int, int]) -> Names:
    """The candidate's names, but those of the prototypes that stayed are what they are called by now."""
    stayed, count = set(numbers.values()), len(candidate)
    now = present.renumbered(numbers, count)
    new = {p: name for p, name in candidate.given.items() if p not in stayed}
    return dataclasses.replace(candidate, given={**now.given, **new}, hidden=now.hidden)


def _digest(folder: Path) -> str:
    """What tells a model from others."""
    return hashlib.sha256(content_of(folder / WEIGHTS, _LARGEST_WEIGHTS)).hexdigest()


def learned_from(text: str) -> tuple[str, Learned]:
    """What a candidate says of itself: the digest of the weights that it came from, and what was learned.

    What nobody wrote is one of the errors of Python's own types.
    """
    words = json.loads(unsealed_json(text))
    if not isinstance(words, dict) or words.get("format") != FORMAT or not isinstance(words["base"], str):
        raise ValueError("it is none that learning again made")
    pair = [_measured(words[name]) for name in ("before", "after")]
    numbers, shift, reasons = words["numbers"], words["shift"], words["reasons"]
    if not isinstance(reasons, list) or not all(isinstance(each, str) for each in reasons):
        raise ValueError("it has no reasons")
    if not all(type(p) is int and type(n) is int and min(p, n) >= 0 for p, n in numbers):
        raise ValueError("it does not say what prototypes became")
    if len(shift) != 2 or not all(type(each) is int for each in shift):
        raise ValueError("it does not say how frames grew")
    return words["base"], Learned(
        before=pair[0], after=pair[1], reasons=tuple(reasons), numbers=dict(numbers), shift=(shift[0], shift[1])
    )


def _measured(words: dict[str, Any]) -> Measured:
    if words.keys() != {each.name for each in dataclasses.fields(Measured)}:
        raise ValueError("it has lost figures")
    for name, value in words.items():
        if not (value is None and name == "f1") and not is_number(value):
            raise ValueError(f"{name} is {value!r:.40}")
    return Measured(**words)
