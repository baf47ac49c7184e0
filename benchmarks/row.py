"""What a benchmark reports."""

from typing import NamedTuple


class Row(NamedTuple):
    """One measured number and the one it has to reach."""

    what: str
    value: float
    bound: float
    at_least: bool
    unit: str = "×"

    def __str__(self) -> str:
        passed = self.value >= self.bound if self.at_least else self.value <= self.bound
        sign = "≥" if self.at_least else "≤"
        mark = "ok" if passed else "MISSED"
        value, bound = f"{self.value:.2f} {self.unit}", f"{sign} {self.bound:g} {self.unit}"
        return f"{self.what:<72} {value:>12}   {bound:<10} {mark}"
