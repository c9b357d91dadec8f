// The decoders of GGUF's types that number points of a grid. Called by dequantize, which has the
// others.
#pragma once

#include <tuff/tensor.h>

namespace tuff::io {

// blocks: U8 (n, bytes of a block) -> F32 (n, 256).
Tensor iq2_xxs(const Tensor& blocks);
Tensor iq2_xs(const Tensor& blocks);
Tensor iq2_s(const Tensor& blocks);
Tensor iq3_xxs(const Tensor& blocks);
Tensor iq3_s(const Tensor& blocks);
Tensor iq1_s(const Tensor& blocks);
Tensor iq1_m(const Tensor& blocks);

}  // namespace tuff::io
