#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tuff {
namespace {

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

// Optimal string alignment, by rows.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  constexpr size_t kLongest = 64;  // longer words are no typos, and time grows with both lengths
  if (word.size() > kLongest) return {};
  const std::string* best = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (!best || distance < least) best = &name, least = distance;
  }
  // One slip per three characters: beyond that it is another word.
  if (!best || least > std::max<size_t>(1, std::min(word.size(), best->size()) / 3)) return {};
  return "; did you mean " + *best + "?";
}

}  // namespace tuff
