#!/usr/bin/python3
"""Writes tests/data/op_values.json: what every op means, computed apart from tuff.

Usage: op-values.py [--out tests/data/op_values.json]

Integers are computed with Python's unbounded ones and wrapped; floats with exact fractions rounded
once to nearest even; exp2, log2 and sin with the C library's long double. Arrays are hexadecimal,
little-endian, row-major. Needs Debian's python3-numpy.
"""
import argparse
import itertools
import json
import math
from fractions import Fraction

import numpy as np

INTEGERS = {f"{'u' if u else 'i'}{bits}": (bits, u) for bits in (8, 16, 32, 64) for u in (False, True)}
FLOATS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}
DTYPES = ["bool", *INTEGERS, *FLOATS]


def width(t):
    return 8 if t == "bool" else INTEGERS[t][0] if t in INTEGERS else 1 + sum(FLOATS[t])


# ---- values <-> bit patterns -----------------------------------------------------------------
def encode_fraction(t, r, negative_zero=False):
    mantissa, exponent = FLOATS[t]
    sign = 1 << (mantissa + exponent)
    if r == 0:
        return sign if negative_zero else 0
    least = 2 - (1 << (exponent - 1))
    magnitude = abs(r)
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    e -= Fraction(2) ** e > magnitude
    e = max(e, least)
    quotient = round(magnitude / Fraction(2) ** (e - mantissa))  # half to even
    bits = min(((e - least) << mantissa) + quotient, ((1 << exponent) - 1) << mantissa)
    return bits | (sign if r < 0 else 0)


def encode(t, v):
    """v: bool or int (wrapped), Fraction, or a float that may be special."""
    if t == "bool":
        return int(bool(v))
    if t in INTEGERS:
        return int(v) & ((1 << width(t)) - 1)
    if isinstance(v, Fraction):
        return encode_fraction(t, v)
    mantissa, exponent = FLOATS[t]
    infinity = ((1 << exponent) - 1) << mantissa
    if math.isnan(v):
        return infinity | 1 << (mantissa - 1)
    if math.isinf(v):
        return infinity | (v < 0) << (mantissa + exponent)
    return encode_fraction(t, Fraction(v), math.copysign(1, v) < 0)


def decode(t, bits):
    """An int, or a Python float: every format here is a subset of double."""
    if t == "bool":
        return bits
    if t in INTEGERS:
        n, unsigned = INTEGERS[t]
        return bits - (1 << n) if not unsigned and bits >> (n - 1) else bits
    mantissa, exponent = FLOATS[t]
    sign = -1.0 if bits >> (mantissa + exponent) else 1.0
    e, m = bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    if e == (1 << exponent) - 1:
        return math.nan if m else sign * math.inf
    bias = (1 << (exponent - 1)) - 1
    return sign * math.ldexp(m + (1 << mantissa if e else 0), max(e, 1) - bias - mantissa)


def to_hex(t, bits):
    return b"".join(b.to_bytes(width(t) // 8, "little") for b in bits).hex()


# ---- operands ----------------------------------------------------------------------------------
def specials(t):
    if t == "bool":
        return [0, 1]
    if t in INTEGERS:
        n, unsigned = INTEGERS[t]
        low, high = (0, (1 << n) - 1) if unsigned else (-(1 << (n - 1)), (1 << (n - 1)) - 1)
        return [encode(t, v) for v in (0, 1, 2, 3, 7, 100, -1, -2, -7, low, low + 1, high, high // 3)]
    mantissa, exponent = FLOATS[t]
    largest = ((1 << exponent) - 1 << mantissa) - 1
    patterns = [1, (1 << mantissa) - 1, 1 << mantissa, largest, largest | 1 << (mantissa + exponent)]
    values = (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 1000.3, math.inf, -math.inf, math.nan)
    return patterns + [encode(t, v) for v in values]


def more(t, rng):
    if t == "bool":
        return []
    if t in INTEGERS:
        return [int(rng.integers(0, 1 << 63)) & ((1 << width(t)) - 1) for _ in range(12)]
    scales = np.exp2(rng.uniform(-12, 12, 24)) * rng.choice([-1, 1], 24)
    return [encode(t, float(v)) for v in scales] + [encode(t, v) for v in (0.5, 1.5, 2.5, -0.5, 7.9, -7.9)]


# ---- meanings ------------------------------------------------------------------------------------
def truncated(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def integer_binary(op, t, x, y):
    n, _ = INTEGERS[t]
    return {
        "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "max": lambda: max(x, y),
        "idiv": lambda: 0 if y == 0 else truncated(x, y),
        "imod": lambda: 0 if y == 0 else x - y * truncated(x, y),
        "and": lambda: x & y, "or": lambda: x | y, "xor": lambda: x ^ y,
        "shl": lambda: x << (y % n), "shr": lambda: x >> (y % n),
    }[op]()


def bool_binary(op, x, y):
    return {"add": x | y, "sub": x ^ y, "mul": x & y, "max": x | y, "and": x & y, "or": x | y, "xor": x ^ y}[op]


def float_binary(op, x, y):
    """A Fraction where the result is finite and not zero, else a float."""
    if op == "max":
        return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)
    with np.errstate(all="ignore"):
        near = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](np.float64(x), np.float64(y))
    if not (math.isfinite(x) and math.isfinite(y)) or (op == "div" and y == 0):
        return float(near)
    a, b = Fraction(x), Fraction(y)
    exact = a + b if op == "add" else a - b if op == "sub" else a * b if op == "mul" else a / b
    return exact if exact else float(near)


def float_unary(op, x):
    if op == "neg":
        return -x
    if op == "recip":
        return float_binary("div", 1.0, x)
    if op == "trunc":
        return x if not math.isfinite(x) else math.copysign(float(math.trunc(x)), x)
    with np.errstate(all="ignore"):
        if op == "sqrt":
            return float(np.sqrt(np.float64(x)))  # a second rounding to <= 24 bits is harmless
        v = {"exp2": np.exp2, "log2": np.log2, "sin": np.sin}[op](np.longdouble(x))
    if not np.isfinite(v) or v == 0:
        return float(v)
    return Fraction(*(int(i) for i in v.as_integer_ratio()))


def cast(t, to, x):
    if to == "bool":
        return x != 0
    if to in FLOATS:
        return Fraction(x) if t not in FLOATS else x
    if t not in FLOATS:
        return x
    if math.isnan(x):
        return 0
    n, unsigned = INTEGERS[to]
    low, high = (0, (1 << n) - 1) if unsigned else (-(1 << (n - 1)), (1 << (n - 1)) - 1)
    return low if x < low else high if x > high else math.trunc(x)


def threefry(counter, key):
    mask = 0xFFFFFFFF
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + keys[0]) & mask, (counter[1] + keys[1]) & mask
    for i in range(20):
        r = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
        x = (x + y) & mask
        y = (y << r | y >> (32 - r)) & mask ^ x
        if i % 4 == 3:
            s = i // 4 + 1
            x, y = (x + keys[s % 3]) & mask, (y + keys[(s + 1) % 3] + s) & mask
    return x, y


# ---- tables --------------------------------------------------------------------------------------
def binary_table(t):
    pairs = list(itertools.product(specials(t), repeat=2))
    x, y = zip(*pairs)
    values = [(decode(t, a), decode(t, b)) for a, b in pairs]
    ops = {}
    for op, compare in (("cmplt", lambda a, b: a < b), ("cmpne", lambda a, b: a != b), ("cmpeq", lambda a, b: a == b)):
        ops[op] = to_hex("bool", [int(compare(a, b)) for a, b in values])
    if t == "bool":
        for op in ("add", "sub", "mul", "max", "and", "or", "xor"):
            ops[op] = to_hex(t, [bool_binary(op, a, b) for a, b in values])
    elif t in INTEGERS:
        for op in ("add", "sub", "mul", "max", "idiv", "imod", "and", "or", "xor"):
            ops[op] = to_hex(t, [encode(t, integer_binary(op, t, a, b)) for a, b in values])
    else:
        for op in ("add", "sub", "mul", "div", "max"):
            ops[op] = to_hex(t, [encode(t, float_binary(op, a, b)) for a, b in values])
    return {"x": to_hex(t, x), "y": to_hex(t, y), "ops": ops}


def shift_table(t):
    n, _ = INTEGERS[t]
    pairs = list(itertools.product(specials(t), (0, 1, n // 2, n - 1)))
    ops = {op: to_hex(t, [encode(t, integer_binary(op, t, decode(t, a), b)) for a, b in pairs]) for op in ("shl", "shr")}
    return {"x": to_hex(t, [a for a, _ in pairs]), "y": to_hex(t, [b for _, b in pairs]), "ops": ops}


def unary_table(t, rng):
    x = specials(t) + more(t, rng)
    values = [decode(t, b) for b in x]
    if t in FLOATS:
        names = ("neg", "recip", "sqrt", "exp2", "log2", "sin", "trunc")
        ops = {op: to_hex(t, [encode(t, float_unary(op, v)) for v in values]) for op in names}
    else:
        ops = {"neg": to_hex(t, [encode(t, -v) for v in values])}
    return {"x": to_hex(t, x), "ops": ops}


def cast_table(t, rng):
    x = specials(t) + more(t, rng)
    if t in FLOATS:
        x += [encode(t, v) for v in (127.5, 128.0, -128.9, 255.5, 32767.5, 65535.9, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64)]
    else:
        x += [encode(t, v) for v in (2049, 2051, 65519, 65520, (1 << 24) + 1, (1 << 53) + 1, (1 << 62) + (1 << 51) + 1)]
    to = {u: to_hex(u, [encode(u, cast(t, u, decode(t, b))) for b in x]) for u in DTYPES if u != t}
    same_size = {u: to_hex(u, x) for u in DTYPES if u not in (t, "bool") and width(u) == width(t) and t != "bool"}
    return {"x": to_hex(t, x), "cast": to, "bitcast": same_size}


def where_table(t):
    v = specials(t)
    rows = [(c, a, b) for c in (0, 1) for a, b in zip(v, reversed(v))]
    return {"condition": to_hex("bool", [r[0] for r in rows]), "x": to_hex(t, [r[1] for r in rows]),
            "y": to_hex(t, [r[2] for r in rows]), "out": to_hex(t, [r[1] if r[0] else r[2] for r in rows])}


def fold(op, t, values):
    """Values in index order; f16 and bf16 multiply in f32, and floats are added in f64."""
    acc = t if t not in FLOATS or op == "max" else "f64" if op == "add" else "f32" if t in ("f16", "bf16") else t
    if not values:
        if op != "max":
            return encode(t, int(op == "mul")) if t not in FLOATS else encode(t, float(op == "mul"))
        return encode(t, -math.inf) if t in FLOATS else encode(t, 0 if t == "bool" or INTEGERS[t][1] else -(1 << (width(t) - 1)))
    total = encode(acc, values[0])
    for v in values[1:]:
        a = decode(acc, total)
        r = bool_binary(op, a, v) if t == "bool" else integer_binary(op, t, a, v) if t in INTEGERS else float_binary(op, a, v)
        total = encode(acc, r)
    return encode(t, decode(acc, total))


def reduce_rows(t, rng):
    rows = []
    for op, (shape, axes) in itertools.product(("add", "mul", "max"), (((3, 4, 5), (1,)), ((3, 4, 5), (0, 2)), ((7,), (0,)), ((2, 0, 3), (1,)))):
        count = int(np.prod(shape))
        if t in FLOATS:
            x = [encode(t, float(v)) for v in rng.uniform(-2, 2, count)]
            if shape == (3, 4, 5):
                x[17] = encode(t, math.nan)
                x[40] = encode(t, math.inf)
        else:
            x = [int(v) & ((1 << width(t)) - 1 if t != "bool" else 1) for v in rng.integers(0, 1 << 62, count)]
        index = np.arange(count).reshape(shape)
        last = np.moveaxis(index, axes, range(-len(axes), 0))
        groups = last.reshape(*last.shape[: len(shape) - len(axes)], int(np.prod([shape[a] for a in axes])))
        groups = groups.reshape(int(np.prod([shape[a] for a in range(len(shape)) if a not in axes])), -1) if groups.size else [[]] * int(np.prod([s for a, s in enumerate(shape) if a not in axes]))
        out = [fold(op, t, [decode(t, x[i]) for i in g]) for g in groups]
        rows.append({"op": op, "dtype": t, "shape": shape, "axes": axes, "x": to_hex(t, x), "out": to_hex(t, out)})
    return rows


def bit_pattern_type(t):
    """Moves do not look at values: NumPy moves the bits of every dtype, bf16 among them."""
    return f"<u{width(t) // 8}"


def movement_rows(t):
    kind = bit_pattern_type(t)
    limit = 2 if t == "bool" else 1 << 62
    x = ((np.arange(2 * 3 * 4, dtype="<u8") * 0x9E3779B97F4A7C15) % limit).astype(kind).reshape(2, 3, 4)
    one = x[:1, :, :1]
    rows = [
        ("reshape", x, [4, 6], x.reshape(4, 6)),
        ("permute", x, [2, 0, 1], x.transpose(2, 0, 1)),
        ("permute", x, [1, 0, 2], x.transpose(1, 0, 2)),
        ("expand", one, [4, 3, 2], np.broadcast_to(one, (4, 3, 2))),
        ("pad", x, [[1, 0], [0, 2], [3, 1]], np.pad(x, [[1, 0], [0, 2], [3, 1]])),
        ("shrink", x, [[1, 2], [0, 3], [1, 3]], x[1:2, 0:3, 1:3]),
        ("shrink", x, [[0, 2], [2, 2], [0, 4]], x[0:2, 2:2, 0:4]),
        ("flip", x, [0, 2], x[::-1, :, ::-1]),
        ("flip", x, [1], x[:, ::-1]),
    ]
    return [{"op": op, "dtype": t, "arg": arg, "shape": a.shape, "x": np.ascontiguousarray(a).tobytes().hex(),
             "out_shape": b.shape, "out": np.ascontiguousarray(b).tobytes().hex()} for op, a, arg, b in rows]


def iota_table():
    """0, 1, 2 ... 299 in every number type: beyond 127 and 255 where they wrap, beyond 2^8 where bf16 rounds."""
    return {t: to_hex(t, [encode(t, Fraction(i) if t in FLOATS else i) for i in range(300)]) for t in DTYPES if t != "bool"}


def index_table():
    pairs = [(x, y) for x in (-9, -8, -7, -1, 0, 1, 7, 8, 9, 1 << 40, -(1 << 40)) for y in (1, 2, 3, 8, 1 << 33)]
    return {"x": [p[0] for p in pairs], "y": [p[1] for p in pairs],
            "floordiv": [x // y for x, y in pairs], "floormod": [x % y for x, y in pairs]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="tests/data/op_values.json")
    out = parser.parse_args().out
    rng = np.random.default_rng(7)
    words = [int(v) for v in rng.integers(0, 1 << 32, 32)]
    blocks = [(0, 0, 0, 0), (0xFFFFFFFF,) * 4, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)]
    blocks += [tuple(words[i:i + 4]) for i in range(0, 32, 4)]
    data = {
        "binary": {t: binary_table(t) for t in DTYPES},
        "shift": {t: shift_table(t) for t in INTEGERS},
        "unary": {t: unary_table(t, rng) for t in DTYPES if t != "bool"},
        "cast": {t: cast_table(t, rng) for t in DTYPES},
        "where": {t: where_table(t) for t in DTYPES},
        "reduce": [row for t in DTYPES for row in reduce_rows(t, rng)],
        "movement": [row for t in DTYPES for row in movement_rows(t)],
        "iota": iota_table(),
        "threefry": [{"in": b, "out": threefry(b[:2], b[2:])} for b in blocks],
        "index": index_table(),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=0, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
