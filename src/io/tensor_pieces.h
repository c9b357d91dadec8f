// The bytes of a tensor one piece after the other, whatever its size: from memory of any device, or
// from the file that it was loaded from. Called by save(). Must never know a format.
#pragma once

#include <tuff/tensor.h>
#include "io/formats/bytes.h"

namespace tuff::io {

inline constexpr uint64_t kTensorPieceBytes = 8 << 20;

// Row-major. A tensor of a file that was not read yet is read past its memory and stays unread; of
// one that is computed from such tensors neither they nor the result are kept. Any other one is
// realized. Throws what reading or computing it throws.
void for_each_piece(const Tensor& tensor, const ByteSink& sink);

}  // namespace tuff::io
