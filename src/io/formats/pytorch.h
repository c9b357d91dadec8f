// PyTorch's checkpoints since 1.6: a zip archive with a pickle of the structure, PREFIX/data.pkl,
// and one member PREFIX/data/KEY per storage (pytorch.org/docs/stable/notes/serialization.html).
// Called by tensor_file; a pure function of the bytes.
#pragma once

#include "io/formats/zip.h"

namespace tuff::io {

inline constexpr size_t kMaxCheckpointDepth = 64, kMaxCheckpointItems = 1'000'000;
inline constexpr uint64_t kMaxCheckpointText = 64 << 20;  // bytes of all names and texts

bool is_pytorch(const std::vector<ZipMember>& members);
// Names are the keys on the way, joined by dots; of lists the positions. Numbers, texts and bools
// are metadata. `name`: of a checkpoint that is one tensor or value.
FileIndex read_pytorch(const ByteSource& source, std::vector<ZipMember> members,
                       const std::string& name);

}  // namespace tuff::io
