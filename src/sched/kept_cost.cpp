#include "sched/kept_cost.h"

#include <algorithm>
#include <bit>

#include "base/cost.h"

namespace tuff::sched {

namespace {

constexpr int64_t kLeastColumns = 16, kLeastRows = 4;
// Where rows are read part by part: how much of each is kept at once, and how many rows are.
constexpr int64_t kSlabColumns = 64, kMostRows = 64;
constexpr int64_t kCopiesBytes = 8 << 10;  // of factors, beside what is kept

bool has_short_sum(const KeptWork& w) {
  return std::ranges::any_of(w.lengths, [](int64_t n) { return n < kLeastLength; });
}
int64_t summed(const KeptWork& w) {
  int64_t all = 0;
  for (const int64_t n : w.lengths) all += n;
  return all;
}

// Some number of invocations takes all columns of what is stored at once, a few each.
bool takes_slabs(const KeptWork& w) {
  constexpr int64_t kMostEach = 4, kMostResults = 2;
  if (w.results > kMostResults) return false;
  for (int64_t n = 8; n <= kSlabColumns; n *= 2) {
    if (w.width % n == 0 && w.width / n <= kMostEach) return true;
  }
  return false;
}

}  // namespace

bool fits_cache(const Target& t, const KeptWork& w, bool again) {
  if (w.columns < kLeastColumns || w.columns % cost::cpu::lanes(t) != 0) return false;
  if (w.matrices == 0 || w.width < kLeastLength || has_short_sum(w)) return false;
  const int64_t rows = w.kept * kRowsTogether;
  const int64_t all = rows + 2 + w.width * w.results + summed(w);
  if (double(all * w.columns * 4) > double(t.shared_bytes)) return false;
  const auto cores = int64_t(t.cores);
  if (w.matrices < kMatricesPerCore * cores && w.rows / w.matrices < kRowsOfCopy * cores)
    return false;
  if (w.is_one_sweep()) return true;
  const double cache = t.l2_bytes ? double(t.l2_bytes) * kCacheShare : double(t.shared_bytes);
  return double((again ? rows : all) * w.columns * 4) <= cache;
}

std::optional<double> reads_by_tiles(const Target& t, const KeptWork& w) {
  const bool stores_values = w.matrices == 0;
  if (w.columns < kLeastColumns || !w.fixed_rows || has_short_sum(w)) return {};
  if (w.width < kLeastLength && !stores_values) return {};
  if (w.rows < kSharedRowsPerCore * int64_t(t.cores)) return {};
  const int64_t room = std::max<int64_t>(int64_t(t.shared_bytes) - kCopiesBytes, 0);
  const bool slabs = (stores_values || takes_slabs(w)) && w.is_one_sweep();
  if (!w.fixed_columns && (!slabs || stores_values || w.across != 1)) return {};
  const int64_t elements = slabs ? std::min(w.columns, kSlabColumns) : w.columns;
  const int64_t together =
      std::min(room / (w.kept_at_once * elements * 4), slabs ? kMostRows : w.rows);
  if (together < kLeastRows) return {};
  if (!stores_values && w.rows / w.matrices <= together) return 0;
  const int64_t read = summed(w) + (stores_values ? 0 : w.width * w.results);
  return double(read) / double(std::bit_floor(uint64_t(together)));
}

bool multiplies_rows(const Target& t, const MatrixShape& s, const KeptWork& w) {
  // What is worth it: a tile of rows, columns at once, rows that share a copy of factors.
  constexpr int64_t kRows = 64, kColumns = 32, kSharing = 32, kPad = 16;
  const auto k = int64_t(s.k), narrow = int64_t(size_bytes(s.a));
  if (t.held_bytes(s.a) != narrow || w.results != 1 || w.across != 1 || w.lengths.size() != 1)
    return false;
  const int64_t length = w.lengths[0];
  if (w.row_length < kRows || w.columns < kColumns || length % k != 0 || length < 2 * k ||
      w.width % int64_t(s.n) != 0)
    return false;
  // A matrix of rows in the registers of a subgroup, and factors of them.
  const int64_t held = int64_t(s.m) * (w.width + 3 * kColumns) / int64_t(t.subgroup_size);
  const bool by_elements = w.by_elements || w.row_length % kRows != 0;
  const int64_t bytes = kSharing * (4 * kColumns + kPad) + kSharing * (narrow * kColumns + kPad) +
                        (kSharing + kColumns) * (narrow * length + kPad) +
                        w.width * (narrow * kColumns + kPad) +
                        (by_elements ? kSharing * (4 * w.width + kPad) : 0);
  return held + cost::kOtherRegisters <= cost::most_registers(t) &&
         bytes <= int64_t(t.shared_bytes);
}

}  // namespace tuff::sched
