// Integers of 4 bits: functions of the package.
#include <tuff/int4.h>

#include "module.h"

namespace tuff::python {

using py::arg;

void bind_int4(py::module_& m) {
  m.def("pack_int4", &pack_int4, arg("x"), arg("dim") = -1,
        "Two neighbours along dim in each byte, the first in the low half; of integers the low four "
        "bits.");
  m.def("unpack_int4", &unpack_int4, arg("packed"), arg("signed") = true, arg("dim") = -1,
        "pack_int4() back: int8 in -8..7, or uint8 in 0..15.");
  m.def(
      "quantize_int4",
      [](const Tensor& weight, int64_t group_size, bool symmetric) {
        const Int4Weight w = quantize_int4(weight, group_size, symmetric);
        return py::make_tuple(w.packed, w.scales, shown(w.zeros));
      },
      arg("weight"), arg("group_size") = 32, arg("symmetric") = false,
      "(packed, scales, zeros) of a weight (out, in): w = (q - zero) * scale with q in 0..15, a scale "
      "and a zero point for each group_size numbers of a row; zeros is None where they are all 8.");
  m.def(
      "dequantize_int4",
      [](const Tensor& packed, const Tensor& scales, const MaybeTensor& zeros,
         int64_t group_size) { return dequantize_int4(packed, scales, given(zeros), group_size); },
      arg("packed"), arg("scales"), arg("zeros") = py::none(), arg("group_size") = 32,
      "(q - zero) * scale: what quantize_int4() was given, nearly.");
  m.def(
      "linear_int4",
      [](const Tensor& x, const Tensor& packed, const Tensor& scales, const MaybeTensor& zeros,
         int64_t group_size, const MaybeTensor& bias) {
        return linear_int4(x, packed, scales, given(zeros), group_size, given(bias));
      },
      arg("x"), arg("packed"), arg("scales"), arg("zeros") = py::none(), arg("group_size") = 32,
      arg("bias") = py::none(),
      "x @ dequantize_int4(...).T + bias; the weight is decoded where the product reads it.");
}

}  // namespace tuff::python
