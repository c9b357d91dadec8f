#include "hcq/tlsf.h"

#include <bit>

#include "base/check.h"

namespace tuff::hcq {

Tlsf::Tlsf(size_t size_bytes) {
  for (auto& row : heads_) row.fill(kNone);
  TUFF_CHECK(size_bytes / kGranuleBytes > 0 && size_bytes / kGranuleBytes < kNone, "{}",
             size_bytes);
  uint32_t n = new_node();
  nodes_[n].length = static_cast<uint32_t>(size_bytes / kGranuleBytes);
  insert(n);
}

Tlsf::Class Tlsf::class_of(uint32_t length) {
  if (length < kSecondLevels) return {0, length};
  uint32_t log = std::bit_width(length) - 1;
  return {log - 3, (length >> (log - 4)) & (kSecondLevels - 1)};
}

uint32_t Tlsf::find(uint32_t length) {
  // The request's own class may hold a range that fits; a few entries are tried before the next
  // class, whose every range fits.
  Class own = class_of(length);
  uint32_t n = heads_[own.first][own.second];
  for (int tries = 0; n != kNone && tries < 8; ++tries, n = nodes_[n].next)
    if (nodes_[n].length >= length) return n;
  uint32_t seconds =
      second_bits_[own.first] & static_cast<uint32_t>(~((2u << own.second) - 1) & 0xffffu);
  uint32_t first = own.first;
  if (seconds == 0) {
    uint32_t firsts = first + 1 < 32 ? first_bits_ & ~((2u << first) - 1) : 0;
    if (firsts == 0) return kNone;
    first = std::countr_zero(firsts);
    seconds = second_bits_[first];
  }
  return heads_[first][std::countr_zero(seconds)];
}

uint32_t Tlsf::new_node() {
  if (spare_nodes_.empty()) {
    nodes_.emplace_back();
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  uint32_t n = spare_nodes_.back();
  spare_nodes_.pop_back();
  nodes_[n] = Node{};
  return n;
}

void Tlsf::insert(uint32_t n) {
  Class c = class_of(nodes_[n].length);
  uint32_t& head = heads_[c.first][c.second];
  nodes_[n].free = true;
  nodes_[n].previous = kNone;
  nodes_[n].next = head;
  if (head != kNone) nodes_[head].previous = n;
  head = n;
  second_bits_[c.first] |= static_cast<uint16_t>(1u << c.second);
  first_bits_ |= 1u << c.first;
}

void Tlsf::remove(uint32_t n) {
  Node& node = nodes_[n];
  Class c = class_of(node.length);
  if (node.previous != kNone) nodes_[node.previous].next = node.next;
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  uint32_t& head = heads_[c.first][c.second];
  if (head == n) head = node.next;
  if (head == kNone) {
    second_bits_[c.first] &= static_cast<uint16_t>(~(1u << c.second));
    if (second_bits_[c.first] == 0) first_bits_ &= ~(1u << c.first);
  }
  node.free = false;
}

uint32_t Tlsf::split(uint32_t n, uint32_t length) {
  uint32_t rest = new_node();
  Node& node = nodes_[n];
  Node& tail = nodes_[rest];
  tail.start = node.start + length;
  tail.length = node.length - length;
  tail.before = n;
  tail.after = node.after;
  if (node.after != kNone) nodes_[node.after].before = rest;
  node.after = rest;
  node.length = length;
  return rest;
}

void Tlsf::absorb_next(uint32_t n) {
  uint32_t gone = nodes_[n].after;
  nodes_[n].length += nodes_[gone].length;
  nodes_[n].after = nodes_[gone].after;
  if (nodes_[n].after != kNone) nodes_[nodes_[n].after].before = n;
  spare_nodes_.push_back(gone);
}

std::optional<size_t> Tlsf::allocate(size_t size_bytes, size_t alignment) {
  size_t granules = (size_bytes + kGranuleBytes - 1) / kGranuleBytes;
  if (granules == 0) granules = 1;
  uint32_t align =
      alignment <= kGranuleBytes ? 1 : static_cast<uint32_t>(alignment / kGranuleBytes);
  if (granules + align > kNone / 2) return std::nullopt;
  uint32_t length = static_cast<uint32_t>(granules);
  uint32_t n = find(length + align - 1);
  if (n == kNone) return std::nullopt;
  remove(n);
  uint32_t lead = (align - nodes_[n].start % align) % align;
  if (lead > 0) {
    uint32_t aligned = split(n, lead);
    insert(n);
    n = aligned;
  }
  if (nodes_[n].length > length) insert(split(n, length));
  used_granules_ += length;
  live_.emplace(nodes_[n].start, n);
  return size_t{nodes_[n].start} * kGranuleBytes;
}

size_t Tlsf::range_bytes(size_t offset) const {
  auto it = live_.find(static_cast<uint32_t>(offset / kGranuleBytes));
  TUFF_CHECK(it != live_.end(), "no live range at offset {}", offset);
  return size_t{nodes_[it->second].length} * kGranuleBytes;
}

size_t Tlsf::free(size_t offset) {
  auto it = live_.find(static_cast<uint32_t>(offset / kGranuleBytes));
  TUFF_CHECK(it != live_.end(), "freed twice, or never allocated: offset {}", offset);
  uint32_t n = it->second;
  live_.erase(it);
  uint32_t length = nodes_[n].length;
  used_granules_ -= length;
  if (uint32_t after = nodes_[n].after; after != kNone && nodes_[after].free) {
    remove(after);
    absorb_next(n);
  }
  if (uint32_t before = nodes_[n].before; before != kNone && nodes_[before].free) {
    remove(before);
    absorb_next(before);
    n = before;
  }
  insert(n);
  return size_t{length} * kGranuleBytes;
}

}  // namespace tuff::hcq
