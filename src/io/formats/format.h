// Which format a file is, by its first bytes, and its index. Called by tensor_file and the tests.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

// `name` is given to what the format leaves without: the array of an .npy, an IDX file, a
// checkpoint of one tensor. IoError for no format that tuff knows.
FileIndex read_index(const ByteSource& source, const std::string& name);

}  // namespace tuff::io
