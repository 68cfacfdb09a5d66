"""Annotations of arguments that the function or class itself checks, with errors that name the argument.

Type checkers see the narrow type. Run-time type checks leave such arguments alone, since the ValueError says more.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

__all__ = ["Validated", "checks_its_fields"]

T = TypeVar("T")

if TYPE_CHECKING:
    Validated = Annotated[T, "checked by the function"]
else:

    class Validated:
        """`Validated[T]`, the annotation of an argument that should be a T and is checked by the function itself."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Any value at run time; the type is kept for readers."""
            return Annotated[Any, kind]


def checks_its_fields(kind: type[T]) -> type[T]:
    """A dataclass whose `__post_init__` checks its fields: run-time type checks of its fields are switched off."""
    setattr(kind.__init__, "__no_type_check__", True)  # noqa: B010
    return kind
