#!/usr/bin/python3
"""Writes src/tensor/polynomials.def: the coefficients behind erf and tanh.

Usage: fit-polynomials.py [--out src/tensor/polynomials.def]

Each function is interpolated at Chebyshev nodes in 60 digits and written as a polynomial in powers of its
variable; the error named beside it is the largest found at 4,000 points. Needs Debian's python3-mpmath.
"""
import argparse

import mpmath as mp

mp.mp.dps = 60


def erf_over_x(s):
    """erf(x)/x of s = x^2."""
    x = mp.sqrt(s)
    return 2 / mp.sqrt(mp.pi) if x == 0 else mp.erf(x) / x


def scaled_tail(t):
    """exp(x^2) erfc(x) / t of t = 1/(1 + x/2)."""
    x = 2 * (1 / t - 1)
    return mp.exp(x * x) * mp.erfc(x) / t


def tanh_over_x(s):
    """tanh(x)/x of s = x^2."""
    x = mp.sqrt(s)
    return mp.mpf(1) if x == 0 else mp.tanh(x) / x


def fit(function, low, high, degree):
    """Coefficients from the constant upwards, and the largest relative error."""
    low, high = mp.mpf(low), mp.mpf(high)
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2)) for k in range(degree + 1)]
    matrix = mp.matrix([[x**i for i in range(degree + 1)] for x in nodes])
    c = list(mp.lu_solve(matrix, mp.matrix([function(x) for x in nodes])))
    points = [low + (high - low) * k / 4000 for k in range(4001)]
    error = max(abs(mp.polyval(c[::-1], x) / function(x) - 1) for x in points)
    return c, error


ROWS = [
    ("kErfF32", erf_over_x, 0, 1, 7), ("kErfF64", erf_over_x, 0, 1, 12),
    ("kErfcF32", scaled_tail, mp.mpf(1) / 8, mp.mpf(2) / 3, 9), ("kErfcF64", scaled_tail, mp.mpf(1) / 15, mp.mpf(2) / 3, 20),
    ("kTanhF32", tanh_over_x, 0, mp.mpf(25) / 64, 6), ("kTanhF64", tanh_over_x, 0, mp.mpf(25) / 64, 11),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="src/tensor/polynomials.def")
    out = parser.parse_args().out
    with open(out, "w", encoding="utf-8") as file:
        file.write("// Written by scripts/fit-polynomials.py: TUFF_POLYNOMIAL(name, coefficients from the constant upwards).\n")
        for name, function, low, high, degree in ROWS:
            c, error = fit(function, low, high, degree)
            file.write(f"// {function.__doc__} {mp.nstr(low, 4)} to {mp.nstr(high, 4)}: relative error {mp.nstr(error, 2)}.\n")
            file.write(f"TUFF_POLYNOMIAL({name}, {', '.join(mp.nstr(v, 17) for v in c)})\n")


if __name__ == "__main__":
    main()
