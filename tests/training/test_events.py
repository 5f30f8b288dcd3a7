"""Events are sentences: few prototypes are named, many are counted."""

from __future__ import annotations

from pcdnet.training.events import in_words


def test_many_prototypes_are_counted_and_few_named() -> None:
    def centred(*prototypes: int) -> list[dict[str, object]]:
        return [{"step": 5, "event": "centre", "prototype": p, "source": p} for p in prototypes]

    assert in_words(centred(1)) == [(5, "prototype 1 moved to the centre")]
    assert in_words(centred(1, 2, 4)) == [(5, "prototypes 1, 2 and 4 moved to the centre")]
    assert in_words(centred(*range(9))) == [(5, "9 prototypes moved to the centre")]
