// What is compiled for AVX2 and FMA computes what is compiled for any x86-64, bit by bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>

#include <tuff/error.h>
#include "emu/random_words.h"
#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

// Bits of all kinds, small numbers, floats and halves near one: of values that are alike much
// rounds, carries and compares equal.
uint32_t random_bits(SplitMix64& random) {
  const auto bits = uint32_t(random.next());
  switch (random.below(4u)) {
    case 0: return bits;
    case 1: return bits % 64;
    case 2: return (bits & 0x80FFFFFF) | 0x3F000000;
    default: return (bits & 0x83FF83FF) | 0x3C003C00;
  }
}

std::unique_ptr<Wave> random_wave(SplitMix64& random) {
  auto w = std::make_unique<Wave>();
  for (Words& words : w->v) {
    for (uint32_t& word : words) word = random_bits(random);
  }
  for (uint32_t& word : w->s) word = random_bits(random);
  w->v_written.fill(~0u);
  w->s_written.fill(true);
  if (random.below(2u)) w->s[source::ExecLo] = ~0u;
  w->mode = random.below(2u) ? kDefaultMode : uint32_t(random.next()) & kKnownModeBits;
  return w;
}

std::optional<Instruction> random_instruction(const OpcodeRow& row, SplitMix64& random) {
  try {
    const Instruction i = decode(random_words(row, random));
    if (i.row == &row && !i.second) return i;
  } catch (const Unsupported&) {}
  return std::nullopt;
}

bool is_nan32(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }
bool is_nan16(uint32_t bits) { return (bits & 0x7FFF) > 0x7C00; }
bool is_nan64(const Wave& w, size_t k, size_t lane) {
  return k + 1 < w.v.size() && (w.v[k + 1][lane] & 0x7FF00000) == 0x7FF00000;
}

// Of two NaNs IEEE leaves open which comes out.
bool same_lane(const Wave& a, const Wave& b, size_t k, size_t lane) {
  const uint32_t x = a.v[k][lane], y = b.v[k][lane];
  if (x == y || (is_nan32(x) && is_nan32(y))) return true;
  const auto same_half = [&](int shift) {
    const uint32_t p = x >> shift & 0xFFFF, q = y >> shift & 0xFFFF;
    return p == q || (is_nan16(p) && is_nan16(q));
  };
  return (same_half(0) && same_half(16)) || (is_nan64(a, k, lane) && is_nan64(b, k, lane));
}

bool same(const Wave& a, const Wave& b, std::string& where) {
  for (size_t k = 0; k < a.v.size(); ++k) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (same_lane(a, b, k, lane)) continue;
      where = fmt::format("v{} lane {}: {:#x} and {:#x}", k, lane, a.v[k][lane], b.v[k][lane]);
      return false;
    }
  }
  where = "scalar registers";
  return a.s == b.s && a.scc == b.scc;
}

TEST(WideRows, ComputeWhatTheOthersCompute) {
  if (!processor_has_avx2()) GTEST_SKIP() << "no AVX2: the rows for it are never called";
  SplitMix64 random(11);
  std::set<Op> covered;
  auto narrow = std::make_unique<Wave>(), wide = std::make_unique<Wave>();
  for (const OpcodeRow& row : opcode_rows()) {
    const Handler* handler = find_handler(row.op);
    if (!handler || !handler->with_avx2) continue;
    for (int round = 0; round < 30; ++round) {
      const auto i = random_instruction(row, random);
      if (!i) continue;
      *narrow = *wide = *random_wave(random);
      handler->execute(*narrow, *i);
      handler->with_avx2(*wide, *i);
      std::string where;
      ASSERT_TRUE(same(*narrow, *wide, where)) << to_text(*i) << ": " << where;
      covered.insert(row.op);
    }
  }
  EXPECT_GT(covered.size(), 250u);
}

}  // namespace
}  // namespace tuff::emu::rdna
