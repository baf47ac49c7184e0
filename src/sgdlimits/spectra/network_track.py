"""Spectra of any network along its training, recorded from the user's own loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.spectra.alignment import alignment
from sgdlimits.spectra.blocks import MATRICES


class Tracker:
    """Records leading eigenvalues and alignment of a network, whenever it is called.

    Made by :meth:`Network.tracker`; call it as ``tracker(time, params)`` at increasing times, in
    any units, then ask for :meth:`dataset`.

    >>> import sgdlimits as sl
    >>> loss = lambda p, x, y: (x @ p["w"] - y) ** 2 / 2
    >>> tracker = sl.spectra.Network(loss, np.eye(2), np.zeros(2)).tracker(rank=1)
    >>> for step in range(3):
    ...     tracker(step, {"w": np.array([1.0, 0.5**step])})
    >>> tracker.dataset().norm.sel(block="w").values.round(3).tolist()
    [1.414, 1.118, 1.031]
    """

    def __init__(
        self,
        network: Any,  # a Network, whose file imports this one
        blocks: Sequence[Word] | None,
        rank: WholeNumber,
        matrices: Sequence[Word],
        tolerance: Number,
    ):
        self.network = network
        self.blocks = None if blocks is None else _words("blocks", blocks)
        self.rank = _checks.integer("rank", rank, least=1)
        self.matrices = _words("matrices", matrices)
        for matrix in self.matrices:
            _checks.choice("matrix", matrix, MATRICES)
        self.tolerance = _checks.positive("tolerance", tolerance)
        self._times: list[float] = []
        self._looks: list[dict[str, np.ndarray]] = []
        self._vectors: dict[tuple[str, str], np.ndarray] = {}

    def __call__(self, time: Number, params: Any) -> None:
        """Look at the matrices at these parameters.

        Args:
            time: in the units of your choice, later than at the last call.
            params: the tree of parameters, of the same shapes at every call.
        """
        now = float(_checks.array("time", time, ()))
        if self._times and now <= self._times[-1]:
            raise _checks.InputError(
                f"time={now:g} is not allowed: times must increase, the last was "
                f"{self._times[-1]:g}"
            )
        blocks = self.network.blocks(params) if self.blocks is None else self.blocks
        own = [self.network.flat(params, block) for block in blocks]
        self._check_sizes(blocks, own)
        shape = (len(self.matrices), len(blocks))
        values, aligned = np.full((*shape, self.rank), np.nan), np.full(shape, np.nan)
        found = {}
        for place, (block, vector) in enumerate(zip(blocks, own, strict=True)):
            count = min(self.rank, len(vector))
            for number, matrix in enumerate(self.matrices):
                if count == 0:
                    continue
                pairs = self.network.leading(
                    params, matrix, block, count, self.tolerance, self._vectors.get((matrix, block))
                )
                values[number, place, :count] = pairs.values
                if np.any(vector):
                    aligned[number, place] = alignment(vector, pairs.vectors)
                found[matrix, block] = pairs.vectors
        norm = np.array([np.linalg.norm(vector) for vector in own])
        self.blocks, self._vectors = tuple(blocks), found  # only now: an error records nothing
        self._times.append(now)
        self._looks.append({"eigenvalues": values, "alignment": aligned, "norm": norm})

    def dataset(self) -> xr.Dataset:
        """All that was recorded, over ``time``, ``matrix``, ``block`` and ``rank``.

        Returns:
            ``eigenvalues`` by decreasing absolute value, NaN beyond the parameters of a block;
            ``alignment``, the part of a block's parameters in the span of its ``rank`` leading
            eigenvectors: 1 if it has no more parameters than that, NaN if all are zero; and their
            ``norm``.
        """
        if not self._looks:
            raise _checks.InputError(
                "nothing was recorded: call tracker(time, params) before dataset()"
            )
        values = {name: np.stack([look[name] for look in self._looks]) for name in self._looks[0]}
        lead = ("time", "matrix", "block")
        dims = {"eigenvalues": (*lead, "rank"), "alignment": lead, "norm": ("time", "block")}
        coords = {
            "time": np.array(self._times),
            "matrix": list(self.matrices),
            "block": list(self.blocks or ()),
        }
        settings = {"samples": len(self.network.x), "rank": self.rank}
        attrs = {
            "kind": "spectra",
            "task": "Network",
            "parameters": settings,
            "tolerance": self.tolerance,
            "time_label": "time of the training loop",
        }
        return results.build(values, dims, coords, attrs)

    def _check_sizes(self, blocks: Sequence[str], own: Sequence[np.ndarray]) -> None:
        for block, vector in zip(blocks, own, strict=True):
            for matrix in self.matrices:
                last = self._vectors.get((matrix, block))
                if last is not None and len(last) != len(vector):
                    raise _checks.InputError(
                        f"params at {block!r} has {len(vector)} entries, which is not allowed: "
                        f"it had {len(last)} at the last time"
                    )


def _words(name: str, given: Any) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given)
    if not words or len(set(words)) != len(words):
        raise _checks.InputError(f"{name}={given!r} is not allowed: {name} must be different names")
    return words
