// Elements of 8 and 16 bits on a Target that loads and stores words alone: a buffer is seen as
// words, the lowest byte first. A load takes its bits out of a word; a store writes its bits of one
// by a mask, so that neighbours written by other invocations stay, or a whole word where the lanes
// of one invocation fill it.
#include <algorithm>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lower/words.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Buffers alone: workgroup memory holds values in register form.
bool is_packed(const Node* memory, const TargetFeatures& f) {
  if (memory->op != Op::Param) return false;
  const size_t bytes = size_bytes(memory->dtype);
  return (bytes == 1 && !f.storage8) || (bytes == 2 && !f.storage16);
}

// Simplifies an offset's own arithmetic. Of what it loads nothing changes: that is lowered already,
// and a reduction in it would become a second one beside the kernel's other uses of it.
UOp simplify_offset(const UOp& offset) {
  UOpMap<UOp> stand_ins, loads;
  const std::vector<UOp> roots = {offset};
  for (const Node* n : toposort_gated(roots, [](const Node* n) { return n->op != Op::Load; })) {
    if (n->op != Op::Load) continue;
    const UOp memory = make(Op::Param, n->dtype, {}, ParamArg{-1 - int32_t(loads.size()), 1, {}});
    const UOp stand_in = make_load(make_index(memory, index_const(0)));
    stand_ins.emplace(UOp(n), stand_in);
    loads.emplace(stand_in, UOp(n));
  }
  if (loads.empty()) return simplify(offset);
  return substitute(simplify(substitute(offset, stand_ins)), loads);
}

class WordStorage {
 public:
  WordStorage(const UOp& ast, const TargetFeatures& f) : deps_(ast), f_(f) {}

  UOp operator()(const UOp& old, std::span<const UOp> src) {
    if (old->op == Op::Param && packed(old.get())) {
      const ParamArg& p = old->get<ParamArg>();
      const int64_t per_word = 4 / int64_t(size_bytes(old->dtype));
      return make(Op::Param, DType::U32, {},
                  ParamArg{p.slot, (p.count + per_word - 1) / per_word, p.device});
    }
    if (old->op == Op::After && packed_behind(old)) return make(Op::After, DType::U32, src);
    if (old->op == Op::Index && packed(without_after(old->src(0).get())))
      return word_index(old, src);
    if (old->op == Op::Load && packed_behind(old->src(0))) {
      return from_bits(shr(make_load(src[0]), shift_of(old->src(0))), old->dtype);
    }
    if (old->op == Op::Store && packed_behind(old->src(0))) return word_store(old, src);
    return {};
  }

 private:
  bool packed(const Node* memory) const { return is_packed(memory, f_); }
  bool packed_behind(const UOp& u) const {
    const Node* n = u.get();
    while (n->op == Op::After || n->op == Op::Index) n = n->src(0).get();
    return packed(n);
  }
  static int64_t per_word(const UOp& index) { return 4 / int64_t(size_bytes(index->dtype)); }

  UOp word_index(const UOp& old, std::span<const UOp> src) {
    const UOp offset = offset_[old.get()] = within_32_bits(src[1]);
    std::vector<UOp> out(src.begin(), src.end());
    out[1] = simplify_offset(floordiv(offset, per_word(old)));
    return make(Op::Index, DType::U32, out);
  }
  // An offset that is used, and not gated off, is one of an element of the buffer. So the low bits
  // say all, where the bounds of its parts (a row number read from memory) promise less.
  static UOp within_32_bits(const UOp& offset) {
    constexpr int64_t kBeyond = int64_t(1) << 31;
    return offset->min >= 0 && offset->max < kBeyond ? offset : floormod(offset, kBeyond);
  }
  // Bits from the word's lowest to the element's lowest.
  UOp shift_of(const UOp& index) const {
    const int64_t bits = 8 * int64_t(size_bytes(index->dtype));
    const UOp element = floormod(offset_.at(index.get()), per_word(index));
    return cast(simplify_offset(element * bits), DType::U32);
  }

  static DType bits_of(DType t) { return size_bytes(t) == 1 ? DType::U8 : DType::U16; }
  static UOp from_bits(const UOp& bits, DType t) {
    if (t == DType::Bool) return alu(Op::CmpNe, {word_and(bits, word(0xff)), word(0)});
    if (is_float(t)) return bitcast(cast(bits, bits_of(t)), t);
    return cast(bits, t);  // wraps: the bits above are dropped, the sign is extended
  }
  static UOp to_bits(const UOp& x) {
    const DType t = x->dtype;
    if (t == DType::Bool || is_unsigned(t)) return cast(x, DType::U32);
    if (is_float(t)) return cast(bitcast(x, bits_of(t)), DType::U32);
    return word_and(cast(x, DType::U32), word(size_bytes(t) == 1 ? 0xff : 0xffff));
  }

  UOp word_store(const UOp& old, std::span<const UOp> src) {
    const UOp &index = old->src(0), bits = to_bits(src[1]);
    if (const UOp lane = filling_lane(index)) return whole_word(index, src[0], bits, lane);
    const UOp shift = shift_of(index);
    const uint64_t element = size_bytes(index->dtype) == 1 ? 0xff : 0xffff;
    return make(Op::Store, DType::Void, {src[0], shl(bits, shift), shl(word(element), shift)});
  }

  // A lane range that walks exactly the elements of one word; empty if there is none.
  UOp filling_lane(const UOp& index) {
    const UOp& offset = offset_.at(index.get());
    for (const UOp& r : deps_.list(deps_.of(offset) & deps_.kinds(is_lane))) {
      if (!r->src(0)->is_const_int(per_word(index))) continue;
      if (index->src_count > 2 && (deps_.of(index->src(2)) & deps_.bit(r))) continue;
      const UOp base = simplify_offset(substitute(offset, {{r, index_const(0)}}));
      if (!simplify_offset(offset - base - r)->is_const_int(0)) continue;
      if (simplify_offset(floormod(base, per_word(index)))->is_const_int(0)) return r;
    }
    return {};
  }
  // The lanes' bits stand side by side: their sum is the word.
  UOp whole_word(const UOp& index, const UOp& place, const UOp& bits, const UOp& lane) {
    const int64_t width = 8 * int64_t(size_bytes(index->dtype));
    const UOp shifted = shl(bits, cast(lane * width, DType::U32));
    const UOp sum = make(Op::Reduce, DType::U32, {shifted, lane}, ReduceArg{Op::Add, {}});
    std::vector<UOp> src(place->src().begin(), place->src().end());
    src[1] = simplify_offset(substitute(src[1], {{lane, index_const(0)}}));
    return make_store(make(Op::Index, DType::U32, src), sum);
  }

  RangeDeps deps_;
  const TargetFeatures f_;
  std::unordered_map<const Node*, UOp> offset_;  // of Index nodes, in elements; the AST holds them
};

}  // namespace

void pass_word_storage(Lowering& l) {
  const TargetFeatures& f = l.target.features;
  if (f.storage8 && f.storage16) return;
  const std::vector<const Node*> order = toposort(l.ast);
  if (std::none_of(order.begin(), order.end(), [&](const Node* n) { return is_packed(n, f); }))
    return;
  WordStorage storage(l.ast, f);
  l.ast =
      rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) { return storage(old, src); });
}

}  // namespace tuff::kernel
