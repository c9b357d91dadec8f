"""Functions by PyTorch's names, forwards and backwards, at random and at edges, against PyTorch itself."""
import math
import sys
import unittest

import numpy as np

import tuff

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

torch.manual_seed(7)
INF, NAN = math.inf, math.nan


def floats(*shape, low=-2.0, high=2.0):
    return torch.rand(shape) * (high - low) + low


def ints(*shape, low=-9, high=10, dtype=torch.int32):
    return torch.randint(low, high, shape, dtype=dtype)


def of(*values):
    return torch.tensor(values)


def here(x):
    return tuff.tensor(x.detach().numpy())


def there(x):
    array = np.array(x.detach().tolist(), dtype=None).reshape(tuple(x.shape))
    return torch.tensor(array, dtype=getattr(torch, x.dtype.name.replace("bool_", "bool")))


def weights_of(x):
    return torch.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape)


def results_of(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


X, Y, Z = floats(3, 5), floats(3, 5), floats(3, 5)
AWAY = torch.where(Y.abs() < 0.3, torch.full_like(Y, 0.7), Y)
POSITIVE = floats(3, 5, low=0.2, high=6)
ROW = floats(5)
CUBE = floats(2, 3, 4)
M, N = floats(4, 4), floats(4, 4)
SPD = M @ M.T + 4 * torch.eye(4)
A, B = ints(3, 5), ints(3, 5)
SHORT = ints(3, 5, dtype=torch.int16)
BYTES = ints(3, 5, low=0, high=255, dtype=torch.uint8)
BOOLS = torch.rand(3, 5) < 0.5
ODD = of(NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5, 1e-30, 3e38)
REVERSED = ODD.flip(0)
EMPTY = torch.empty(0, 3)
SCALAR = torch.tensor(0.75)
F = torch.nn.functional
G = tuff.nn.functional


class Case:
    """A function of both libraries, inputs, and what is compared: values, dtypes, shapes, and gradients of floats."""

    def __init__(self, name, inputs, ours=None, theirs=None, *, gradient=True, tolerance=2e-5, dtypes=True):
        self.name, self.inputs = name, inputs
        self.ours = ours or self.by_name(tuff)
        self.theirs = theirs or ours if ours and not theirs else theirs or self.by_name(torch)
        self.gradient, self.tolerance, self.dtypes = gradient, tolerance, dtypes

    def by_name(self, library):
        place = library
        for part in self.name.split("."):
            place = getattr(place, part)
        return place


def both(call):
    """One call for both libraries, which it is given."""
    return lambda *x: call(tuff, *x), lambda *x: call(torch, *x)


def case(name, inputs, call=None, **options):
    return Case(name, inputs, *(both(call) if call else ()), **options)


ELEMENTWISE = [
    *[case(n, [x, y], gradient=False) for n in ("bitwise_and", "bitwise_or", "bitwise_xor") for x, y in ((A, B), (BYTES, BYTES), (BOOLS, BOOLS.flip(0)))],
    case("bitwise_and", [A], lambda t, x: t.bitwise_and(x, 6)), case("bitwise_left_shift", [A, ints(3, 5, low=0, high=5)]),
    case("bitwise_right_shift", [A], lambda t, x: t.bitwise_right_shift(x, 2)),
    case("addcmul", [X, Y, Z], lambda t, x, y, z: t.addcmul(x, y, z, value=0.5)), case("addcmul", [A, B, A]), case("addcmul", [X, ROW, SCALAR]),
    case("addcdiv", [X, Y, AWAY], lambda t, x, y, z: t.addcdiv(x, y, z, value=-2)),
    case("gcd", [A, B]), case("gcd", [SHORT, SHORT.flip(0)]), case("gcd", [BYTES, BYTES.flip(0)]), case("gcd", [ints(50, low=-2**31 + 1, high=2**31 - 1), ints(50, low=-2**31 + 1, high=2**31 - 1)]),
    case("gcd", [torch.tensor([1836311903], dtype=torch.int32), torch.tensor([1134903170], dtype=torch.int32)]),
    case("gcd", [torch.tensor([7540113804746346429, 0], dtype=torch.int64), torch.tensor([4660046610375530309, 0], dtype=torch.int64)]),
    case("lcm", [A, B]), case("isposinf", [ODD]), case("isneginf", [ODD]), case("isposinf", [A]),
    case("logaddexp2", [X, Y]), case("logaddexp2", [ODD, REVERSED], gradient=False), case("logaddexp2", [of(INF, -INF), of(INF, -INF)], gradient=False),
    case("float_power", [POSITIVE, Y], tolerance=1e-12), case("float_power", [X], lambda t, x: t.float_power(x, 2)), case("float_power", [A], lambda t, x: t.float_power(x, 3)),
    case("ldexp", [X, ints(3, 5)]), case("ldexp", [A, ints(3, 5)]),
    case("frexp", [X], lambda t, x: t.frexp(x)), case("frexp", [of(0.0, -0.0, 1e-40, -3e38, 1.0, 0.5, INF, -INF)], gradient=False),
    case("frexp", [floats(9).double() * 1e-300], gradient=False), case("frexp", [of(5e-324).double()], gradient=False),
    case("nextafter", [X, Y], gradient=False, tolerance=0), case("nextafter", [ODD, REVERSED], gradient=False, tolerance=0),
    case("nextafter", [of(0.0, 0.0, 1.0, -1.0, 1e-45).double(), of(1.0, -1.0, INF, -INF, 0.0).double()], gradient=False, tolerance=0),
    case("fmax", [X, Y]), case("fmin", [X, Y]), case("fmax", [ODD, REVERSED], gradient=False), case("fmin", [ODD, REVERSED], gradient=False), case("fmax", [A, B]),
    case("fmax", [of(1.0, 2.0, NAN), of(1.5, NAN, 3.0)]), case("fmin", [of(1.0, 2.0, NAN), of(1.5, NAN, 3.0)]),
    case("heaviside", [X, Y], gradient=False), case("heaviside", [ODD, REVERSED], gradient=False), case("heaviside", [A, B], gradient=False),
    case("polygamma", [POSITIVE], lambda t, x: t.polygamma(1, x)), case("polygamma", [X - 0.03], lambda t, x: t.polygamma(1, x), tolerance=2e-4), case("polygamma", [POSITIVE], lambda t, x: t.polygamma(3, x)),
    case("polygamma", [POSITIVE], lambda t, x: t.polygamma(0, x)), case("polygamma", [POSITIVE.double()], lambda t, x: t.polygamma(4, x), tolerance=1e-12),
    case("mvlgamma", [POSITIVE + 1], lambda t, x: t.mvlgamma(x, 3)),
    case("clamp_min", [X], lambda t, x: t.clamp_min(x, 0.25)), case("clamp_max", [X, Y]), case("rsub", [X, Y]), case("positive", [X]),
    case("square", [X]), case("sgn", [X]), case("absolute", [X]), case("arctan2", [X, Y]), case("subtract", [X, Y]), case("true_divide", [A, B.abs() + 1]),
]
SPECIAL = [
    *[case(f"special.{n}", [x], tolerance=t) for n in ("erfcx", "ndtr", "log_ndtr", "i0e", "i1", "i1e") for x, t in ((X, 2e-5), (floats(64, low=-9, high=9), 3e-5), (floats(64, low=-9, high=9).double(), 1e-12))],
    case("special.entr", [POSITIVE]), case("special.entr", [ODD], gradient=False), case("special.entr", [of(0.0, 1.0)]),
    *[case(f"special.{n}", [ODD], gradient=False) for n in ("ndtr", "log_ndtr", "i0e", "i1e")], case("special.i1", [ODD[3:]], gradient=False),
    case("special.erfcx", [of(NAN, INF, -INF, 0.0, -0.0, 20.0, 1e10, -8.0, 3e38)], gradient=False, tolerance=3e-5),
    case("special.erfcx", [floats(40, low=5, high=60).double()], tolerance=1e-12), case("special.log_ndtr", [floats(40, low=-200, high=-5).double()], tolerance=1e-9),
    Case("special.log_ndtr", [floats(40, low=-30, high=-5)], tuff.special.log_ndtr, lambda x: torch.special.log_ndtr(x.double()).float()), case("special.i0e", [floats(30, low=5, high=900).double()], tolerance=1e-12),
    case("special.ndtri", [floats(64, low=0.001, high=0.999)], tolerance=1e-4), case("special.ndtri", [floats(64, low=0.001, high=0.999).double()], tolerance=1e-11),
    case("special.ndtri", [of(0.0, 1.0, -0.5, 2.0, NAN, 1e-30, 1e-10, 0.5)], gradient=False), case("special.ndtri", [of(1e-300, 1e-100, 1e-20, 1e-5, 0.99999).double()], tolerance=1e-11),
    case("special.xlog1py", [X, POSITIVE]), case("special.xlog1py", [of(0.0, 0.0, 0.0, 1.0), of(-1.0, NAN, INF, -1.0)], gradient=False),
    case("special.xlog1py", [X], lambda t, x: t.special.xlog1py(x, 2.0)),
    case("special.zeta", [POSITIVE + 1.1, POSITIVE.flip(0)], lambda t, x, q: t.special.zeta(x.detach(), q)), case("special.zeta", [(POSITIVE + 1.1).double(), POSITIVE.double()], lambda t, x, q: t.special.zeta(x.detach(), q), tolerance=1e-12),
    case("special.zeta", [of(1.0, 0.5, 2.0, 2.0, 3.0), of(2.0, 2.0, 0.0, -3.0, 1e10)], gradient=False),
    case("special.spherical_bessel_j0", [X], gradient=False), case("special.spherical_bessel_j0", [ODD[:8]], gradient=False),
    *[case(f"special.{n}", [floats(20, low=-1.5, high=1.5)], lambda t, x, n=n, k=k: getattr(t.special, n)(x, k), gradient=False, tolerance=2e-4)
      for k in (-1, 0, 1, 2, 7) for n in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
                                          "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")],
    *[case(f"special.{n}", [floats(20, low=0.1, high=0.9)], lambda t, x, n=n: getattr(t.special, n)(x, 4), gradient=False, tolerance=2e-4)
      for n in ("shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w")],
    *[case(f"special.{n}", [POSITIVE / 8]) for n in ("expit", "gammaln", "psi", "erf", "erfinv", "expm1", "log1p", "logit", "sinc")],
    case("special.multigammaln", [POSITIVE + 1], lambda t, x: t.special.multigammaln(x, 2)), case("special.polygamma", [POSITIVE], lambda t, x: t.special.polygamma(2, x)),
]
MOVEMENT = [
    *[case(n, [x], lambda t, x, n=n: getattr(t, n)(x, 2)) for n, x in (("hsplit", floats(3, 4)), ("hsplit", floats(4)), ("vsplit", floats(4, 3)), ("dsplit", CUBE))],
    *[case(n, [x], lambda t, x, n=n: getattr(t, n)(x, [1, 2])) for n, x in (("hsplit", X), ("vsplit", X), ("dsplit", CUBE))],
    case("t", [X]), case("t", [ROW]), case("t", [SCALAR]), case("diagflat", [X], lambda t, x: t.diagflat(x, -1)), case("diagflat", [SCALAR]),
    case("select_scatter", [CUBE, floats(2, 4)], lambda t, x, s: t.select_scatter(x, s, 1, -2)),
    case("slice_scatter", [CUBE, floats(2, 3, 2)], lambda t, x, s: t.slice_scatter(x, s, dim=-1, start=1, end=4, step=2)), case("slice_scatter", [X, floats(2, 5)], lambda t, x, s: t.slice_scatter(x, s, dim=0, start=1, end=3, step=1)),
    case("diagonal_scatter", [X, floats(2)], lambda t, x, s: t.diagonal_scatter(x, s, -1)), case("diagonal_scatter", [X, floats(3)], lambda t, x, s: t.diagonal_scatter(x, s, 2)),
    case("diagonal_scatter", [CUBE, floats(3, 2)], lambda t, x, s: t.diagonal_scatter(x, s, 0, 0, 2)),
    case("as_strided_scatter", [X, floats(2, 3)], lambda t, x, s: t.as_strided_scatter(x, s, (2, 3), (5, 1), 2), gradient=False),
    *[case("diff", [x], lambda t, x, n=n, d=d: t.diff(x, n, d)) for x, n, d in ((CUBE, 1, -1), (CUBE, 2, 0), (CUBE, 0, 1), (CUBE, 9, 1), (A, 1, 0), (BOOLS, 1, 1), (EMPTY, 1, 0))],
    case("diff", [X, floats(3, 2), floats(3, 1)], lambda t, x, p, a: t.diff(x, prepend=p, append=a)),
    case("block_diag", [X, ROW, SCALAR, floats(2, 1)]), case("broadcast_tensors", [X, ROW, SCALAR]), case("cartesian_prod", [ROW, floats(2), floats(3)]), case("cartesian_prod", [ROW]),
    *[case("combinations", [ROW], lambda t, x, r=r, w=w: t.combinations(x, r, w), gradient=0 < r < 6) for r, w in ((2, False), (3, True), (0, False), (5, False), (6, False), (1, True))],
    *[case(n, [], lambda t, n=n, a=a: getattr(t, n)(*a)) for n in ("tril_indices", "triu_indices") for a in ((3, 4), (4, 2, -1), (3, 5, 2), (0, 3), (3, 0), (3, 3, -5))],
    case("narrow_copy", [X], lambda t, x: t.narrow_copy(x, 1, 1, 3), gradient=False), case("concat", [X, Y], lambda t, x, y: t.concat((x, y), 1)), case("swapdims", [CUBE], lambda t, x: t.swapdims(x, 0, 2)),
    case("moveaxis", [CUBE], lambda t, x: t.moveaxis(x, 0, -1)), case("atleast_3d", [ROW]), case("row_stack", [X, Y], lambda t, x, y: t.row_stack((x, y))),
    case("masked_select", [X, BOOLS]), case("masked_select", [X, BOOLS[0]]), case("masked_select", [SCALAR, torch.tensor(True)]), case("masked_select", [EMPTY, EMPTY > 0]),
    case("isin", [A, of(1, 2, -3)]), case("isin", [A, B]), case("isin", [X, torch.cat([Y, X[:1]]).reshape(-1).repeat(9)], gradient=False), case("isin", [of(NAN, 1.0), of(NAN, 1.0)], gradient=False),
    case("isin", [A, of(1, 2, -3)], lambda t, x, e: t.isin(x, e, invert=True)), case("isin", [A, torch.empty(0)], gradient=False),
    case("logspace", [], lambda t: t.logspace(-2, 3, 11)), case("logspace", [], lambda t: t.logspace(0, 5, 6, base=2, dtype=t.int32)), case("logspace", [], lambda t: t.logspace(0, 3, 1)),
    case("logspace", [], lambda t: t.logspace(0, 3, 0)), case("logspace", [], lambda t: t.logspace(0, 3, 4, dtype=t.int32)),
]
PRODUCTS = [
    case("inner", [X, floats(2, 5)]), case("inner", [CUBE, floats(4)]), case("inner", [SCALAR, X]), case("inner", [A, B]),
    case("tensordot", [CUBE, floats(3, 4, 2)]), case("tensordot", [CUBE, floats(5)], lambda t, x, y: t.tensordot(x, y, 0)),
    case("tensordot", [CUBE, floats(4, 2, 6)], lambda t, x, y: t.tensordot(x, y, ([0, -1], [1, 0]))), case("tensordot", [floats(2, 0), floats(0, 3)], lambda t, x, y: t.tensordot(x, y, 1)),
    case("vander", [ROW], gradient=False), case("vander", [of(1.0, 0.0, -2.0)], lambda t, x: t.vander(x, 5, True), gradient=False), case("vander", [of(1, 2, 3)]), case("vander", [ROW], lambda t, x: t.vander(x, 0)),
    case("addmv", [floats(3), X, ROW], lambda t, x, m, v: t.addmv(x, m, v, beta=0.5, alpha=2)), case("addr", [X, floats(3), ROW], lambda t, x, a, b: t.addr(x, a, b, beta=2, alpha=0.5)),
    case("addbmm", [floats(3, 5), floats(2, 3, 4), floats(2, 4, 5)], lambda t, x, a, b: t.addbmm(x, a, b, beta=0.5, alpha=2)),
    case("addmv", [of(NAN, NAN, NAN), X, ROW], lambda t, x, m, v: t.addmv(x, m, v, beta=0), gradient=False), case("chain_matmul", [M, N, floats(4, 2)], lambda t, *m: t.chain_matmul(*m) if t is torch else t.chain_matmul(m)),
]
STATISTICS = [
    case("nansum", [ODD[:1]], gradient=False), case("nansum", [torch.where(BOOLS, X, torch.tensor(NAN))], lambda t, x: t.nansum(x, 1)), case("nansum", [A]),
    case("nanmean", [torch.where(BOOLS, X, torch.tensor(NAN))]), case("nanmean", [of(NAN, NAN)], gradient=False), case("nanmean", [CUBE], lambda t, x: t.nanmean(x, (0, 2), True)),
    *[case("dist", [X, Y], lambda t, x, y, p=p: t.dist(x, y, p), gradient=p > 0) for p in (0, 1, 2, 3, INF)], *[case("pdist", [X], lambda t, x, p=p: t.pdist(x, p) if t is tuff else F.pdist(x, p)) for p in (1, 2, 3, INF)],
    case("pdist", [X[:1]], lambda t, x: t.pdist(x) if t is tuff else F.pdist(x), gradient=False),
    case("pairwise_distance", [X, Y]), case("pairwise_distance", [X, ROW], lambda t, x, y: t.pairwise_distance(x, y, 1, 1e-6, True)),
    case("renorm", [X], lambda t, x: t.renorm(x, 2, 0, 1.5), tolerance=1e-4), case("renorm", [CUBE], lambda t, x: t.renorm(x, 1, 1, 3), tolerance=1e-4), case("renorm", [X], lambda t, x: t.renorm(x, INF, 1, 100)),
    case("trapezoid", [X]), case("trapezoid", [X, ROW]), case("trapezoid", [CUBE], lambda t, x: t.trapezoid(x, dx=0.5, dim=1)), case("trapezoid", [A]), case("trapezoid", [X, Y]), case("trapz", [X]),
    case("trapezoid", [X[:, :1]]), case("cumulative_trapezoid", [X]), case("cumulative_trapezoid", [X, ROW]), case("cumulative_trapezoid", [CUBE], lambda t, x: t.cumulative_trapezoid(x, dx=0.5, dim=0)),
    case("sum_to_size", [CUBE], lambda t, x: x.sum_to_size(3, 1)), case("sum_to_size", [CUBE], lambda t, x: x.sum_to_size(2, 3, 4)), case("cov", [X]), case("corrcoef", [X]), case("msort", [X]), case("cosine_similarity", [X, Y]),
]
LINALG = [
    case("linalg.lu", [M]), case("linalg.lu", [floats(2, 5, 3)], gradient=False), case("linalg.lu", [floats(2, 3, 5)], gradient=False), case("linalg.lu", [floats(2, 4, 4).double()], tolerance=1e-9),
    case("linalg.lu_factor", [floats(2, 5, 5)], gradient=False), case("linalg.lu_factor", [floats(5, 3)], gradient=False), case("linalg.lu_factor", [floats(3, 5)], gradient=False),
    case("linalg.lu_solve", [M, floats(4, 2)], lambda t, a, b: t.linalg.lu_solve(*[x.detach() for x in t.linalg.lu_factor(a)], b) if t is tuff else torch.linalg.lu_solve(*torch.linalg.lu_factor(a.detach()), b), tolerance=1e-4),
    case("linalg.lu_solve", [M, floats(2, 4)], lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a.detach()), b, left=False), tolerance=1e-4),
    case("cholesky_solve", [floats(4, 2), SPD], lambda t, b, a: t.cholesky_solve(b, t.linalg.cholesky(a)), tolerance=1e-4), case("cholesky_inverse", [SPD], lambda t, a: t.cholesky_inverse(t.linalg.cholesky(a)), tolerance=1e-4),
    case("cholesky_inverse", [SPD], lambda t, a: t.cholesky_inverse(t.linalg.cholesky(a, upper=True), True), tolerance=1e-4),
    *[case("linalg.matrix_exp", [x], tolerance=t) for x, t in ((M, 1e-4), (M.double() * 3, 1e-10), (floats(2, 3, 3) * 0.1, 2e-5), (torch.zeros(3, 3), 2e-5), (torch.empty(0, 0), 0))],
    case("linalg.householder_product", [floats(5, 3), floats(3)], tolerance=1e-4), case("linalg.householder_product", [floats(2, 5, 3), floats(2, 2)], gradient=False, tolerance=1e-4),
    case("linalg.tensorinv", [floats(4, 6, 8, 3)], gradient=False, tolerance=5e-3), case("linalg.tensorinv", [floats(4, 2, 2).double()], lambda t, a: t.linalg.tensorinv(a, ind=1), tolerance=1e-9),
    case("linalg.tensorsolve", [floats(2, 3, 6).double(), floats(2, 3).double()], tolerance=1e-9), case("linalg.tensorsolve", [floats(6, 2, 3).double(), floats(6).double()], tolerance=1e-9),
    case("linalg.vecdot", [CUBE, CUBE.flip(0)], lambda t, x, y: t.linalg.vecdot(x, y, dim=1)), case("linalg.vander", [X], lambda t, x: t.linalg.vander(x, N=3)), case("linalg.vander", [X]),
    case("linalg.diagonal", [CUBE], lambda t, x: t.linalg.diagonal(x, offset=1)), case("linalg.slogdet", [floats(2, 3, 3).double()], lambda t, x: t.linalg.slogdet(x)[1], tolerance=1e-9),
]
FUNCTIONAL = [
    case("bilinear", [floats(4, 3), floats(4, 5), floats(2, 3, 5), floats(2)], lambda t, *x: t.nn.functional.bilinear(*x)), case("embedding", [ints(3, 2, low=0, high=4), M], lambda t, i, w: t.nn.functional.embedding(i, w)),
    case("group_norm", [floats(2, 4, 3), floats(4), floats(4)], lambda t, x, w, b: t.nn.functional.group_norm(x, 2, w, b)), case("instance_norm", [floats(2, 4, 3)], lambda t, x: t.nn.functional.instance_norm(x)),
    case("pad", [X], lambda t, x: t.nn.functional.pad(x, (1, 2), value=3)), case("layer_norm", [X, ROW], lambda t, x, w: t.nn.functional.layer_norm(x, (5,), w)), case("batch_norm", [X, torch.zeros(5), torch.ones(5)], lambda t, x, m, v: t.nn.functional.batch_norm(x, m.detach(), v.detach())),
    case("unfold", [floats(1, 2, 4, 4)], lambda t, x: t.nn.functional.unfold(x, (2, 2))), case("dropout", [X], lambda t, x: t.nn.functional.dropout(x, 0.5, training=False)),
    *[case(n, [X], lambda t, x, n=n: getattr(t.nn.functional, n)(x)) for n in ("relu", "gelu", "silu", "mish", "softplus", "tanhshrink", "logsigmoid", "hardswish", "selu")],
]


class WithTorch(unittest.TestCase):
    def compare(self, c):
        ours, theirs = [here(x) for x in c.inputs], [x.clone() for x in c.inputs]
        if c.gradient:
            for x in (*ours, *theirs):
                if x.dtype.is_float if isinstance(x, tuff.Tensor) else x.is_floating_point():
                    x.requires_grad = True
        got, want = results_of(c.ours(*ours)), results_of(c.theirs(*theirs))
        self.assertEqual(len(got), len(want), c.name)
        for g, w in zip(got, want):
            self.close(c, g, w)
        if c.gradient:
            self.compare_gradients(c, got, want, ours, theirs)

    def close(self, c, got, want):
        label = f"{c.name} of {[tuple(x.shape) for x in c.inputs]}"
        self.assertEqual(tuple(got.shape), tuple(want.shape), label)
        if c.dtypes and want.dtype != torch.int64:  # positions are int32 here
            self.assertEqual(got.dtype.name, str(want.dtype).split(".")[1], label)
        g, w = there(got).double(), want.detach().double()
        finite = torch.isfinite(w)
        scale = max(1.0, float(w[finite].abs().max())) if finite.any() else 1.0
        equal = torch.isclose(g, w, rtol=c.tolerance, atol=c.tolerance * scale if scale < 1e6 else 0, equal_nan=True)
        self.assertTrue(bool(equal.all()), f"{label}:\n{g}\nrather than\n{w}\nof {c.inputs}")

    def compare_gradients(self, c, got, want, ours, theirs):
        pairs = [(g, w) for g, w in zip(got, want) if w.requires_grad]
        if not pairs:
            return
        loss = sum((w * weights_of(w)).sum() for g, w in pairs)
        loss.backward()
        sum((g * here(weights_of(w))).sum() for g, w in pairs).backward()
        for g, w in zip(ours, theirs):
            if w.grad is not None:
                self.assertIsNotNone(g.grad, f"{c.name}: no gradient")
                self.close(c, g.grad, w.grad)

    def run_all(self, cases):
        for number, c in enumerate(cases):
            with self.subTest(c.name, number=number):
                self.compare(c)

    def test_elementwise(self):
        self.run_all(ELEMENTWISE)

    def test_equal_ones_share_a_gradient(self):  # in PyTorch 2; 1.13's fmax gave all of it to the first
        for call in (tuff.fmax, tuff.fmin, tuff.maximum, tuff.minimum):
            a, b = tuff.tensor([1.0, 2.0], requires_grad=True), tuff.tensor([1.0, 2.0], requires_grad=True)
            call(a, b).sum().backward()
            self.assertEqual([a.grad.tolist(), b.grad.tolist()], [[0.5, 0.5]] * 2)

    def test_special(self):
        self.run_all(SPECIAL)

    def test_movement(self):
        self.run_all(MOVEMENT)

    def test_products(self):
        self.run_all(PRODUCTS)

    def test_statistics(self):
        self.run_all(STATISTICS)

    def test_linear_algebra(self):
        self.run_all(LINALG)

    def test_functional(self):
        self.run_all(FUNCTIONAL)


class InPlace(unittest.TestCase):
    # What a call needs beside the tensor.
    ARGUMENTS = {"addcmul": [Y, Z], "addcdiv": [Y, AWAY], "clamp_min": [0.25], "clamp_max": [0.25], "copysign": [Y], "cumsum": [1], "cumprod": [1], "floor_divide": [AWAY],
                 "fmod": [AWAY], "remainder": [AWAY], "lerp": [Y, 0.25], "polygamma": [1], "mvlgamma": [1], "pow": [2.0], "renorm": [2, 0, 1.5], "threshold": [0.1, 2.0],
                 "addmm": [floats(3, 4), floats(4, 5)], "addr": [floats(3), ROW], "heaviside": [Y], "hypot": [Y], "atan2": [Y], "nextafter": [Y], "xlogy": [POSITIVE],
                 "ldexp": [ints(3, 5)], "eq": [Y], "ne": [Y], "lt": [Y], "le": [Y], "gt": [Y], "ge": [Y], "logical_and": [Y], "logical_or": [Y], "logical_xor": [Y]}
    ELSEWHERE = {"addbmm", "baddbmm", "addmv", "rrelu", "i0", "mvlgamma", "polygamma", "leaky_relu", "elu", "celu", "hardtanh", "selu", "threshold"}

    def test_each_writes_the_tensor(self):
        from tuff import _names
        compared = 0
        for name in _names.IN_PLACE:
            if name in self.ELSEWHERE:
                continue
            integer = name.startswith("bitwise") or name in ("gcd", "lcm")
            start = A if integer else POSITIVE / 8 if name in ("acosh", "atanh", "log", "erfinv", "logit", "digamma", "lgamma") else X
            more = self.ARGUMENTS.get(name, [] if name == "bitwise_not" else [ints(3, 5, low=1, high=4)] if integer else [])
            x, y = here(start), start.clone()
            self.assertIs(getattr(x, f"{name}_")(*[here(m) if isinstance(m, torch.Tensor) else m for m in more]), x, name)
            getattr(y, f"{name}_")(*more)
            self.assertTrue(torch.allclose(there(x).double(), y.double(), rtol=1e-4, atol=1e-5, equal_nan=True), name)
            compared += 1
        self.assertGreater(compared, 70)

    def test_views_and_the_tensor_itself(self):
        x = tuff.tensor([[1.0, 2.0], [2.0, 8.0]])
        row = x[1]
        x.mul_(2)
        row.sqrt_()
        self.assertEqual(x.tolist(), [[2.0, 4.0], [2.0, 4.0]])
        x.copysign_(x)
        y = tuff.tensor([1.0, 2.0])
        x = tuff.tensor([5.0, 1.0]).clone()
        x.clamp_max_(y).neg_()
        self.assertEqual((x.tolist(), y.tolist()), ([-1.0, -1.0], [1.0, 2.0]))
        with self.assertRaises(tuff.InvalidArgument):
            tuff.tensor([1, 2]).sqrt_()


if __name__ == "__main__":
    unittest.main()
