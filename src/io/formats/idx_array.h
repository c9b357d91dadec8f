// IDX (yann.lecun.com/exdb/mnist): a magic number with type and number of axes, big-endian extents
// and elements. Called by tensor_file; a pure function of the bytes. Labelled sets of images are
// io/idx.h's.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

bool is_idx(const ByteSource& source);
// The size that the header declares; a file's beginning is enough: four bytes for each of kMaxAxes.
uint64_t idx_file_bytes(const ByteSource& head);
FileIndex read_idx_array(const ByteSource& source, const std::string& name);

}  // namespace tuff::io
