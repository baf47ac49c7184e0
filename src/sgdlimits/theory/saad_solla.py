"""Soft committee machines with g(x) = erf(x/√2): the equations of Saad and Solla (SS95).

Student f = Σᵢ g(⟨wᵢ, x⟩), labels y = Σₙ g(⟨bₙ, x⟩) + √Δ z with Δ = ``noise``, loss ½(y − f)², steps
wᵢ ← wᵢ + (η/dim)(y − f) g'(⟨wᵢ, x⟩) x with η = ``step``. States are Q = WWᵀ and R = WBᵀ; the
teacher has T = BBᵀ. Time is steps/dim, which is δ·steps divided by ``step``.
"""

from typing import Any, NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric
from sgdlimits.theory._inputs import numbers, symmetric


class Velocity(NamedTuple):
    """Derivatives of the student's Gram matrix Q and of the overlaps R in time steps/dim."""

    student_gram: np.ndarray
    overlaps: np.ndarray


def drift(
    student_gram: Any, overlaps: Numeric, teacher_gram: Any, *, step: Number, noise: Number = 0.0
) -> Velocity:
    """Time derivatives of (Q, R).

        dR_in/dt = η Σ_a ε_a I₃(i, n, a)
        dQ_ik/dt = η Σ_a ε_a (I₃(i, k, a) + I₃(k, i, a))
                   + η² (Σ_ab ε_a ε_b I₄(i, k, a, b) + Δ J₂(i, k))

    where a and b run over students (ε = −1) and teachers (ε = +1), and, with s the fields of both,

        I₃(i, j, a) = E[g'(sᵢ) sⱼ g(s_a)],   I₄(i, k, a, b) = E[g'(sᵢ) g'(sₖ) g(s_a) g(s_b)],
        J₂(i, k) = E[g'(sᵢ) g'(sₖ)].

    Source: Saad and Solla (SS95), (5) and (6); L23.

    >>> rates = drift([[1.0]], [[1.0]], [[1.0]], step=0.5)  # the student is the teacher
    >>> bool(np.allclose(rates.student_gram, 0)), bool(np.allclose(rates.overlaps, 0))
    (True, True)
    """
    c, students, signs = _fields(student_gram, overlaps, teacher_gram)
    eta, delta = _checks.positive("step", step), _checks.nonnegative("noise", noise)
    learning = _i3(c, students) @ signs
    square = np.einsum("ikab,a,b->ik", _i4(c, students), signs, signs)
    square += delta * 2 / np.pi / np.sqrt(_lambda4(c, students))
    pull = learning[:, :students]
    return Velocity(eta * (pull + pull.T) + eta**2 * square, eta * learning[:, students:])


def generalization_error(student_gram: Any, overlaps: Numeric, teacher_gram: Any) -> float:
    """Half the mean squared error on noiseless labels.

        ½ Σ_ab ε_a ε_b I₂(a, b),   I₂(a, b) = (2/π) arcsin(C_ab/√((1 + C_aa)(1 + C_bb)))

    with C the covariance of all fields and the signs ε of ``drift``.

    Source: Saad and Solla (SS95), (4); L23.

    >>> round(generalization_error([[0.0]], [[0.0]], [[1.0]]), 6)  # ½E g(s)² = 1/6
    0.166667
    """
    c, _, signs = _fields(student_gram, overlaps, teacher_gram)
    scale = np.sqrt(1 + np.diag(c))
    return float(signs @ np.arcsin(c / np.outer(scale, scale)) @ signs / np.pi)


def _i3(c: np.ndarray, students: int) -> np.ndarray:
    """I₃(i, j, a) = (2/π)(C_ja(1 + C_ii) − C_ij C_ia)/(√Λ₃ (1 + C_ii))."""
    one = 1 + np.diag(c)
    ii, ij, ia = one[:students, None, None], c[:students, :, None], c[:students, None, :]
    lambda3 = ii * one[None, None, :] - ia**2
    return 2 / np.pi * (c[None] * ii - ij * ia) / (np.sqrt(lambda3) * ii)


def _i4(c: np.ndarray, students: int) -> np.ndarray:
    """I₄(i, k, a, b) = (4/π²) arcsin(Λ₀/√(Λ₁Λ₂))/√Λ₄."""
    one = 1 + np.diag(c)
    lambda4 = _lambda4(c, students)[:, :, None, None]
    ii, kk = one[:students, None, None, None], one[None, :students, None, None]
    ik = c[:students, :students, None, None]
    ia, ib = c[:students, None, :, None], c[:students, None, None, :]
    ka, kb = c[None, :students, :, None], c[None, :students, None, :]
    lambda0 = lambda4 * c - ka * kb * ii - ia * ib * kk + ik * (ia * kb + ib * ka)
    lambda1 = lambda4 * one[:, None] - ka**2 * ii - ia**2 * kk + 2 * ik * ia * ka
    lambda2 = lambda4 * one - kb**2 * ii - ib**2 * kk + 2 * ik * ib * kb
    return 4 / np.pi**2 * np.arcsin(lambda0 / np.sqrt(lambda1 * lambda2)) / np.sqrt(lambda4)


def _lambda4(c: np.ndarray, students: int) -> np.ndarray:
    """Λ₄(i, k) = (1 + C_ii)(1 + C_kk) − C_ik²."""
    one = 1 + np.diag(c)[:students]
    return np.outer(one, one) - c[:students, :students] ** 2


def _fields(
    student_gram: Any, overlaps: Numeric, teacher_gram: Any
) -> tuple[np.ndarray, int, np.ndarray]:
    """Covariance of all fields, the number of students, and the signs of the fields in y - f."""
    students = max(len(np.atleast_1d(numbers("student_gram", student_gram))), 1)
    teachers = max(len(np.atleast_1d(numbers("teacher_gram", teacher_gram))), 1)
    q = symmetric("student_gram", student_gram, students)
    t = symmetric("teacher_gram", teacher_gram, teachers)
    r = _checks.array("overlaps", overlaps, (students, teachers))
    signs = np.concatenate([-np.ones(students), np.ones(teachers)])
    return np.block([[q, r], [r.T, t]]), students, signs
