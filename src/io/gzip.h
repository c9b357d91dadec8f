// gzip streams (RFC 1952) in memory, through zlib. Called by idx; tests write damaged ones.
// Must never trust a size that the stream announces.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tuff::io {

bool is_gzip(std::span<const uint8_t> bytes);

// All members one after the other. IoError naming `name` if the stream is damaged, ends early or
// inflates to more than max_bytes.
std::vector<uint8_t> gzip_decompress(std::span<const uint8_t> bytes, const std::string& name,
                                     uint64_t max_bytes);
std::vector<uint8_t> gzip_compress(std::span<const uint8_t> bytes);

}  // namespace tuff::io
