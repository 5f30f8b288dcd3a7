"""Laws of errors: the same mistake is worded for Python and for the command line, and names its settings."""

from __future__ import annotations

import pickle

import pytest

from pcdnet.errors import Interrupted, PcdnetError, Setting


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting("model.prototype_size", (30, 30)), "prototype_size=(30, 30)"),
        (Setting("model.colour", "none"), "colour='none'"),
        (Setting("model.background", "black"), "background='black'"),
        (Setting("model.restarts", 0), "restarts=0"),
        (Setting("train.steps"), "steps"),
        (Setting("out"), "out"),
    ],
)
def test_a_setting_speaks_python(setting: Setting, words: str) -> None:
    assert str(setting) == words


def test_a_message_is_its_parts_in_order() -> None:
    error = PcdnetError("images are grey; use ", Setting("model.channels", 1), " or ", Setting("grey"), ".")
    assert str(error) == "images are grey; use channels=1 or grey."
    assert error.worded(lambda setting: f"--{setting.name}") == "images are grey; use --model.channels or --grey."
    assert error.settings == (Setting("model.channels", 1), Setting("grey"))


def test_a_message_without_settings_is_the_same_for_everybody() -> None:
    error = PcdnetError("there is no image")
    assert str(error) == error.worded(repr) == "there is no image"
    assert error.settings == ()


def test_an_interruption_is_an_error_that_says_so() -> None:
    assert isinstance(Interrupted("stopped; resume with ", Setting("resume", True)), PcdnetError)


def test_an_error_comes_through_another_process_whole() -> None:
    error = PcdnetError("use ", Setting("model.channels", 1))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.settings) == (str(error), error.settings)
