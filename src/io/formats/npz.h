// NumPy's .npz: a zip archive with an array in each member NAME.npy. Called by tensor_file.
#pragma once

#include "io/formats/zip.h"

namespace tuff::io {

FileIndex read_npz(const ByteSource& source, std::vector<ZipMember> members);

}  // namespace tuff::io
