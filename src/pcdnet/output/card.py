"""Card: what a repository of the Hugging Face Hub says of the model in it, as Markdown with a head for machines."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from pcdnet.names import Names
from pcdnet.output.scores import known_scores
from pcdnet.run import RunFolder
from pcdnet.training.verdict import kept_verdict

CARD, PICTURE = "README.md", "prototypes.png"
"""The names of the card and of the picture in it."""
MARK = "<!-- written by pcdnet push; remove this line to keep a card of your own -->"
"""Tells a card that nobody has edited, and which may be written anew."""
TAGS = ("pcdnet", "object-discovery", "unsupervised", "image-decomposition", "phase-correlation")
"""What the model is found by."""
LIBRARY, TASK = "pcdnet", "image-segmentation"
"""What the Hub calls the package, and what the model does."""
LIMITS = """## Limits

It finds what resembles its prototypes, in images like those that it learned from. Rotation and scale are not modelled.
An error reduction ranks objects; it is no probability."""
"""What is true of every model."""
MOST_NAMED = 100
"""Prototypes that are named one by one."""


def card(run: RunFolder, repository: str, licence: str | None = None, scores: Mapping[str, Any] | None = None) -> str:
    """The card of a run that is to be put into a repository; `scores` go by the names of `eval --json`."""
    parts = [
        f"---\n{_head(run, repository, licence, scores)}\n---\n{MARK}",
        f"# {repository.partition('/')[2]}",
        _purpose(run),
        f"![The prototypes and their masks]({PICTURE})",
        _use(repository),
        _facts(run),
        *([] if scores is None else [_measured(scores)]),
        _names(run.names()),
        LIMITS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(run: RunFolder, repository: str, licence: str | None, scores: Mapping[str, Any] | None) -> str:
    """What machines read, in the form of the Hub's own client."""
    from huggingface_hub import EvalResult, ModelCardData

    measured = None
    if scores is not None:
        data = run.origin.data or "images that it did not learn from"
        measured = [
            EvalResult(
                task_type=TASK,
                dataset_type=data.replace(" ", "-"),
                dataset_name=data,
                metric_type=score.key,
                metric_name=score.name,
                metric_value=scores[score.key],
            )
            for score, _ in known_scores(scores)
            if score.group and score.key in scores and score.key != "recall_by_kind"
        ]
    return ModelCardData(
        library_name=LIBRARY,
        license=licence,
        pipeline_tag=TASK,
        tags=list(TAGS),
        model_name=repository.partition("/")[2] if measured else None,
        eval_results=measured or None,
    ).to_yaml()


def _purpose(run: RunFolder) -> str:
    count = run.model_config.num_prototypes
    return (
        f"{count} grey prototypes with masks, learned without labels. Of these "
        f"[PCDNet](https://arxiv.org/abs/2110.03473) makes up an image: which object is where, in which "
        f"colour, in front of what."
    )


def _use(repository: str) -> str:
    return (
        f"## Use\n\n```sh\npip install 'pcdnet[hub]'\npcdnet decompose hf:{repository} photos --out results\n```\n\n"
        f'```python\nimport pcdnet\n\nmodel = pcdnet.load("hf:{repository}")\n'
        f'for thing in model.decompose("new.png").objects:\n    print(thing.prototype, thing.box, thing.colour)\n```'
    )


def _facts(run: RunFolder) -> str:
    config, size = run.model_config, run.load_model().learned_size
    kind = "grey" if config.channels == 1 else "RGB"
    lines = [
        f"images: {kind}{'' if size is None else f', learned from {size[0]}x{size[1]} pixels'}",
        f"background: {config.background}",
        f"objects: up to {config.max_objects} in an image of that size",
    ]
    if run.origin.data is not None:
        lines.append(f"data: {run.origin.data}")
    verdict = kept_verdict(run)
    if verdict is not None:
        lines.append(f"verdict on images that it did not learn from, without labels: {_plain(str(verdict))}")
    return "## Model\n\n" + "\n".join(f"- {line}" for line in lines)


def _measured(scores: Mapping[str, Any]) -> str:
    rows = "".join(f"| {_plain(score.name)} | {number} {score.unit} |\n" for score, number in known_scores(scores))
    over = f" on {scores['scenes']:,} scenes" if scores.get("scenes") else ""
    return f"## Scores{over}\n\n| score | |\n|---|---|\n{rows}".rstrip()


def _names(names: Names) -> str:
    """What people call the prototypes, if they call them anything."""
    given = sorted(names.given.items())[:MOST_NAMED]
    rows = "".join(f"| {prototype} | {_plain(name)} |\n" for prototype, name in given)
    return f"## Names\n\n| prototype | name |\n|---|---|\n{rows}".rstrip() if given else ""


def _plain(text: str) -> str:
    """A text in which no mark of Markdown or HTML means anything."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]#|!~$" else sign for sign in escape(text, quote=False)).replace(
        "\n", " "
    )
