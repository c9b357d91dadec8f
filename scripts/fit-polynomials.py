#!/usr/bin/python3
"""Writes src/tensor/polynomials.def: the coefficients behind erf, tanh, atan and others.

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


def over_x(name, at_zero=1):
    """name(x)/x of s = x^2."""
    function = getattr(mp, name)

    def quotient(s):
        x = mp.sqrt(s)
        return mp.mpf(at_zero) if x == 0 else function(x) / x
    quotient.__doc__ = f"{name}(x)/x of s = x^2."
    return quotient


def expm1_over_x(x):
    """(exp(x) - 1)/x of x."""
    return mp.mpf(1) if x == 0 else mp.expm1(x) / x


def erfinv_tail(t):
    """erfinv(x) / r of t = 1/(1 + r), r^2 = -log(1 - x)."""
    r = 1 / t - 1
    if r < 3:
        return mp.erfinv(1 - mp.exp(-r * r)) / r
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) + r * r, r * 0.93) / r


def lgamma_over_z(zero):
    """log(gamma(zero + z)) / z of z."""
    slope = mp.digamma(zero)

    def quotient(z):
        return slope if abs(z) < 1e-30 else mp.loggamma(zero + z) / z
    quotient.__doc__ = f"log(gamma({zero} + z)) / z of z."
    return quotient


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.46)


def digamma_over_distance(z):
    """digamma(1.5 + z) / (1.5 + z - root) of z, the root being 1.46163..."""
    distance = mp.mpf(1.5) + z - DIGAMMA_ROOT
    return mp.psi(1, DIGAMMA_ROOT) if abs(distance) < 1e-30 else mp.digamma(mp.mpf(1.5) + z) / distance


def i0_of_square(s):
    """I0(x) of s = x^2."""
    return mp.besseli(0, mp.sqrt(s))


def i1_over_x(s):
    """I1(x) / x of s = x^2."""
    return mp.mpf(1) / 2 if s == 0 else mp.besseli(1, mp.sqrt(s)) / mp.sqrt(s)


def bessel_tail(order, t):
    if t < mp.mpf(1) / 2000:  # DLMF, 10.40.1
        terms = [mp.mpf(1)]
        for k in range(1, 12):
            terms.append(terms[-1] * ((2 * k - 1)**2 - 4 * order**2) * t / (8 * k))
        return mp.fsum(terms) / mp.sqrt(2 * mp.pi)
    return mp.exp(-1 / t) * mp.besseli(order, 1 / t) / mp.sqrt(t)


def i0_tail(t):
    """sqrt(x) exp(-x) I0(x) of t = 1/x."""
    return bessel_tail(0, t)


def i1_tail(t):
    """sqrt(x) exp(-x) I1(x) of t = 1/x."""
    return bessel_tail(1, t)


def fit(function, low, high, degree, center):
    """Coefficients of powers of x - center from the constant upwards, and the largest relative error."""
    low, high = mp.mpf(low), mp.mpf(high)
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2)) for k in range(degree + 1)]
    matrix = mp.matrix([[(x - center)**i for i in range(degree + 1)] for x in nodes])
    c = list(mp.lu_solve(matrix, mp.matrix([function(x) for x in nodes])))
    points = [low + (high - low) * k / 4000 for k in range(4001)]
    error = max(abs(mp.polyval(c[::-1], x - center) / function(x) - 1) for x in points)
    return c, error


TANH, ATAN, ASIN, SINH, ASINH, ATANH = map(over_x, ("tanh", "atan", "asin", "sinh", "asinh", "atanh"))
ERFINV = over_x("erfinv", mp.sqrt(mp.pi) / 2)
LEAST = 1 / (1 + mp.sqrt(54 * mp.log(2)))  # of x = 1 - 2^-54
MOST = 1 / (1 + mp.sqrt(mp.log(4)))  # of x = 3/4
ROWS = [
    ("kErfF32", erf_over_x, 0, 1, 7), ("kErfF64", erf_over_x, 0, 1, 12),
    ("kErfcF32", scaled_tail, mp.mpf(1) / 8, mp.mpf(2) / 3, 9), ("kErfcF64", scaled_tail, mp.mpf(1) / 15, mp.mpf(2) / 3, 20),
    ("kWideErfcF32", scaled_tail, mp.mpf(1) / 8, mp.mpf(5) / 6, 11, 0.4375), ("kWideErfcF64", scaled_tail, mp.mpf(1) / 15, mp.mpf(5) / 6, 24, 0.4375),
    ("kTanhF32", TANH, 0, mp.mpf(25) / 64, 6), ("kTanhF64", TANH, 0, mp.mpf(25) / 64, 11),
    ("kAtanF32", ATAN, 0, 1, 12), ("kAtanF64", ATAN, 0, 1, 23),
    ("kAsinF32", ASIN, 0, mp.mpf(1) / 4, 7), ("kAsinF64", ASIN, 0, mp.mpf(1) / 4, 14),
    ("kSinhF32", SINH, 0, 1, 4), ("kSinhF64", SINH, 0, 1, 8),
    ("kAsinhF32", ASINH, 0, 1, 11), ("kAsinhF64", ASINH, 0, 1, 22),
    ("kAtanhF32", ATANH, 0, mp.mpf(1) / 4, 7), ("kAtanhF64", ATANH, 0, mp.mpf(1) / 4, 15),
    ("kExpm1F32", expm1_over_x, -1, 1, 8), ("kExpm1F64", expm1_over_x, -1, 1, 15),
    ("kErfinvF32", ERFINV, 0, mp.mpf(9) / 16, 12), ("kErfinvF64", ERFINV, 0, mp.mpf(9) / 16, 25),
    ("kErfinvTailF32", erfinv_tail, 1 / (1 + mp.sqrt(25 * mp.log(2))), MOST, 10, 0.3125), ("kErfinvTailF64", erfinv_tail, LEAST, MOST, 24, 0.3125),
    ("kLgamma1F32", lgamma_over_z(1), mp.mpf(-1) / 2, mp.mpf(1) / 2, 15), ("kLgamma1F64", lgamma_over_z(1), mp.mpf(-1) / 2, mp.mpf(1) / 2, 30),
    ("kLgamma2F32", lgamma_over_z(2), mp.mpf(-1) / 2, 1, 12), ("kLgamma2F64", lgamma_over_z(2), mp.mpf(-1) / 2, 1, 24),
    ("kDigammaF32", digamma_over_distance, mp.mpf(-1) / 2, mp.mpf(1) / 2, 12), ("kDigammaF64", digamma_over_distance, mp.mpf(-1) / 2, mp.mpf(1) / 2, 24),
    ("kI0F32", i0_of_square, 0, 64, 11), ("kI0F64", i0_of_square, 0, 100, 20),
    ("kI0TailF32", i0_tail, 0, mp.mpf(1) / 8, 7, 0.0625), ("kI0TailF64", i0_tail, 0, mp.mpf(1) / 10, 22, 0.05),
    ("kI1F32", i1_over_x, 0, 64, 11), ("kI1F64", i1_over_x, 0, 100, 20),
    ("kI1TailF32", i1_tail, 0, mp.mpf(1) / 8, 8, 0.0625), ("kI1TailF64", i1_tail, 0, mp.mpf(1) / 10, 23, 0.05),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="src/tensor/polynomials.def")
    out = parser.parse_args().out
    with open(out, "w", encoding="utf-8") as file:
        file.write("// Written by scripts/fit-polynomials.py: TUFF_POLYNOMIAL(name, coefficients from the constant upwards).\n")
        for name, function, low, high, degree, *center in ROWS:
            c, error = fit(function, low, high, degree, *(center or [0]))
            powers = f" In powers of what it is above {center[0]}." if center else ""
            file.write(f"// {function.__doc__}{powers} {mp.nstr(low, 4)} to {mp.nstr(high, 4)}: relative error {mp.nstr(error, 2)}.\n")
            file.write(f"TUFF_POLYNOMIAL({name}, {', '.join(mp.nstr(v, 17) for v in c)})\n")


if __name__ == "__main__":
    main()
