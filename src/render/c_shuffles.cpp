#include "render/c_shuffles.h"

#include <numeric>

#include <fmt/format.h>

namespace tuff::render {

std::string shuffled(CBody& b, const std::string& first, const std::string& second, DType t,
                     std::span<const int> lanes) {
  std::string text;
  for (const int l : lanes) text += fmt::format(", {}", l);
  return b.define(b.type_of(t, static_cast<int>(lanes.size())),
                  fmt::format("__builtin_shufflevector({}, {}{})", first, second, text));
}

std::string joined(CBody& b, std::vector<std::string> parts, DType t, int n) {
  for (; parts.size() > 1; n *= 2) {
    std::vector<int> lanes(static_cast<size_t>(2 * n));
    std::iota(lanes.begin(), lanes.end(), 0);
    std::vector<std::string> next;
    for (size_t p = 0; p < parts.size(); p += 2)
      next.push_back(shuffled(b, parts[p], parts[p + 1], t, lanes));
    parts = std::move(next);
  }
  return parts[0];
}

// log2(n) rounds; each interleaves the first half of the vectors with the second, so that an
// element's lane and vector numbers, taken as one, turn by one bit.
std::vector<std::string> transposed(CBody& b, std::vector<std::string> rows, DType t) {
  const int n = static_cast<int>(rows.size()), half = n / 2;
  std::vector<int> low, high;
  for (int l = 0; l < half; ++l) {
    low.insert(low.end(), {l, l + n});
    high.insert(high.end(), {l + half, l + half + n});
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<std::string> next;
    for (int v = 0; v < half; ++v)
      for (const std::vector<int>& lanes : {low, high})
        next.push_back(shuffled(b, rows[v], rows[v + half], t, lanes));
    rows = std::move(next);
  }
  return rows;
}

std::string every_nth(CBody& b, const std::vector<std::string>& vectors, DType t, int first,
                      int width) {
  const int n = static_cast<int>(vectors.size());
  std::string all = vectors[0];
  for (int v = 1; v < n; ++v) {
    std::vector<int> lanes;
    for (int l = 0; l < width; ++l) {
      const int element = l * n + first;
      const bool begins = v == 1 && element < width, here = element / width == v;
      lanes.push_back(begins ? element : here ? element % width + width : l);
    }
    all = shuffled(b, all, vectors[static_cast<size_t>(v)], t, lanes);
  }
  return all;
}

std::vector<int> interleaved_lanes(int v, int n, int width) {
  std::vector<int> lanes;
  for (int l = 0; l < width; ++l) lanes.push_back((v * width + l) / n);
  return lanes;
}

}  // namespace tuff::render
