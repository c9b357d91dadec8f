#include "render/spirv_runs.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <tuple>

#include "ir/walk.h"
#include "render/divisors.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr size_t kWordsTogether = 4;  // components of a vector

// Windows overlap: what several instances load is loaded once. `sorted` by base, gate and constant.
std::vector<SpirvAccess> each_once(const std::vector<SpirvAccess>& sorted) {
  std::vector<SpirvAccess> out;
  for (const SpirvAccess& a : sorted) {
    const bool known = !out.empty() && out.back().offset == a.offset && out.back().gate == a.gate;
    if (known)
      out.back().also.push_back(a.instance);
    else
      out.push_back(a);
  }
  return out;
}

// How many elements, at most so many, a word of an access has that begins there; 0 where it begins
// within a word. Narrow elements go as words of 32 or 16 bits, of which a vector holds more, and
// nobody knows whether an offset without proof is within one.
uint32_t elements_of_word(const Target& target, const SpirvValue& offset, DType t, size_t most) {
  const uint32_t bytes = static_cast<uint32_t>(size_bytes(t));
  if (bytes >= 4) return 1;
  const uint32_t least = target.features.storage16 && target.features.i16 ? 2 : 4;
  for (uint32_t n = 4 / bytes; n > 1 && n * bytes >= least; n /= 2) {
    if (n <= most && divides(n, offset.base, offset.divisor, offset.constant)) return n;
  }
  return 0;
}

// What begins with the first of them.
SpirvRun run_at(const Target& target, std::span<const SpirvAccess> all, const Node& index) {
  const SpirvAccess& first = all[0];
  const size_t most = static_cast<size_t>(target.elements_together(size_bytes(index.dtype)));
  const int64_t count = without_after(index.src(0).get())->get<ir::ParamArg>().count;
  size_t n = 1;
  while (n < all.size() && n < most && all[n].offset.base == first.offset.base &&
         all[n].gate == first.gate &&
         all[n].offset.constant == first.offset.constant + static_cast<int64_t>(n))
    ++n;
  n = std::bit_floor(n);
  const uint32_t per_word = elements_of_word(target, first.offset, index.dtype, n);
  // Only one 16-bit word at a time: compilers read several that are not known to begin a 32-bit
  // word with what stands around them.
  const bool narrow = per_word * size_bytes(index.dtype) < 4;
  n = std::min<size_t>(n, (narrow ? 1 : kWordsTogether) * per_word);
  // Element 0.. is read where the gate is false.
  if (per_word == 0 || (first.gate && count < static_cast<int64_t>(n))) return {{first}};
  return {{all.begin(), all.begin() + static_cast<ptrdiff_t>(n)}, per_word};
}

}  // namespace

uint32_t SpirvRun::alignment(DType t) const {
  const SpirvValue& offset = items[0].offset;
  int64_t elements = per_word;
  const auto proven = [&](int64_t n) {
    return divides(n, offset.base, offset.divisor, offset.constant);
  };
  while (2 * elements <= static_cast<int64_t>(items.size()) && proven(2 * elements)) elements *= 2;
  return static_cast<uint32_t>(elements * static_cast<int64_t>(size_bytes(t)));
}

std::vector<SpirvAccess> accesses_of(SpirvBody& b, const Node& index, LaneMask mask) {
  std::vector<SpirvAccess> out;
  for (int n = 0; n < b.space.count(mask); ++n) {
    SpirvAccess a{n, b.value(index.src(1).get(), mask, n), std::nullopt, {}};
    if (index.src_count > 2) a.gate = b.value(index.src(2).get(), mask, n).base;
    const int64_t lowest = std::max<int64_t>(index.src(1)->min, 0);
    a.least = std::max<int64_t>(a.offset.constant - lowest, 0);
    out.push_back(a);
  }
  // No offset of what is accessed is below the lowest: that of a base says most of it.
  std::map<Id, int64_t> least;
  for (const SpirvAccess& a : out) {
    if (a.gate) continue;
    const auto [it, fresh] = least.try_emplace(a.offset.base, a.least);
    if (!fresh) it->second = std::min(it->second, a.least);
  }
  for (SpirvAccess& a : out)
    if (!a.gate) a.least = least.at(a.offset.base);
  return out;
}

std::vector<SpirvRun> runs_of(const Target& target, std::vector<SpirvAccess> all, const Node& index,
                              bool loads) {
  const bool in_buffer = without_after(index.src(0).get())->op == Op::Param;
  std::vector<SpirvRun> out;
  // A bound buffer has one type, and a vector of it would claim an alignment that views do not
  // have.
  if (!in_buffer || target.elements_together(size_bytes(index.dtype)) == 1) {
    for (const SpirvAccess& a : all) out.push_back({{a}});
    return out;
  }
  std::stable_sort(all.begin(), all.end(), [](const SpirvAccess& a, const SpirvAccess& b) {
    return std::tuple(a.offset.base, a.gate.value_or(0), a.offset.constant) <
           std::tuple(b.offset.base, b.gate.value_or(0), b.offset.constant);
  });
  if (loads) all = each_once(all);
  for (std::span<const SpirvAccess> rest = all; !rest.empty();) {
    out.push_back(run_at(target, rest, index));
    rest = rest.subspan(out.back().items.size());
  }
  return out;
}

}  // namespace tuff::render
