"""The battery of refusals for arguments of functions: values of wrong kinds, each refused by the argument's name."""

import inspect
from collections.abc import Callable, Sequence

import numpy as np
import pytest

__all__ = ["NOT_ONE", "NO_NUMBERS", "Row", "check_refusals"]

Row = tuple[Callable[..., object], object, Sequence[object]]
"""A call of one argument, a value that it takes, and values that it must refuse."""

NO_NUMBERS = ["x", "2", True, b"x", {}, [[1.0, 2.0], [3.0]], 1j, np.nan, object()]
NOT_ONE = [*NO_NUMBERS, None, (1.0, 2.0), np.ones((2, 2))]


def check_refusals(call: Callable[..., object], good: object, wrong: Sequence[object]) -> None:
    """Check that a call takes one value and refuses others, with a message that begins with its argument's name."""
    call(good)
    (name,) = inspect.signature(call).parameters
    for value in wrong:
        with pytest.raises(ValueError, match=rf"^{name}\b.* must"):
            call(value)
