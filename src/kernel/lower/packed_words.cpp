// Bytes that hold packed numbers, as the words that they are read in. Unrolled steps that read
// neighbouring bytes from where a word is proven to begin read the word, and bytes that are joined
// to a number are that number. What is taken out of a byte is then taken out of the word: shifts
// add up, masks meet. What becomes a float is not shifted at all.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lower/words.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

UOp number(int64_t v) { return int_const(DType::I32, v); }

// Bits may be shifted out, or into the sign: I32 is what offsets are made of, and compilers of C
// take for granted that those do not overflow.
UOp shifted_left(const UOp& x, int64_t n) {
  return cast(shl(cast(x, DType::U32), word(uint64_t(n))), DType::I32);
}

// Some bits of a byte of a word: (word >> byte >> shift) & mask, of I32. All bytes of the word are
// looked at alike.
struct Field {
  UOp word, byte, shift;
  int64_t mask = 0;    // below 256
  bool alone = false;  // the word has no other bits
};
UOp spelled(const Field& f) {
  return word_and(shr(f.word, alu(Op::Add, {f.byte, f.shift})), number(f.mask));
}
// The bits that a field has of each byte, in the lowest bits of that byte.
UOp all_bytes(const Field& f) {
  if (f.alone) return f.word;
  const auto mask = int32_t(uint32_t(f.mask) * 0x01010101u);
  return word_and(shr(f.word, f.shift), number(mask));
}

bool is_byte_load(const Node* n) {
  return n->op == Op::Load && n->dtype == DType::U8 && n->src(0)->op == Op::Index &&
         n->src(0)->src_count == 2 && n->src(0)->src(0)->op == Op::Param;
}

class BytesAsWords {
 public:
  // joins_halves: four bytes that begin at an even one are a word of two halves.
  BytesAsWords(const Target& t, bool joins_halves)
      : halves_(t.features.storage16 && t.features.i16), joins_halves_(joins_halves) {}
  // Whether two words were worked on as such.
  bool joins_fields() const { return joins_fields_; }

  UOp operator()(const UOp& old, std::span<const UOp> src) {
    switch (old->op) {
      case Op::Or: return old->dtype == DType::U16 ? joined_bytes(old) : joined_fields(old, src);
      case Op::Cast: return old->dtype == DType::I32 ? byte_as_int(old) : as_float(old, src);
      case Op::And: return masked(old, src);
      case Op::Shl:
      case Op::Shr: return shifted(old, src);
      default: return {};
    }
  }

 private:
  // The element of so many bytes at this offset, in bytes.
  static UOp load_word(const Node* byte_load, const UOp& offset, int64_t bytes) {
    const ParamArg& p = byte_load->src(0)->src(0)->get<ParamArg>();
    const DType t = bytes == 4 ? DType::I32 : DType::U16;
    const UOp memory = make(Op::Param, t, {}, ParamArg{p.slot, p.count / bytes, p.device});
    return cast(make_load(make_index(memory, simplify(floordiv(offset, bytes)))), DType::I32);
  }
  static bool is_multiple(const UOp& offset, int64_t n) {
    return simplify(floormod(offset, n))->is_const_int(0);
  }

  // low | (high << 8): two bytes of a number.
  UOp joined_bytes(const UOp& u) const {
    if (!halves_) return {};
    for (const size_t s : {0, 1}) {
      const UOp &low = u->src(s), &high = u->src(1 - s);
      if (high->op != Op::Shl || !high->src(1)->is_const_int(8)) continue;
      if (low->op != Op::Cast || high->src(0)->op != Op::Cast) continue;
      const Node *first = low->src(0).get(), *second = high->src(0)->src(0).get();
      if (!is_byte_load(first) || !is_byte_load(second)) continue;
      const UOp &offset = first->src(0)->src(1), &next = second->src(0)->src(1);
      if (!(first->src(0)->src(0) == second->src(0)->src(0)) || !is_multiple(offset, 2)) continue;
      if (!simplify(next - offset)->is_const_int(1)) continue;
      return cast(load_word(first, offset, 2), DType::U16);
    }
    return {};
  }

  // A range of unrolled steps that is in an offset so many times.
  static UOp lane_of_step(const LinearForm& f, int64_t step) {
    for (const auto& [r, factor] : f.terms) {
      const bool lane = r->op == Op::Range && kind_of(r.get()) == AxisKind::ReduceLane;
      if (factor == step && lane && r->src(0)->is_const()) return r;
    }
    return {};
  }
  // A byte that unrolled steps read beside others of a word: of four, which one load or two read,
  // or of two.
  std::optional<Field> field_of(const Node* load) const {
    if (!is_byte_load(load)) return {};
    const UOp& offset = load->src(0)->src(1);
    const LinearForm f = linear_form(offset);
    const UOp r = lane_of_step(f, 1);
    if (!r) return {};
    const int64_t size = r->src(0)->const_int();
    UOp in_word = simplify(floormod(r, 4));
    if (const UOp second = size == 2 ? lane_of_step(f, 2) : UOp();
        second && second->src(0)->const_int() % 2 == 0)
      in_word = simplify(r + floormod(second, 2) * 2);
    else if (size % 4 != 0)
      in_word = {};
    const auto field = [](const UOp& word, const UOp& byte) {
      return Field{word, cast(simplify(byte * 8), DType::I32), number(0), 0xff};
    };
    if (in_word) {
      const UOp begin = simplify(offset - in_word);
      if (is_multiple(begin, 4)) return field(load_word(load, begin, 4), in_word);
      if (halves_ && joins_halves_ && is_multiple(begin, 2)) {
        const UOp low = load_word(load, begin, 2), high = load_word(load, begin + 2, 2);
        return field(word_or(low, shifted_left(high, 16)), in_word);
      }
    }
    if (!halves_ || size % 2 != 0) return {};
    in_word = simplify(floormod(r, 2));
    const UOp begin = simplify(offset - in_word);
    if (!is_multiple(begin, 2)) return {};
    return field(load_word(load, begin, 2), in_word);
  }

  UOp named(const Field& f) {
    const UOp u = spelled(f);
    fields_.emplace(u, f);
    return u;
  }
  const Field* field(const UOp& u) const {
    const auto it = fields_.find(u);
    return it == fields_.end() ? nullptr : &it->second;
  }

  // A signed byte is what it is with the other sign bit, less 128; the sign bits of a word change
  // together.
  UOp byte_as_int(const UOp& u) {
    const UOp& x = u->src(0);
    const bool is_signed = x->op == Op::Bitcast && x->dtype == DType::I8;
    std::optional<Field> f = field_of(is_signed ? x->src(0).get() : x.get());
    if (!f) return {};
    if (!is_signed) return named(*f);
    f->word = alu(Op::Xor, {f->word, number(int32_t(0x80808080))});
    return alu(Op::Add, {named(*f), number(-128)});
  }

  // What is left of a field, or of one that is shifted.
  UOp masked(const UOp& old, std::span<const UOp> src) {
    if (old->dtype != DType::I32 || !src[1]->is_const() || src[1]->min < 0) return {};
    const int64_t mask = src[1]->const_int();
    if (const Field* f = field(src[0])) return named({f->word, f->byte, f->shift, f->mask & mask});
    if (src[0]->op != Op::Shr) return {};
    const UOp& by = src[0]->src(1);
    const Field* f = field(src[0]->src(0));
    // No bit from above the field.
    if (!f || by->min < 0 || by->max > 8 || (mask << by->max & ~f->mask) != 0) return {};
    return named({f->word, f->byte, alu(Op::Add, {f->shift, by}), mask});
  }
  UOp shifted(const UOp& old, std::span<const UOp> src) {
    const Field* f = old->dtype == DType::I32 ? field(src[0]) : nullptr;
    if (!f || !src[1]->is_const() || src[1]->min < 0 || src[1]->max > 8) return {};
    const int64_t by = src[1]->const_int();
    if (old->op == Op::Shr)
      return named({f->word, f->byte, alu(Op::Add, {f->shift, src[1]}), f->mask >> by});
    if (f->mask << by > 0xff) return {};
    return named({shifted_left(all_bytes(*f), by), f->byte, number(0), f->mask << by, true});
  }
  // Bits of two bytes, in all bytes of two words at once.
  UOp joined_fields(const UOp& old, std::span<const UOp> src) {
    const Field *a = field(src[0]), *b = field(src[1]);
    if (old->dtype != DType::I32 || !a || !b || !(a->byte == b->byte)) return {};
    joins_fields_ = true;
    const UOp both = word_or(all_bytes(*a), all_bytes(*b));
    return named({both, a->byte, number(0), a->mask | b->mask, true});
  }

  // A float between 2**23 and 2**24 has its fraction's lowest bits for units: an integer is written
  // there, and what was written around it subtracted, with what is added to it. Both are exact, and
  // of a word's bits 0 to 22 none has to be shifted: the unit of a smaller power of two is as much
  // smaller.
  UOp as_float(const UOp& old, std::span<const UOp> src) {
    if (old->dtype != DType::F32 || src[0]->dtype != DType::I32) return {};
    UOp x = src[0];
    int64_t added = 0;
    if (x->op == Op::Add && x->src(1)->is_const()) added = x->src(1)->const_int(), x = x->src(0);
    if (std::abs(added) >= kMost) return {};
    if (const Field* f = field(x)) return field_as_float(*f, added);
    const bool joined = x->op == Op::Or && x->min >= 0 && x->max < kMost;
    return joined ? without(word_or(x, number(kUnits)), number(kUnits), added) : UOp();
  }
  static bool is_unrolled(const UOp& x) {
    return std::ranges::all_of(toposort(x), [](const Node* n) {
      return n->op == Op::Range ? is_lane(kind_of(n)) : n->src_count > 0 || n->op == Op::Const;
    });
  }
  static UOp field_as_float(const Field& f, int64_t added) {
    const int bits = std::bit_width(uint64_t(f.mask));
    UOp word = f.word, low = alu(Op::Add, {f.byte, f.shift});
    // Masks are numbers: one for each unrolled step.
    if (!is_unrolled(f.shift)) word = shr(word, f.shift), low = f.byte;
    if (low->max + bits > kFraction) {
      if (kHalf - 1 + bits > kFraction) return {};
      word = shr(word, word_and(low, number(kHalf)));
      low = word_and(low, number(kHalf - 1));
    }
    const UOp in_place = word_and(word, shl(number(f.mask), low));
    const UOp around = alu(Op::Sub, {number(kUnits), shl(low, number(kFraction))});
    return without(word_or(in_place, around), around, added);
  }
  static UOp without(const UOp& written, const UOp& around, int64_t added) {
    const auto as_float = [](const UOp& bits) { return bitcast(bits, DType::F32); };
    const UOp rest = added ? alu(Op::Sub, {as_float(around), constant(DType::F32, double(added))})
                           : as_float(around);
    return alu(Op::Sub, {as_float(written), rest});
  }

  static constexpr int kFraction = 23, kHalf = 16;
  static constexpr int64_t kMost = int64_t(1) << 22, kUnits = 0x4b000000;  // the bits of 2**23

  const bool halves_, joins_halves_;  // words of 16 bits are loaded
  bool joins_fields_ = false;
  UOpMap<Field> fields_;
};

}  // namespace

void pass_packed_words(Lowering& l) {
  const Target& t = l.target;
  if (!t.has_local || t.elements_together(1) == 1) return;
  // To join two halves takes as many instructions as to look at both of them.
  for (const bool joins_halves : {false, true}) {
    BytesAsWords words(t, joins_halves);
    const UOp made =
        rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) { return words(old, src); });
    if (joins_halves || !words.joins_fields()) {
      l.ast = made;
      return;
    }
  }
}

}  // namespace tuff::kernel
