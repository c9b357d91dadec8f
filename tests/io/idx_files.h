// Writes IDX files and gzip streams for what reads them. Called by tests of io and by export_digits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/idx.h"

namespace tuff::io {

std::vector<uint8_t> gzip_compress(std::span<const uint8_t> bytes);
std::vector<uint8_t> encode_idx(const IdxArray& array);
void write_idx(const std::string& path, const IdxArray& array);  // gzip if path ends in ".gz"
void write_idx_folder(const std::string& folder, const ImageSplit& split, bool gzip);

}  // namespace tuff::io
