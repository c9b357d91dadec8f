// Movement ops, and what else of the tensor floor only moves: exact in every dtype.
#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::IntVec;
using ir::Op;
using ir::UOp;

using Move = UOp (*)(const Roots& x, const std::string& device);

struct MoveRow {
  Op op;
  const char* shape_name;
  std::vector<IntVec> shapes;  // of the inputs
  Move move;
};

const UOp& first(const Roots& x) { return x[0]; }

UOp copied_back(const Roots& x, const std::string& device) {
  const UOp there = ir::make(Op::Copy, x[0]->dtype, {x[0]}, ir::Placement{{"CPU"}});
  return ir::make(Op::Copy, x[0]->dtype, {there}, ir::Placement{{device}});
}

UOp iota_of(const Roots& x, const std::string& device) {
  return ir::make(Op::Contiguous, x[0]->dtype, {ir::iota(100, x[0]->dtype)},
                     ir::Placement{{device}});
}

UOp constant_of(const Roots& x, const std::string& device) {
  const DType t = x[0]->dtype;
  const UOp one = ir::expand(ir::reshape(ir::constant(t, 1), {1, 1}), {5, 7});
  return ir::make(Op::Contiguous, t, {one}, ir::Placement{{device}});
}

// The movement ops proper.
const std::vector<MoveRow>& movement_rows() {
  static const std::vector<MoveRow> table = {
      {Op::Reshape,
       "odd",
       {{3, 5, 7}},
       [](const Roots& x, const std::string&) {
         return ir::reshape(ir::permute(first(x), {1, 0, 2}), {7, 15});
       }},
      {Op::Reshape,
       "empty",
       {{3, 0, 7}},
       [](const Roots& x, const std::string&) { return ir::reshape(first(x), {0, 4}); }},
      {Op::Permute,
       "odd",
       {{3, 5, 7}},
       [](const Roots& x, const std::string&) { return ir::permute(first(x), {2, 0, 1}); }},
      {Op::Permute,
       "large",
       {{33, 257}},
       [](const Roots& x, const std::string&) { return ir::permute(first(x), {1, 0}); }},
      {Op::Expand,
       "odd",
       {{1, 5, 1}},
       [](const Roots& x, const std::string&) { return ir::expand(first(x), {3, 5, 7}); }},
      {Op::Expand,
       "empty",
       {{1, 5}},
       [](const Roots& x, const std::string&) { return ir::expand(first(x), {0, 5}); }},
      {Op::Pad,
       "odd",
       {{3, 5, 7}},
       [](const Roots& x, const std::string&) {
         return ir::pad(first(x), {{1, 0}, {0, 2}, {3, 1}});
       }},
      {Op::Pad,
       "empty",
       {{0, 5}},
       [](const Roots& x, const std::string&) { return ir::pad(first(x), {{1, 2}, {0, 0}}); }},
      {Op::Shrink,
       "odd",
       {{3, 5, 7}},
       [](const Roots& x, const std::string&) {
         return ir::shrink(first(x), {{1, 3}, {0, 5}, {2, 3}});
       }},
      {Op::Shrink,
       "empty",
       {{3, 5}},
       [](const Roots& x, const std::string&) {
         return ir::shrink(first(x), {{1, 1}, {0, 5}});
       }},
      {Op::Flip,
       "odd",
       {{3, 5, 7}},
       [](const Roots& x, const std::string&) { return ir::flip(first(x), {0, 2}); }},
      {Op::Flip,
       "scalar",
       {{1}},
       [](const Roots& x, const std::string&) { return ir::flip(first(x), {0}); }},
  };
  return table;
}

// What else only moves.
const std::vector<MoveRow>& other_rows() {
  static const std::vector<MoveRow> table = {
      {Op::Contiguous,
       "strided",
       {{17, 1031}},
       [](const Roots& x, const std::string&) {
         const UOp part = ir::permute(ir::shrink(first(x), {{0, 17}, {5, 9}}), {1, 0});
         return ir::make(Op::Contiguous, part->dtype, {part});
       }},
      {Op::Detach,
       "odd",
       {{3, 5}},
       [](const Roots& x, const std::string&) {
         return ir::make(Op::Detach, first(x)->dtype, {ir::flip(first(x), {1})});
       }},
      {Op::Copy, "odd", {{3, 5}}, copied_back},
      {Op::Assign,
       "odd",
       {{3, 5}, {3, 5}},
       [](const Roots& x, const std::string&) {
         return ir::make(Op::Assign, x[0]->dtype, {x[0], ir::flip(x[1], {0})});
       }},
      {Op::Iota, "odd", {{1}}, iota_of},
      {Op::Const, "odd", {{1}}, constant_of},
  };
  return table;
}

Case move_case(const MoveRow& r, DType t) {
  Case c;
  c.op = ir::name(r.op);
  c.dtype = t;
  c.dtypes = {t};
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), r.shape_name);
  c.inputs = [&r, t, name = c.name](uint64_t seed) {
    Draw draw(seed, name);
    Arrays arrays;
    for (const IntVec& s : r.shapes) arrays.push_back(draw_array(draw, t, s, Domain::Any));
    return arrays;
  };
  c.build = [move = r.move](const Roots& x, const std::string& device) -> Roots {
    return {move(x, device)};
  };
  return c;
}

}  // namespace

void append_movement_cases(std::vector<Case>& out) {
  for (const auto* rows : {&movement_rows(), &other_rows()}) {
    for (const MoveRow& r : *rows) {
      for (const DType t : memory_dtypes()) {
        // Counts are numbers.
        if (r.op != Op::Iota || t != DType::Bool) out.push_back(move_case(r, t));
      }
    }
  }
}

}  // namespace tuff::check
