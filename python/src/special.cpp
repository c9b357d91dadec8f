// tuff.special: special functions.
#include <tuff/special.h>

#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

struct OfOne {
  const char* name;
  Tensor (*function)(const Tensor&);
  const char* doc;
};
constexpr OfOne kOfOne[] = {
    {"entr", &special::entr, "-x log(x); 0 at 0, -inf below."},
    {"erfcx", &special::erfcx, "exp(x^2) erfc(x), without overflow on the way."},
    {"ndtr", &special::ndtr, "The standard normal distribution's integral from -inf to x."},
    {"log_ndtr", &special::log_ndtr, "The logarithm of ndtr(), accurate also where it is small."},
    {"ndtri", &special::ndtri, "The inverse of ndtr()."},
    {"i0e", &special::i0e, "exp(-|x|) i0(x)"},
    {"i1", &special::i1, "The modified Bessel function of order 1."},
    {"i1e", &special::i1e, "exp(-|x|) i1(x)"},
    {"spherical_bessel_j0", &special::spherical_bessel_j0, "sin(x) / x, 1 at 0."},
};

struct OfDegree {
  const char* name;
  Tensor (*function)(const Tensor&, int64_t);
  const char* doc;
};
constexpr OfDegree kOfDegree[] = {
    {"chebyshev_polynomial_t", &special::chebyshev_polynomial_t,
     "Chebyshev's polynomial of the first kind of degree n."},
    {"chebyshev_polynomial_u", &special::chebyshev_polynomial_u,
     "Chebyshev's polynomial of the second kind of degree n."},
    {"chebyshev_polynomial_v", &special::chebyshev_polynomial_v,
     "Chebyshev's polynomial of the third kind of degree n."},
    {"chebyshev_polynomial_w", &special::chebyshev_polynomial_w,
     "Chebyshev's polynomial of the fourth kind of degree n."},
    {"shifted_chebyshev_polynomial_t", &special::shifted_chebyshev_polynomial_t,
     "chebyshev_polynomial_t() of 2 x - 1."},
    {"shifted_chebyshev_polynomial_u", &special::shifted_chebyshev_polynomial_u,
     "chebyshev_polynomial_u() of 2 x - 1."},
    {"shifted_chebyshev_polynomial_v", &special::shifted_chebyshev_polynomial_v,
     "chebyshev_polynomial_v() of 2 x - 1."},
    {"shifted_chebyshev_polynomial_w", &special::shifted_chebyshev_polynomial_w,
     "chebyshev_polynomial_w() of 2 x - 1."},
    {"hermite_polynomial_h", &special::hermite_polynomial_h,
     "The physicists' Hermite polynomial of degree n."},
    {"hermite_polynomial_he", &special::hermite_polynomial_he,
     "The probabilists' Hermite polynomial of degree n."},
    {"laguerre_polynomial_l", &special::laguerre_polynomial_l,
     "Laguerre's polynomial of degree n."},
    {"legendre_polynomial_p", &special::legendre_polynomial_p,
     "Legendre's polynomial of degree n."},
};

}  // namespace

void bind_special(py::module_& parent) {
  py::module_ m = parent.def_submodule("special", "Special functions.");
  for (const OfOne& f : kOfOne) m.def(f.name, f.function, arg("x"), f.doc);
  for (const OfDegree& f : kOfDegree) m.def(f.name, f.function, arg("x"), arg("n"), f.doc);
  m.def("xlog1py", py::overload_cast<const Tensor&, const Tensor&>(&special::xlog1py), arg("x"),
        arg("y"), "x log(1 + y), and 0 where x is 0.");
  m.def("xlog1py", py::overload_cast<const Tensor&, Number>(&special::xlog1py), arg("x"), arg("y"),
        "x log(1 + y), and 0 where x is 0.");
  m.def("zeta", &special::zeta, arg("x"), arg("q"),
        "Hurwitz' zeta function, the sum of (q + k)^-x over k = 0, 1, ...");
}

}  // namespace tuff::python
