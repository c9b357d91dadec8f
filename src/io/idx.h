// IDX files as MNIST ships them (yann.lecun.com/exdb/mnist), plain or gzip, and the labelled image
// sets made of them. Called by `tuff train digits`; the digit drawer fills the same ImageSet.
// Must never trust a header: every size is checked against the file before memory is taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tuff::io {

// An array of unsigned bytes, row-major, outermost extent first.
struct IdxArray {
  std::vector<uint32_t> extents;
  std::vector<uint8_t> bytes;
};

// `dims` is the number of dimensions that the file must have. IoError naming the file, the value
// and the rule if the file is missing, truncated, too long or no IDX array of unsigned bytes.
IdxArray read_idx(const std::string& path, uint32_t dims);
IdxArray parse_idx(std::span<const uint8_t> file, const std::string& name, uint32_t dims);

// Grey images with one label each; a pixel's value is byte / 255.
struct ImageSet {
  uint32_t count = 0, rows = 0, cols = 0;
  std::vector<uint8_t> pixels;  // [count, rows, cols]
  std::vector<uint8_t> labels;  // [count]
  std::span<const uint8_t> image(uint32_t index) const {
    return {pixels.data() + size_t{index} * rows * cols, size_t{rows} * cols};
  }
};
struct ImageSplit {
  ImageSet train, test;
  std::string origin;  // for the done line: a folder, or "drawn, seed 1"
};

inline constexpr uint32_t kMaxImages = 10'000'000;
inline constexpr uint32_t kMaxImageExtent = 1024;  // pixels
inline constexpr uint32_t kImageClasses = 10;

// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte,
// each with or without ".gz". IoError as read_idx; also if counts differ, a label is above 9, or
// the two sets have different extents.
ImageSplit load_idx_folder(const std::string& folder);

}  // namespace tuff::io
