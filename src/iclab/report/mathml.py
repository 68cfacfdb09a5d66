"""Formulas as MathML, which browsers set without help, from the small part of TeX that formulas of theory need."""

import html
import re

__all__ = ["mathml"]

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d*\.?\d+|\s+|.", re.S)
_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Lambda": "Λ", "Sigma": "Σ", "Omega": "Ω",
    "ell": "ℓ", "infty": "∞", "top": "⊤",
}  # fmt: skip
_SIGNS = {
    "le": "≤", "ge": "≥", "approx": "≈", "propto": "∝", "cdot": "·", "times": "×", "pm": "±", "to": "→", "sum": "∑",
    "int": "∫", "partial": "∂", "nabla": "∇", "dots": "…", "in": "∈", "|": "‖", "ne": "≠",
}  # fmt: skip
_ACCENTS = {"bar": "¯", "hat": "^", "dot": "˙"}
_SPACES = {"\\,": "0.17em", "\\;": "0.28em", "\\quad": "1em"}


def mathml(tex: str, *, display: bool = False) -> str:
    r"""A formula as a MathML element.

    Known are letters, numbers, signs, Greek names, `^`, `_`, `\frac`, `\sqrt`, `\bar`, `\hat`, `\dot`, `\mathrm` and
    `\text`. Raises ValueError for any other command and for braces that do not match.
    """
    tokens = [token for token in _TOKEN.findall(tex) if token.strip()]
    body = _row(tokens)
    if tokens:
        raise ValueError(f"braces of a formula must match; got {tex!r}. Remove or open {tokens[0]!r}.")
    shown = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{shown}>{body}</math>'


def _row(tokens: list[str]) -> str:
    """Everything up to a closing brace or the end."""
    parts: list[str] = []
    while tokens and tokens[0] != "}":
        part = _item(tokens)
        scripts: dict[str, str] = {}
        while tokens and tokens[0] in "^_":
            mark = tokens.pop(0)
            scripts[mark] = _item(tokens)
        parts.append(_scripted(part, scripts))
    return f"<mrow>{''.join(parts)}</mrow>"


def _scripted(part: str, scripts: dict[str, str]) -> str:
    low, high = scripts.get("_"), scripts.get("^")
    limits = "∑" in part or "∫" in part
    if low and high:
        name = "munderover" if limits else "msubsup"
        return f"<{name}>{part}{low}{high}</{name}>"
    if low or high:
        name = ("munder" if limits else "msub") if low else ("mover" if limits else "msup")
        return f"<{name}>{part}{low or high}</{name}>"
    return part


def _item(tokens: list[str]) -> str:
    if not tokens:
        raise ValueError("a formula must not end in a script or a command that needs more; add what is missing.")
    token = tokens.pop(0)
    if token == "{":
        return _braced(tokens)
    if re.fullmatch(r"\d*\.?\d+", token):
        return f"<mn>{token}</mn>"
    if token in _SPACES:
        return f'<mspace width="{_SPACES[token]}"></mspace>'
    if token.startswith("\\"):
        return _command(token[1:], tokens)
    if token.isalpha():
        return f"<mi>{token}</mi>"
    return f"<mo>{html.escape(token.replace('-', '−'))}</mo>"


def _command(name: str, tokens: list[str]) -> str:
    if name in _LETTERS:
        return f"<mi>{_LETTERS[name]}</mi>"
    if name in _SIGNS:
        return f"<mo>{_SIGNS[name]}</mo>"
    if name == "frac":
        return f"<mfrac>{_item(tokens)}{_item(tokens)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{_item(tokens)}</msqrt>"
    if name in _ACCENTS:
        return f'<mover accent="true">{_item(tokens)}<mo>{_ACCENTS[name]}</mo></mover>'
    if name in ("mathrm", "text"):
        return f"<{'mi' if name == 'mathrm' else 'mtext'}>{_text(tokens)}</{'mi' if name == 'mathrm' else 'mtext'}>"
    raise ValueError(f"a formula must use commands that are known; got \\{name}. See iclab.report.mathml.")


def _braced(tokens: list[str]) -> str:
    row = _row(tokens)
    if not tokens:
        raise ValueError("braces of a formula must match; one is not closed. Add }.")
    tokens.pop(0)
    return row


def _text(tokens: list[str]) -> str:
    """The letters between braces, as they are."""
    if not tokens or tokens.pop(0) != "{" or "}" not in tokens:
        raise ValueError("\\text and \\mathrm must be followed by letters in braces; add {...}.")
    end = tokens.index("}")
    words, tokens[: end + 1] = "".join(tokens[:end]), []
    return html.escape(words)
