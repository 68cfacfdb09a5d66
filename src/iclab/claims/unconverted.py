"""Claims that are not measurements yet: open, until their study states them anew."""

from typing import Any

from iclab.claims.verdict import Verdict

__all__ = ["SLACK", "Old", "fitted_order"]

SLACK = 0.25


def fitted_order(*_: Any) -> float:
    """Nothing."""
    return float("nan")


class Old:
    """A claim in the form of 0.1.0."""

    def __init__(self, *given: Any, **_: Any) -> None:
        self.meaning = next((one for one in given if isinstance(one, str) and " " in one), "It is so.")

    def verdict(self, _: Any) -> Verdict:
        """Open."""
        return Verdict("not converted", self.meaning, "nothing", float("nan"), 0.0, "open", reason="not converted")
