// NumPy's .npy, versions 1.0 to 3.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Called by tensor_file and npz;
// a pure function of the bytes.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

inline constexpr uint64_t kMaxNpyHeader = 64 << 10;  // bytes; shapes of 64 axes take under 2 KiB

bool is_npy(const ByteSource& source);
// One array, whose data end with the file. IoError for types that are no numbers or bools: texts,
// objects, structures, complex numbers.
TensorEntry read_npy_array(const ByteSource& source);
// The size that the header declares; a file's beginning is enough: kMaxNpyHeader and a few bytes.
uint64_t npy_file_bytes(const ByteSource& head);
FileIndex read_npy(const ByteSource& source, const std::string& name);

// Magic, version and header, padded to 64 bytes. InvalidArgument for bfloat16, which NumPy has not.
std::vector<uint8_t> encode_npy_header(DType dtype, std::span<const int64_t> shape);

}  // namespace tuff::io
