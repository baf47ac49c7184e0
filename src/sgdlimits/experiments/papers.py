"""The documents that experiments rerun, by the key that cites them."""

PAPERS = {
    "BGJ22": "G. Ben Arous, R. Gheissari, A. Jagannath, High-dimensional limit theorems for SGD: "
    "Effective dynamics and critical scaling, 2022, arXiv 2206.04030",
    "BGHJ23": "G. Ben Arous, R. Gheissari, J. Huang, A. Jagannath, High-dimensional SGD aligns "
    "with emerging outlier eigenspaces, 2023, arXiv 2310.03010",
    "AKLS23": "L. Arnaboldi, F. Krzakala, B. Loureiro, L. Stephan, Escaping mediocrity: how "
    "two-layer networks learn hard generalized linear models, 2023, arXiv 2305.18502",
    "L23": "B. Loureiro, Dimension-free limits of SGD for two-layers neural networks (and some "
    "applications), slides, 2023",
    "J24": "A. Jagannath, Mathematics of Deep Learning, lecture notes, Stat 946, University of "
    "Waterloo, 2024",
    "ours": "beyond the papers: what the theory of this library predicts",
}
"""One line for every key: authors, title, year, and the number on arXiv."""


def reference(key: str) -> str:
    """The line for one key; empty if it is not known, as in a result of another version.

    >>> reference("L23").partition(",")[0]
    'B. Loureiro'
    """
    return PAPERS.get(key, "")
