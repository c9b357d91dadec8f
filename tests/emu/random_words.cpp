#include "emu/random_words.h"

namespace tuff::emu::rdna {
namespace {

struct Prefix {
  uint32_t value;
  int number_at;
  int words;
  uint32_t keep;  // bits that are not for chance to set
};

Prefix prefix_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::SOP1: return {0xBE800000, 8, 1, 0xFF80FF00};
    case Encoding::SOP2: return {0x80000000, 23, 1, 0xFF800000};
    case Encoding::SOPK: return {0xB0000000, 23, 1, 0xFF800000};
    case Encoding::SOPC: return {0xBF000000, 16, 1, 0xFFFF0000};
    case Encoding::SOPP: return {0xBF800000, 16, 1, 0xFFFF0000};
    case Encoding::SMEM: return {0xF4000000, 18, 2, 0xFFFC0000};
    case Encoding::VOP1: return {0x7E000000, 9, 1, 0xFE01FE00};
    case Encoding::VOP2: return {0x00000000, 25, 1, 0xFE000000};
    case Encoding::VOPC: return {0x7C000000, 17, 1, 0xFFFE0000};
    case Encoding::VOP3: return {0xD4000000, 16, 2, 0xFFFF0000};
    case Encoding::VOP3P: return {0xCC000000, 16, 2, 0xFFFF0000};
    case Encoding::DS: return {0xD8000000, 18, 2, 0xFFFC0000};
    case Encoding::FLAT: return {0xDC000000, 18, 2, 0xFFFF0000};
    case Encoding::SCRATCH: return {0xDC010000, 18, 2, 0xFFFF0000};
    case Encoding::GLOBAL: return {0xDC020000, 18, 2, 0xFFFF0000};
    case Encoding::MUBUF: return {0xE0000000, 18, 2, 0xFFFC0000};
    case Encoding::VOPDX: return {0xC8000000, 22, 2, 0xFFC00000};
    case Encoding::VOPDY: return {0xC8000000, 17, 2, 0xFC3E0000};
  }
  return {};
}

uint32_t random_word(SplitMix64& random) {
  // Fields that an instruction does not have must be zero: so are random bytes.
  uint32_t word = uint32_t(random.next());
  for (int at = 0; at < 32; at += 8) {
    if (random.below(3) == 0) word &= ~(255u << at);
  }
  return word;
}

}  // namespace

std::vector<uint32_t> random_words(const OpcodeRow& row, SplitMix64& random) {
  const Prefix prefix = prefix_of(row.encoding);
  std::vector<uint32_t> words{random_word(random), random_word(random), random_word(random)};
  words[0] = (words[0] & ~prefix.keep) | prefix.value | uint32_t(row.number) << prefix.number_at;
  if (row.encoding == Encoding::VOPDX) words[0] = (words[0] & ~0x3E0000u) | 3u << 17;
  if (row.encoding == Encoding::VOPDY) words[0] |= 3u << 22;
  const bool vector_source = random.below(2) == 0;
  if (prefix.words == 1 && row.encoding >= Encoding::VOP1 && vector_source) words[0] |= 256;
  if (random.below(10) == 0 && row.encoding >= Encoding::VOP1 && row.encoding <= Encoding::VOPC) {
    words[0] = (words[0] & ~0x1FFu) | source::Literal;
  }
  if (prefix.words == 2 && row.encoding >= Encoding::VOP3 && row.encoding < Encoding::DS &&
      vector_source) {
    words[1] |= 1 << 8 | 1 << 17 | 1 << 26;
  }
  if (row.encoding == Encoding::VOP3 || row.encoding == Encoding::VOP3P) {
    if (random.below(2) == 0) words[0] &= ~0xFF00u;  // no modifiers
    if (random.below(2) == 0) words[1] &= ~0xF8000000u;
    if (random.below(3) == 0) words[1] &= random.below(2) ? 0x3FFFF : 0x1FF;  // fewer sources
    if (random.below(4) == 0) words[0] = (words[0] & ~0xFFu) | source::ExecLo;
  }
  if (row.encoding == Encoding::VOP3P && random.below(3) == 0) {
    words[0] = (words[0] & ~0xFF00u) | 1 << 14;  // as matrix instructions want it
    words[1] = (words[1] & 0x07FFFFFFu) | 3u << 27 | 1 << 8 | 1 << 17 | 1 << 26;
    if (random.below(2) == 0) words[1] &= ~(0x1FFu << 18);
  }
  if (row.encoding >= Encoding::SMEM && random.below(6) == 0) {
    words[0] &= prefix.keep;
    words[1] = random.below(2) ? 0 : words[1] & 0xFF;
  }
  if (row.encoding >= Encoding::FLAT && random.below(2) == 0) {
    words[1] = (words[1] & ~0x7F0000u) | 0x7C0000;
  }
  return words;
}

}  // namespace tuff::emu::rdna
