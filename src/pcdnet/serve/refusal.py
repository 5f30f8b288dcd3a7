"""Refusal: a mistake that HTTP has a number for."""

from __future__ import annotations

from pcdnet.errors import PcdnetError
from pcdnet.serve.limits import RETRY_SECONDS


class Refusal(PcdnetError):
    """A request that is answered with a number of HTTP's and a sentence."""

    def __init__(self, status: int, message: str, *, fit: bool = False) -> None:
        super().__init__(message)
        self.status = status
        """The number."""
        self.fit = fit
        """Whether sending the picture again with fit=true would help."""

    @property
    def headers(self) -> dict[str, str]:
        """What else the answer says: who is refused because others were there first can ask again."""
        return {"Retry-After": str(RETRY_SECONDS)} if self.status == 503 else {}


def too_busy() -> Refusal:
    """What somebody is told who comes when too many are waiting."""
    return Refusal(503, f"too many requests are waiting; ask again in {RETRY_SECONDS} seconds")
