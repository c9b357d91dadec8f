// The keys or the values of a layer, in pages that sequences share. Called by the decoder and the
// reader of pages. Must never know layers, or what pages hold.
#pragma once

#include <string>

#include <tuff/tensor.h>

namespace tuff::language {

// Positions of a page of keys and values.
constexpr int64_t kPagePositions = 32;

class KvPages {
 public:
  // Zeros, since a page is read as a whole; memory of its own, which equal zeros would share until
  // they are written.
  KvPages(DType dtype, int64_t pages, int64_t heads, int64_t size, const std::string& device);
  // (rows, heads, size) of F32, in these slots (rows), which are counted through all pages.
  void put(const Tensor& slots, const Tensor& rows);
  // They again.
  Tensor rows(const Tensor& slots) const;
  // (sequences, heads, positions, size) by a table (sequences, pages) of the pages of each.
  Tensor of(const Tensor& table) const;
  // What is to be computed, for who captures it.
  const Tensor& memory() const { return numbers_; }

 private:
  Tensor numbers_;  // (slots, heads, size)
};

}  // namespace tuff::language
