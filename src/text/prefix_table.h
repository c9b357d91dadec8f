// Strings with numbers, of which those that a text begins with are found: the sorted list of them,
// narrowed byte by byte. Called by models and by the search for added tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::text {

class PrefixTable {
 public:
  void add(std::string_view text, int32_t value) { rows_.emplace_back(text, value); }
  // After the last add(). Of equal strings the first that was added counts.
  void sort() {
    std::ranges::stable_sort(rows_, {}, &Row::first);
    const auto equal = std::ranges::unique(rows_, {}, &Row::first);
    rows_.erase(equal.begin(), equal.end());
    firsts_.assign(257, 0);
    for (const Row& row : rows_)
      if (!row.first.empty()) firsts_[uint8_t(row.first[0]) + 1]++;
    firsts_[0] = uint32_t(!rows_.empty() && rows_[0].first.empty());
    for (size_t i = 1; i < firsts_.size(); i++) firsts_[i] += firsts_[i - 1];
  }
  bool empty() const { return rows_.empty(); }

  struct Match {
    size_t bytes = 0;
    int32_t value = -1;  // -1: there is none
  };
  // found(Match) for each that `text` begins with, shortest first.
  template <class F>
  void each_prefix(std::string_view text, F&& found) const {
    if (text.empty() || rows_.empty()) return;
    auto begin = rows_.begin() + firsts_[uint8_t(text[0])];
    auto end = rows_.begin() + firsts_[uint8_t(text[0]) + 1];
    for (size_t depth = 1; begin != end; depth++) {
      if (begin->first.size() == depth) {
        found(Match{depth, begin->second});
        ++begin;
      }
      if (depth == text.size()) return;
      const auto byte = uint8_t(text[depth]);
      begin = std::lower_bound(begin, end, byte, [depth](const Row& row, uint8_t b) {
        return uint8_t(row.first[depth]) < b;
      });
      end = std::upper_bound(begin, end, byte, [depth](uint8_t b, const Row& row) {
        return b < uint8_t(row.first[depth]);
      });
    }
  }
  Match longest(std::string_view text) const {
    Match longest;
    each_prefix(text, [&](Match m) { longest = m; });
    return longest;
  }

 private:
  using Row = std::pair<std::string, int32_t>;
  std::vector<Row> rows_;
  std::vector<uint32_t> firsts_;  // of each first byte, and behind the last
};

}  // namespace tuff::text
