"""The page as one text, that needs nothing beside it, and as an element of a notebook."""

import base64
import html
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import __version__
from iclab.explorer import joining
from iclab.explorer.addresses import address, opened, state_at
from iclab.explorer.inspected import inspected
from iclab.explorer.reference import points
from iclab.explorer.stored import Stored, laid_over, stored
from iclab.explorer.views import VIEWS, controls_of, formulas_of, state_of, study_of
from iclab.figures.style import PALETTE
from iclab.numerics import require
from iclab.provenance import environment
from iclab.report import Moving
from iclab.report.mathml import mathml
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Page", "moving", "page", "page_of"]

SEEDS, NORMALS = 8, 520  # starts of theory, and numbers of each: 8 heads of merged attention in 8 dimensions
HEIGHT = 900  # pixels of the frame in a notebook


@dataclass(frozen=True, repr=False)
class Page:
    """A page of theory that can be moved: `str` of it is the whole file, and a notebook shows it in a frame."""

    html: str
    address: str
    """The view and the state that it opens with."""
    script: str
    """The one script in it."""

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"Page({self.address!r}, {len(self.html.encode()) / 1e3:.0f} kB)"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which runs its script and reaches nothing else."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{HEIGHT}" title="iclab explorer"></iframe>'
        )


def page(
    *,
    results: str | Path | None = None,
    view: str | None = None,
    state: str | Mapping[str, Any] | None = None,
    inspection: str | Path | None = None,
) -> Page:
    """The page, opened with a view at a state, with the runs of a folder of results laid over theory.

    `inspection` is results.json of `iclab inspect`, shown in the view `inspect`.

    The state is an address, `"lambda=.4,.3&N=31"`, or values by key; what it leaves out is usual. Without a view it
    is that of the address.

    Files that cannot be shown are left out with a UserWarning each.

    Raises ValueError for an unknown view, for a state that the view has not, and for a file that is no document.
    """
    document = None if inspection is None else inspected(Path(inspection))
    begun = address(*opened(view, state))
    found, left_out = ({}, []) if results is None else stored(Path(results))
    for sentence in left_out:
        warnings.warn(sentence, stacklevel=2)
    return _page(begun, found, document)


def page_of(study: Study, case: Any, tree: "xr.DataTree | None" = None) -> Page:
    """The page with the view of a study at a case, and its result laid over theory where there is one.

    Raises ValueError for a study that no view shows, and for a case out of the range of the controls.
    """
    name = next((name for name, view in VIEWS.items() if view.study == study.name), None)
    known = ", ".join(view.study for view in VIEWS.values() if view.study)
    require(name is not None, f"a study must have a view to be explored, as {known} have; got {study.name!r}.")
    assert name is not None
    shown = {} if tree is None or "simulation" not in tree.children else laid_over(tree)
    return _page(address(name, state_at(name, state_of(VIEWS[name], case))), shown)


def moving(shown: "Sequence[tuple[Study, Any, xr.DataTree]]") -> Moving | None:
    """The page that figures of some results open in their place; None where no view shows one of them."""
    states: dict[str, str] = {}
    found: Stored = {}
    for study, case, tree in shown:
        if study.name in VIEWS:
            with suppress(ValueError):  # a case beyond the controls keeps its figure as it is
                states[study.name] = address(study.name, state_at(study.name, state_of(VIEWS[study.name], case)))
                if "simulation" in tree.children:
                    found |= laid_over(tree)
    if not states:
        return None
    made = _page(next(iter(states.values())), found)
    return Moving(made.html, made.script, states)


def _page(begun: str, found: Stored, document: dict[str, Any] | None = None) -> Page:
    script, style = joining.script({**_data(begun, found), "document": document}), _style()
    shown = _template().render(
        policy=joining.policy(script, style), script=script, style=style, views=VIEWS.values(), version=__version__,
        formulas={name: formulas_of(one) for name, one in VIEWS.items()},
    )  # fmt: skip
    return Page(shown, begun, script)


def _data(begun: str, found: Stored) -> dict[str, Any]:
    """All that the script reads."""
    return {
        "address": begun,
        "version": __version__,
        "commit": environment()["commit"][:12],
        "normals": _normals(),
        "points": points(),
        "stored": found,
        "views": {
            name: {
                "title": view.title,
                "question": view.question or study_of(view).title,
                "source": view.source,
                "study": view.study,
                "simulates": bool(view.study) and study_of(view).simulation is not None,
                "controls": controls_of(name),
                "facts": [vars(fact) for fact in view.facts],
                "also": {f"--{path.replace('_', '-')}": value for path, value in view.also.items()},
            }
            for name, view in VIEWS.items()
        },
    }


def _normals() -> list[str]:
    """The numbers that starts are made of, as NumPy draws them, in bytes of doubles."""
    drawn = (np.random.default_rng(seed).standard_normal(NORMALS) for seed in range(SEEDS))
    return [base64.b64encode(one.astype("<f8").tobytes()).decode() for one in drawn]


def _style() -> str:
    """The style sheet, with the colors of all figures."""
    light, dark = (
        "".join(f"--{name}:{shades[which]};" for name, shades in PALETTE.items() if name != "yellow")
        for which in (1, 2)
    )
    return joining.source("page/style.css").replace("/*light*/", light).replace("/*dark*/", dark)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader

    templates = Environment(
        loader=PackageLoader("iclab", "explorer/page"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.globals |= {"mathml": mathml}
    return templates.get_template("page.html")
