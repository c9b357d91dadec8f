// The keys or the values of a layer, in pages that sequences share. Called by the decoder and the
// reader of pages. Must never know layers, or what pages hold.
#pragma once

#include <string>
#include <vector>

#include <tuff/language.h>

namespace tuff::language {

// InvalidArgument for heads of so many elements that blocks of the type do not divide.
void require_cache(CacheType type, int64_t head_size);

// Positions of a page of keys and values.
constexpr int64_t kPagePositions = 32;

class KvPages {
 public:
  // Zeros, since a page is read as a whole; memory of its own, which equal zeros would share until
  // they are written.
  KvPages(CacheType type, int64_t pages, int64_t heads, int64_t size, const std::string& device);
  // (rows, heads, size) of F32, in these slots (rows), which are counted through all pages.
  void put(const Tensor& slots, const Tensor& rows);
  // They again.
  Tensor rows(const Tensor& slots) const;
  // (sequences, heads, positions, size) by a table (sequences, pages) of the pages of each.
  Tensor of(const Tensor& table) const;
  // All of its tensors, for who captures what is written to them.
  std::vector<Tensor> memory() const;

 private:
  bool in_blocks() const { return scales_.defined(); }
  Tensor numbers_;  // (slots, heads, size)
  Tensor scales_;   // (slots, heads, blocks); undefined: numbers are not in blocks
};

}  // namespace tuff::language
