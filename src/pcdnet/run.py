"""Run: the folder of a training, and the one owner of every file in it.

    config.toml           what was trained
    origin.json           on which data, looked at how, and for how long
    weights.safetensors   the best model so far, by validation
    state.safetensors     the last model with all that is needed to go on exactly as if nothing had happened
    metrics.jsonl         a line for every report, validation and reset of a prototype, each with its checksum
    names.toml            what people call the prototypes, and the distinct colours that they come in
    verdict.json          whether training worked, and why
    report.html           the report
    tensorboard/          event files, where they were asked for
    train.lock            there while a process trains
    edits/                scenes that people corrected in the browser, a file a picture
    corrections/          boxes that they drew and prototypes that they removed, to learn again from
    candidate/, former/   what learning again made, and the models before; see `succession`

Each file is written whole under another name and then renamed, so a run that is killed at any moment can be resumed.
Each carries a checksum, so what a disk or a careless copy did to it is found when it is read. Nothing is a pickle.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pcdnet import history, trained
from pcdnet.config import FIELDS, PRESETS, Config, ModelConfig, checked_value, flags
from pcdnet.corrections import FOLDER as CORRECTIONS
from pcdnet.corrections import Corrections
from pcdnet.data.notes import to_stderr
from pcdnet.data.opening import held_out_data, open_data, training_data
from pcdnet.data.sources import TEST_SEED, is_generated
from pcdnet.data.strip import Strip, open_strip
from pcdnet.data.view import UNCHANGED, View
from pcdnet.edits import FOLDER as EDITS
from pcdnet.edits import Edits
from pcdnet.errors import PcdnetError, Setting, Unwritable
from pcdnet.files import PARTIAL, added_to, content_of, lock, sealed_toml, text_of, whole_file
from pcdnet.files import folder as made
from pcdnet.hub import VERDICT as VERDICT
from pcdnet.hub import check_kept, fetched, is_address, is_kept
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import CONFIG, WEIGHTS, checked_device, fill, load_tensors, load_words, save_tensors
from pcdnet.names import FILE as NAMES
from pcdnet.names import Names
from pcdnet.origin import FILE as ORIGIN
from pcdnet.origin import Origin, in_words, numbers, size_in
from pcdnet.scene import Scenes
from pcdnet.succession import ADOPTING, CANDIDATE, FORMER, complete, formers, succeed

STATE, METRICS, LOCK = "state.safetensors", "metrics.jsonl", "train.lock"
REPORT, TENSORBOARD = "report.html", "tensorboard"
FILES = (CONFIG, ORIGIN, WEIGHTS, STATE, METRICS, NAMES, VERDICT, REPORT)
"""The files of a run; beside them there may be the folders below."""
FOLDERS = (TENSORBOARD, EDITS, CORRECTIONS, CANDIDATE, FORMER)
"""The folders that a run may have."""
MODEL_FILES, MODEL_FOLDERS = (CONFIG, WEIGHTS, STATE, METRICS, NAMES, VERDICT, REPORT), (EDITS, CORRECTIONS)
"""What goes with a model when another takes its place; where it learned from stays."""
HELD_OUT = 1000
"""Scenes that a run is scored on by default, at most."""
SETTLED = "prototypes"
"""What the weights say of a settled bank: the fields below."""
SETTLES = ("num_prototypes", "max_unexplained")
"""Fields of the model's configuration that are settled at the end of training."""
LINES, IMAGES = "lines", "images"
"""What a state says of other files: how many lines of metrics there were then, and the fingerprint of the images."""
WORDS = {"state", "values", "size", SETTLED, LINES, IMAGES}
"""All that files of weights and states note beside their tensors."""
GO_ON = Setting("resume", True)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one training.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = RunFolder.create(folder, Config(), Origin(data="tetrominoes"), force=False)
    ...     run.command()
    'pcdnet train ...'
    """

    path: Path
    """Where it is."""
    config: Config
    """What is trained in it."""
    origin: Origin
    """What it was trained on, as far as that is known; of a model that was saved from Python nothing is."""

    @staticmethod
    def check_free(path: str | Path, *, force: bool = False) -> Path:
        """The path, if a run may be started there; worth asking before the work begins.

        A folder that holds anything is refused, unless it holds a run and `force` is set. What a start leaves that was
        killed before the run was one does not count.
        """
        path = Path(path)
        trained.check_own(path)
        names = _names_in(path)
        if not names or (names <= {CONFIG, ORIGIN} and not (path / CONFIG).exists()):
            return path
        if not force:
            raise PcdnetError(
                f"{path} is in use; set ",
                *(GO_ON, " to go on, ", Setting("force", True), " to start anew, or choose another ", Setting("out")),
            )
        if CONFIG not in names and not names <= {*FILES, *FOLDERS, ADOPTING}:
            raise PcdnetError(
                f"{path} holds other things than a run, so ",
                *(Setting("force", True), " does not touch it; choose another ", Setting("out")),
            )
        return path

    @staticmethod
    def check_idle(path: str | Path) -> None:
        """Refuse a folder in which another process trains just now."""
        if (Path(path) / LOCK).exists():
            with RunFolder.locked(path):
                pass

    @staticmethod
    def locked(path: str | Path) -> AbstractContextManager[None]:
        """Keep every other training out of a folder, which is made if need be, for as long as the block takes."""
        return lock(made(path) / LOCK)

    @staticmethod
    def create(path: str | Path, config: Config, origin: Origin, *, force: bool = False) -> RunFolder:
        """Start a run; a folder that holds one already is only overwritten with `force`, and then wholly."""
        path = Path(path)
        RunFolder.check_free(path, force=force)
        run = RunFolder(made(path), config, origin)
        try:
            for name in FILES:
                for former in (path / name, path / f"{name}{PARTIAL}"):
                    former.unlink(missing_ok=True)
            (path / ADOPTING).unlink(missing_ok=True)
            for name in FOLDERS:
                shutil.rmtree(path / name, ignore_errors=True)
        except OSError as error:
            reason = error.strerror or error
            raise Unwritable(f"cannot write the run {path}: {reason}; choose another ", Setting("out")) from None
        # The configuration comes last: a folder without one is no run, and so is never taken for one half made.
        run._write(ORIGIN, origin.to_json(), "choose another ", Setting("out"))
        run._write(CONFIG, sealed_toml(config.to_toml()), "choose another ", Setting("out"))
        return run

    @staticmethod
    def open(path: str | Path | RunFolder) -> RunFolder:
        """An existing run, a model that was saved from Python, one that comes with the package, or one of the Hub.

        That of the package goes by its name, that of the Hub by its address, `hf:owner/name` or with a revision behind
        it, `hf:owner/name@revision`. A run that is open already stays so. A folder of the name of a trained
        model comes first if it is a run.
        """
        if isinstance(path, RunFolder):
            return path
        if is_address(path):
            return RunFolder.at(fetched(Path(path).as_posix()))
        path = Path(path)
        if str(path) in trained.NAMES and not _is_run(path):
            return RunFolder.at(trained.HOME / path)
        return RunFolder.at(path)

    @staticmethod
    def at(path: str | Path) -> RunFolder:
        """The run in this very folder."""
        path = Path(path)
        if not _is_run(path):
            raise PcdnetError(
                f"{path} is no run: it holds no {CONFIG}; give a folder that training or `save` made, or the name of a "
                f"trained model ({', '.join(trained.NAMES)})"
            )
        complete(path, MODEL_FILES, MODEL_FOLDERS)
        origin = Origin()
        if (path / ORIGIN).is_file():
            try:
                origin = Origin.from_json(text_of(content_of(path / ORIGIN)))
            except (OSError, ValueError, RecursionError, PcdnetError) as error:
                reason = getattr(error, "strerror", None) or error
                raise PcdnetError(
                    f"cannot read {path / ORIGIN}: {reason}; delete it, and name the data with ", Setting("data")
                ) from None
        # A model that was saved from Python has no other section than `model`; a training has all of them.
        whole = any((path / name).exists() for name in (ORIGIN, STATE, METRICS))
        sections = ("model", "loss", "train") if whole else ("model",)
        return RunFolder(path, Config.load(path / CONFIG, complete=sections), origin)

    @property
    def has_origin(self) -> bool:
        """Whether it is known how the images were looked at; that of a saved model, or one that is gone, is not."""
        return (self.path / ORIGIN).is_file()

    def check_same(self, fingerprint: str) -> None:
        """Refuse to go on with other images than those that were learned from: the best so far was best on these."""
        former = self.origin.fingerprint
        with suppress(PcdnetError, ValueError):  # an origin may be gone; a damaged state is for others to report
            former = former or (_noted(load_words(self.path / STATE), IMAGES) if self.has_state else None)
        if former not in (None, fingerprint):
            then, now = in_words(former), in_words(fingerprint)
            found = "others, as many and as large" if then == now else now
            raise PcdnetError(
                f"{self.path} learned from {then}, and these are {found}; name the same images with ",
                *(Setting("data"), ", or start another run with another ", Setting("out")),
            )

    def with_origin(self, origin: Origin) -> RunFolder:
        """The run from now on with this origin: resumed, it may have its data in another place, or more time."""
        self._write(ORIGIN, origin.to_json())
        return dataclasses.replace(self, origin=origin)

    @property
    def has_weights(self) -> bool:
        """Whether there is a model yet."""
        return (self.path / WEIGHTS).is_file()

    @property
    def has_state(self) -> bool:
        """Whether there is something to go on from."""
        return (self.path / STATE).is_file()

    @property
    def report(self) -> Path:
        """Where the report is, or will be; that of a model that stays as it is is written where the user is."""
        return self.path / REPORT if self.changeable == self.path else Path(f"{self.path.name}-{REPORT}")

    @property
    def changeable(self) -> Path:
        """Its folder or, of a model that stays as it is, the folder in which a copy of it would be changed."""
        return Path("runs", self.path.name) if self.is_trained or is_kept(self.path) else self.path

    @property
    def is_trained(self) -> bool:
        """Whether this is a model that comes with the package, which stays as it is."""
        return trained.is_trained(self.path)

    @property
    def is_changeable(self) -> bool:
        """Whether it is the user's own, and no model that stays as it is."""
        return not (self.is_trained or is_kept(self.path))

    def check_changeable(self) -> None:
        """Refuse to write into a model that stays as it is: one of the package, or the copy of one of the Hub."""
        trained.check_own(self.path)
        check_kept(self.path)

    @property
    def samples(self) -> Path | None:
        """Pictures to try it on that come with a trained model; None of any other run."""
        return trained.HOME / self.path.name / trained.SAMPLES if self.is_trained else None

    def copy(self, to: str | Path) -> RunFolder:
        """A copy of the run in another folder, which must be free, without what training needs to go on.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RunFolder.open("tetrominoes").copy(f"{folder}/mine").is_trained
        False
        """
        to = RunFolder.check_free(to)
        # The configuration comes last: a folder without one is no run.
        for name in (ORIGIN, NAMES, VERDICT, METRICS, WEIGHTS, CONFIG):
            if (self.path / name).is_file():
                with whole_file(made(to) / name, "choose another ", Setting("out"), durable=True) as file:
                    file.write(content_of(self.path / name))
        return RunFolder.at(to)

    @property
    def data(self) -> str:
        """The name or path of the data that it was trained on; where that is not known, whoever asks must name some."""
        if self.origin.data is None:
            reason = "the images were given in Python" if self.has_origin else f"it has no {ORIGIN}"
            raise PcdnetError(
                f"{self.path} does not say which data it was trained on, as {reason}; name what to use with ",
                Setting("data"),
            )
        return self.origin.data

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Height and width of the images that it was trained on, as far as that is known."""
        if self.origin.size is not None or self.origin.data is None or not is_generated(self.origin.data):
            return self.origin.size
        H, W = self.held_out(count=1).images.shape[1:3]
        return H, W

    def load_model(self, device: str = "cpu") -> PCDNet:
        """The best model so far, in evaluation mode, with the names of its prototypes."""
        target, weights = checked_device(device), self.path / WEIGHTS
        if not self.has_weights:
            raise PcdnetError(f"{self.path} has no weights yet; train it to its first validation with ", GO_ON)
        tensors, words = load_tensors(weights)
        config, background = self.model_config, tensors.get("background")
        try:
            values, size = numbers(_noted(words, "values"), 2), size_in(_noted(words, "size"))
            expected = config.num_prototypes, *config.prototype_size
            # Before a bank is made that may be of any size.
            if "prototypes" in tensors and tensors["prototypes"].shape != expected:
                raise ValueError(f"it holds prototypes of {tuple(tensors['prototypes'].shape)}, not {expected}")
            values = View(values=values).values  # refuses what is no range
        except (ValueError, PcdnetError) as error:
            raise PcdnetError(f"cannot read {weights}: {error}; it belongs to another {CONFIG}") from None
        shape = None if background is None or background.ndim != 3 else (background.shape[1], background.shape[2])
        model = PCDNet(config, shape)
        fill(model, tensors, weights)
        model.names = self.names()
        model.values = self.origin.view.values or values
        model.learned_size = self.origin.size or size
        return model.to(target).eval()

    @property
    def model_config(self) -> ModelConfig:
        """What the model is: what was configured and, once the bank is settled, what was settled then."""
        return self._settled() or self.config.model

    @property
    def is_settled(self) -> bool:
        """Whether training is over and superfluous prototypes are gone."""
        return self._settled() is not None

    def _settled(self) -> ModelConfig | None:
        if not self.has_weights:
            return None
        configured = self.config.model
        try:
            found = _noted(load_words(self.path / WEIGHTS), SETTLED)
            found = {"num_prototypes": found} if type(found) is int else dict(found)
            values = {name: _as_configured(name, found[name]) for name in SETTLES if name in found}
            settled = dataclasses.replace(configured, **values)
        except (TypeError, ValueError, PcdnetError):
            return None  # whatever is wrong with the file is reported when its tensors are read
        return settled if settled.num_prototypes <= configured.num_prototypes else None

    def save_weights(self, model: PCDNet, *, settled: bool = False) -> None:
        """Keep this model as the best so far or, `settled`, as the last, perhaps with fewer prototypes."""
        words = {SETTLED: json.dumps({name: getattr(model.config, name) for name in SETTLES})} if settled else {}
        self._save(WEIGHTS, dict(model.state_dict()), words)

    def save_state(self, tensors: dict[str, Tensor], words: Mapping[str, Any]) -> None:
        """Keep all that training needs to go on, how much there is of the metrics, and what was learned from."""
        lines, images = history.count(self.path / METRICS), self.origin.fingerprint
        noted = {"state": words, LINES: lines, IMAGES: images}
        self._save(STATE, tensors, {name: json.dumps(value) for name, value in noted.items()})

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `save_state` kept."""
        tensors, words = load_tensors(self.path / STATE, "train anew")
        try:
            state = _noted(words, "state")
            if not isinstance(state, dict):
                raise ValueError("it does not say how far training was")
        except ValueError as error:
            raise PcdnetError(f"cannot read {self.path / STATE}: {error}; train anew") from None
        return tensors, state

    def metrics(self) -> list[dict[str, Any]]:
        """The sound lines of the metrics file; see `read_metrics`."""
        return self.read_metrics()[0]

    def read_metrics(self) -> tuple[list[dict[str, Any]], int]:
        """The lines of the metrics file, and how many more there should be that are damaged or lost.

        A last line that was cut off is neither: it is what a killed process leaves.
        """
        lines, bad = history.read(self.path / METRICS)
        with suppress(PcdnetError, ValueError, TypeError, KeyError):  # a damaged state is for others to report
            words = load_words(self.path / STATE) if self.has_state else {}
            if LINES in words:
                step = _noted(words, "state")["step"]
                bad = max(bad, abs(_noted(words, LINES) - sum(line["step"] <= step for line in lines)))
        return lines, bad

    def rewind(self, step: int) -> None:
        """Forget what the metrics say of later steps: they are about to be done again."""
        lines, bad = self.read_metrics()
        if bad:
            to_stderr(f"{bad} lines of {self.path / METRICS} were damaged or lost, and are missing from now on")
        self._write(METRICS, "".join(history.written(line) for line in lines if line["step"] <= step))

    def log(self, **values: Any) -> None:
        """Add a line to the metrics."""
        try:
            with added_to(self.path / METRICS) as file:
                file.write(history.written(values).encode())
        except OSError as error:
            reason = error.strerror or error
            raise Unwritable(f"cannot write to {self.path}: {reason}; make room, then go on with ", GO_ON) from None

    def save_verdict(self, text: str | None) -> None:
        """Keep whether training worked, as JSON; None forgets it, since what it is about will change."""
        if text is not None:
            return self._write(VERDICT, text)
        path = self.path / VERDICT
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise Unwritable(f"cannot remove {path}: {reason}; make it writable, then go on with ", GO_ON) from None

    def verdict(self) -> str | None:
        """What `save_verdict` kept."""
        path = self.path / VERDICT
        try:
            return text_of(content_of(path)) if path.is_file() else None
        except (OSError, UnicodeDecodeError) as error:
            raise PcdnetError(f"cannot read {path}: {error}; delete it") from None

    def names(self) -> Names:
        """What people call the prototypes, and the distinct colours that they come in."""
        return Names.read(self.path, self.model_config.num_prototypes, self.config.model.channels)

    def keep_names(self, names: Names) -> None:
        """Keep these names and colours."""
        if names != self.names():
            self.check_changeable()
            names.write(self.path)

    def merge(self, prototypes: Collection[int], name: str | None = None) -> Names:
        """Give prototypes one name, which makes their objects one kind in every output.

        Parameters
        ----------
        prototypes
            Two or more of the run's prototypes.
        name
            What to call them; by default as the first of them that has a name, or else by the number of the first.

        Returns
        -------
        Names
            The names of all prototypes from now on.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = RunFolder.create(folder, Config(), Origin())
        ...     list(run.merge([0, 2], "L"))[:3]
        ['L', 'prototype 1', 'L']
        """
        names = self.names().merged(prototypes, name)
        self.keep_names(names)
        return names

    def training_scenes(self) -> tuple[Scenes, Scenes]:
        """The scenes for training and, apart from them, for validation."""
        return training_data(self.data, seed=self.config.train.seed, view=self.view_of(None))

    def held_out(
        self, data: str | Path | None = None, *, count: int = HELD_OUT, seed: int = TEST_SEED, view: View = UNCHANGED
    ) -> Scenes:
        """Scenes that the run did not learn from: of its own data, or of others that `data` names.

        They are looked at as in training, but for what `view` says otherwise. `seed` is for generated scenes. Of a run
        that learned from tiles, whole pictures (`tiles=0`) also show what it learned from, and say so.
        """
        data = self.data if data is None else str(data)
        view = self.view_of(data, view)
        if not self._is_own(data):
            return open_data(data, count=count, seed=seed, view=view)
        if view.tiles == 0 and self.origin.view.tiles:
            whole = open_data(data, count=count, seed=seed, view=view)
            return dataclasses.replace(whole, name=f"{whole.name}, whole, with the parts that were learned from")
        # The split is that of the training; whoever wants fewer scenes gets some of those that were kept apart.
        stride = view.stride if is_generated(data) else self.origin.view.stride
        step = -(-view.stride // stride)
        kept = held_out_data(data, count=count * step, seed=seed, view=dataclasses.replace(view, stride=stride))
        return kept.part(slice(None, None, step))

    def strip(self, data: str | Path | None = None) -> Strip:
        """The pictures of the run's own data, or of others that `data` names, one by one and whole.

        They are looked at as in training, and those that it learned from are among them.
        """
        if data is None and self.samples is not None:
            return open_strip(self.samples)
        data = self.data if data is None else str(data)
        return open_strip(data, self.view_of(data))

    @property
    def edits(self) -> Edits:
        """What people made of pictures in the browser."""
        return Edits(self.path / EDITS)

    @property
    def corrections(self) -> Corrections:
        """What they showed of what the model gets wrong, to learn again from."""
        return Corrections(self.path / CORRECTIONS)

    @property
    def candidate(self) -> Path:
        """Where learning again leaves its model until it is adopted."""
        return self.path / CANDIDATE

    def formers(self) -> list[Path]:
        """Where the models are that the run had before, the last one at the end."""
        return [self.path / FORMER / f"{number}" for number in formers(self.path)]

    def succeed(self, source: str) -> Path:
        """Have the model in a folder of the run take the place of its own; where that is kept."""
        self.check_changeable()
        return succeed(self.path, source, MODEL_FILES, MODEL_FOLDERS)

    def hide(self, prototypes: Collection[int], *, hidden: bool = True) -> Names:
        """Leave the objects of prototypes out of every output, or take them in again.

        Parameters
        ----------
        prototypes
            Some of the run's prototypes.
        hidden
            False takes them in again.

        Returns
        -------
        Names
            The names of all prototypes from now on, and which are hidden.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = RunFolder.create(folder, Config(), Origin())
        ...     sorted(run.hide([3, 1]).hidden), sorted(run.hide([3], hidden=False).hidden)
        ([1, 3], [1])
        """
        names = self.names().hiding(prototypes, hidden=hidden)
        self.keep_names(names)
        return names

    def view_of(self, data: str | None, view: View = UNCHANGED) -> View:
        """How the run looks at data: as in training, but for what `view` says otherwise.

        The stride is that of the training data; others have none of their own. Models of one channel see grey.
        """
        kept, own = self.origin.view, data is None or self._is_own(data)
        return View(
            crop=view.crop or kept.crop,
            resize=view.resize or kept.resize,
            stride=view.stride if view.stride != 1 or not own else kept.stride,
            grey=view.grey or kept.grey or self.config.model.channels == 1,
            values=view.values or kept.values,
            tiles=kept.tiles if view.tiles is None else view.tiles,
            ignore=view.ignore or kept.ignore,
        )

    def command(self) -> str:
        """The command line that trains the same again: the nearest preset, and what differs from it."""
        origin, (preset, changes) = self.origin, self.nearest_preset()
        settings: dict[str, Any] = {"preset": preset, "data": origin.data or "DATA"}
        settings["out"] = str(self.changeable)
        settings |= {"seed": self.config.train.seed, "minutes": origin.minutes}
        settings |= {f.name: getattr(origin.view, f.name) for f in dataclasses.fields(View)}
        usual = {f.name: f.default for f in dataclasses.fields(View)} | {"minutes": None}
        words = [flags(Setting(name, value)) for name, value in settings.items() if value != usual.get(name, ...)]
        words += [flags(Setting(name, value)) for name, value in changes.items()]
        return shlex.join(["pcdnet", "train", *(word for setting in words for word in setting)])

    def nearest_preset(self) -> tuple[str, dict[str, Any]]:
        """The preset that the configuration differs least from, and what differs, but for the seed."""
        changes = {
            name: {field: value for field, value, _ in self.config.differences(preset) if field != "train.seed"}
            for name, preset in PRESETS.items()
        }
        nearest = min(changes, key=lambda name: len(changes[name]))
        return nearest, changes[nearest]

    def _is_own(self, data: str) -> bool:
        """Whether a name or path, however it is spelled, is of the data that the run was trained on."""
        own = self.origin.data
        return own is not None and (data == own or Path(data).resolve() == Path(own).resolve())

    def _write(self, name: str, text: str, *cure: str | Setting) -> None:
        cure = cure or ("make room, then go on with ", GO_ON)
        with whole_file(self.path / name, *cure, durable=True) as file:
            file.write(text.encode())

    def _save(self, name: str, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        save_tensors(self.path / name, tensors, metadata, "make room, then go on with ", GO_ON)


def load(folder: str | Path, device: str = "cpu") -> PCDNet:
    """The model of a folder that `fit` or `PCDNet.save` made, in evaluation mode.

    Parameters
    ----------
    folder
        Folder of a run or of a saved model, or the name of a trained model; see `pcdnet.models`.
    device
        Where to compute: `cpu`, `cuda`, ...

    Returns
    -------
    PCDNet
        The best model of the run, by validation.

    Examples
    --------
    >>> import pcdnet
    >>> pcdnet.load("runs/missing")
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: runs/missing is no run: it holds no config.toml; ...
    >>> pcdnet.load("letters")
    PCDNet(...)
    """
    return RunFolder.open(folder).load_model(device)


def _is_run(path: Path) -> bool:
    """Whether a folder holds a run."""
    try:
        return (path / CONFIG).is_file()
    except OSError as error:
        raise PcdnetError(f"{str(path)[:200]} cannot be read ({error.strerror}); give another folder") from None


def _noted(words: Mapping[str, str], name: str) -> Any:
    """What a file of tensors notes under a name, None if nothing; words that nobody writes are a ValueError."""
    for unknown in words.keys() - WORDS:
        raise ValueError(f"nothing is called {unknown!r:.40}")
    try:
        return json.loads(words.get(name, "null"))
    except RecursionError:
        raise ValueError(f"{name} has no end of brackets") from None


def _as_configured(name: str, value: Any) -> Any:
    return checked_value(FIELDS[f"model.{name}"], f"model.{name}", value, WEIGHTS)


def _names_in(path: Path) -> set[str]:
    """What a folder holds, those of files that are not whole yet as if they were; a file holds something, too."""
    try:
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else {""} if path.exists() else set()
    except OSError as error:
        reason = error.strerror or error
        raise PcdnetError(f"{path} cannot be read ({reason}); choose another ", Setting("out")) from None
    return {name.removesuffix(PARTIAL) for name in names} - {LOCK}
