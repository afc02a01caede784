"""Operand pairs that meet the hard cases of binary32 far more often than random patterns do."""

import numpy as np

from tests.support import exact

__all__ = ["CLASSES", "pairs"]

_SIGN = np.uint32(1 << 31)


def pairs(rng, count):
    """``count`` pairs of patterns (uint32, two arrays), an equal share of every class, mixed."""
    share = -(-count // len(CLASSES))
    drawn = np.concatenate([draw(rng, share) for draw in CLASSES], axis=1)
    chosen = rng.permutation(drawn.shape[1])[:count]
    return drawn[0, chosen], drawn[1, chosen]


def _pack(sign, exponent, fraction):
    return (sign << 31 | np.clip(exponent, 0, 255) << 23 | fraction).astype(np.uint32)


def _mixed(rng, drawn):
    """Either operand may be the first one."""
    return rng.permuted(drawn, axis=0)


def _signs(rng, count):
    return rng.integers(0, 2, (2, count))


def _fractions(rng, count):
    """A quarter each: random, few bits set, few bits clear, a run of equal bits."""
    full = rng.integers(0, 2**23, (2, count))
    ones = 1 << rng.integers(0, 24, (2, count)) | 1 << rng.integers(0, 24, (2, count))
    runs = (1 << rng.integers(0, 24, (2, count))) - (1 << rng.integers(0, 24, (2, count)))
    kind = rng.integers(0, 4, (2, count))
    return np.choose(kind, [full, ones, ~ones, runs]) & 0x7FFFFF


def random_patterns(rng, count):
    return rng.integers(0, 2**32, (2, count), np.uint32)


def near_exponents(rng, count):
    """Distances at which a sum has to be aligned and rounded."""
    upper = rng.integers(0, 256, count)
    lower = upper - rng.integers(0, 29, count)
    return _mixed(
        rng, _pack(_signs(rng, count), np.stack([upper, lower]), _fractions(rng, count)))


def cancellation(rng, count):
    """Magnitudes a few units apart, mostly of opposite sign."""
    a = _pack(_signs(rng, count)[0], rng.integers(0, 255, count), _fractions(rng, count)[0])
    step = rng.integers(-4, 5, count) << rng.integers(0, 20, count) * rng.integers(0, 2, count)
    b = (a.astype(np.int64) + step) % 2**32 ^ (rng.integers(0, 4, count) > 0) * int(_SIGN)
    return np.stack([a, b.astype(np.uint32)])


def subnormals(rng, count):
    fractions = _fractions(rng, count) >> rng.integers(0, 24, (2, count))
    return _pack(_signs(rng, count), rng.integers(0, 4, (2, count)), fractions)


def small_products(rng, count):
    """Products around the smallest normal and below, one operand often subnormal."""
    total = rng.integers(98, 132, count)
    first = rng.integers(0, 131, count) * rng.integers(0, 2, count)
    exponents = np.stack([first, np.maximum(total - first, 0)])
    return _mixed(rng, _pack(_signs(rng, count), exponents, _fractions(rng, count)))


def subnormal_times_large(rng, count):
    small = _pack(rng.integers(0, 2, count), np.zeros(count, np.int64),
                  _fractions(rng, count)[0] >> rng.integers(0, 24, count))
    large = _pack(rng.integers(0, 2, count), rng.integers(100, 255, count),
                  _fractions(rng, count)[0])
    return _mixed(rng, np.stack([small, large]))


def large_values(rng, count):
    """Products and sums around the largest normal."""
    total = rng.integers(378, 385, count)
    first = rng.integers(124, 255, count)
    exponents = np.stack([first, np.clip(total - first, 0, 254)])
    equal = rng.integers(0, 2, count).astype(bool)
    exponents[:, equal] = rng.integers(252, 255, (2, equal.sum()))
    return _mixed(rng, _pack(_signs(rng, count), exponents, _fractions(rng, count)))


def near_integers(rng, count):
    """Values on and beside halves of integers of every length."""
    halves = rng.integers(0, 2**34, (2, count)) >> rng.integers(0, 34, (2, count))
    bits = (halves.astype(np.float32) / np.float32(2)).view(np.uint32).astype(np.int64)
    bits = np.maximum(bits + rng.integers(-1, 2, (2, count)), 0)
    return bits.astype(np.uint32) | _signs(rng, count).astype(np.uint32) << 31


def integers(rng, count):
    """Two's complement integers of 1 to 40 bits: low 32 in a, the rest sign-extended in b.

    Half of them end in a tie or one beside it.
    """
    length = rng.integers(1, 40, count)
    magnitude = rng.integers(0, 2**39, count) >> 39 - length
    ties = rng.integers(0, 2, count).astype(bool) & (length > 25)
    spare = np.maximum(length - 25, 0)
    tie = ((magnitude >> spare | 1) << spare) + rng.integers(-1, 2, count)
    magnitude = np.where(ties, tie, magnitude)
    value = np.where(rng.integers(0, 2, count), magnitude, -magnitude)
    return np.stack([value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF]).astype(np.uint32)


def corners(rng, count):
    """One operand at a corner, the other at a corner or random."""
    drawn = rng.choice(np.array(exact.CORNERS, np.uint32), (2, count))
    free = rng.integers(0, 2, count).astype(bool)
    drawn[1, free] = random_patterns(rng, free.sum())[0]
    return _mixed(rng, drawn)


CLASSES = (
    near_exponents, cancellation, subnormals, small_products, subnormal_times_large, large_values,
    near_integers, integers, corners,
)
