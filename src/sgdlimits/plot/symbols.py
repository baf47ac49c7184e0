"""From the flat name of a statistic to its mathematical symbol."""

import re

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|"
    "upsilon|phi|chi|psi|omega"
)
_SCALARS = {"m": "m", "r2": r"r_\perp^2"}


def symbol(name: str) -> str:
    r"""Return the mathtext symbol of a flat statistic name, with the indices of the data.

    >>> symbol("M[0,mu]"), symbol("R[0,1]"), symbol("r2")
    ('$M_{0,\\mu}$', '$R_{01}$', '$r_\\perp^2$')
    """
    match = re.fullmatch(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*", name)
    if match is None:
        return _text(name, wrap="${}$")
    head = _SCALARS.get(match[1]) or _word(match[1])
    if match[2] is None:
        return f"${head}$"
    index = [_word(part.strip()) for part in match[2].split(",")]
    # R_{01} reads well, R_{110} does not say which neurons are meant
    short = all(len(part) == 1 for part in index)
    return f"${head}_{{{('' if short else ',').join(index)}}}$"


def _word(text: str) -> str:
    """Return one label as mathtext: a number, a letter, a Greek letter, each with an index."""
    match = re.fullmatch(r"([A-Za-z]*?)_?(\d*)", text)
    if match is None or not text:
        return _text(text)
    head, index = match.groups()
    if not head:
        return index
    if _GREEK.fullmatch(head):
        head = f"\\{head}"
    elif len(head) > 1:
        head = _text(head)
    return f"{head}_{{{index}}}" if index else head


def _text(text: str, wrap: str = "{}") -> str:
    escaped = re.sub(r"([#$%&_{}])", r"\\\1", re.sub(r"[\\^~]", "", text)).replace(" ", r"\ ")
    return wrap.format(f"\\mathrm{{{escaped}}}")
