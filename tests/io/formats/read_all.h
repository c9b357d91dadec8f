// Reads a file's index and touches every byte that it names, as a loader would. Called by the fuzz
// targets and the test of damaged files.
#pragma once

#include <algorithm>
#include <span>

#include "io/formats/format.h"
#include "io/formats/safetensors.h"
#include "io/formats/zip.h"

namespace tuff::io {

inline void touch(const ByteSource& source, const FileIndex& index) {
  for (const TensorEntry& t : index.tensors) {
    if (!t.member) {
      source.require(t.offset, t.size_bytes);
      continue;
    }
    const ZipMember& m = index.members.at(*t.member);
    TUFF_CHECK(t.offset <= m.size_bytes && t.size_bytes <= m.size_bytes - t.offset);
    // What inflates to a thousandfold is read in full where it is small.
    if (m.size_bytes > (1 << 20)) continue;
    std::vector<uint8_t> bytes(t.size_bytes);
    ZipMemberReader stream(source, m);
    stream.pass(t.offset);
    stream.fill(bytes);
    stream.finish();
  }
  for (const auto& [key, value] : index.metadata) (void)value.str();
}

inline void read_all(std::span<const uint8_t> bytes) {
  const MemoryBytes source("damaged", bytes);
  touch(source, read_index(source, "x"));
}

}  // namespace tuff::io
