// Movement ops, and what else of the tensor floor only moves: exact in every dtype.
#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::IntVec;
using ir::Op;
using ir::UOp;
using Operand = const UOp&;

// What moves one operand.
struct MoveRow {
  Op op;
  const char* shape_name;
  IntVec shape;  // of the operand
  UOp (*move)(Operand x);
};

UOp reshaped(Operand x) { return ir::reshape(ir::permute(x, {1, 0, 2}), {7, 15}); }

UOp stored_strided(Operand x) {
  const UOp part = ir::permute(ir::shrink(x, {{0, 17}, {5, 9}}), {1, 0});
  return ir::make(Op::Contiguous, part->dtype, {part});
}

UOp detached(Operand x) { return ir::make(Op::Detach, x->dtype, {ir::flip(x, {1})}); }

UOp marked(Operand x) { return ir::make(Op::Mark, x->dtype, {ir::flip(x, {1})}, int64_t{0}); }

// Of what is computed, and of memory.
UOp read_again(Operand x) {
  const UOp turned = ir::make(Op::Again, x->dtype, {ir::flip(x, {1}), x});
  return ir::make(Op::Again, x->dtype, {ir::flip(turned, {0}), turned});
}

const std::vector<MoveRow>& movement_rows() {
  static const std::vector<MoveRow> table = {
      {Op::Reshape, "odd", {3, 5, 7}, reshaped},
      {Op::Reshape, "empty", {3, 0, 7}, [](Operand x) { return ir::reshape(x, {0, 4}); }},
      {Op::Permute, "odd", {3, 5, 7}, [](Operand x) { return ir::permute(x, {2, 0, 1}); }},
      {Op::Permute, "large", {33, 257}, [](Operand x) { return ir::permute(x, {1, 0}); }},
      {Op::Expand, "odd", {1, 5, 1}, [](Operand x) { return ir::expand(x, {3, 5, 7}); }},
      {Op::Expand, "empty", {1, 5}, [](Operand x) { return ir::expand(x, {0, 5}); }},
      {Op::Pad, "odd", {3, 5, 7}, [](Operand x) { return ir::pad(x, {{1, 0}, {0, 2}, {3, 1}}); }},
      {Op::Pad, "empty", {0, 5}, [](Operand x) { return ir::pad(x, {{1, 2}, {0, 0}}); }},
      {Op::Shrink, "odd", {3, 5, 7},
       [](Operand x) { return ir::shrink(x, {{1, 3}, {0, 5}, {2, 3}}); }},
      {Op::Shrink, "empty", {3, 5}, [](Operand x) { return ir::shrink(x, {{1, 1}, {0, 5}}); }},
      {Op::Flip, "odd", {3, 5, 7}, [](Operand x) { return ir::flip(x, {0, 2}); }},
      {Op::Flip, "scalar", {1}, [](Operand x) { return ir::flip(x, {0}); }},
      {Op::Contiguous, "strided", {17, 1031}, stored_strided},
      {Op::Detach, "odd", {3, 5}, detached},
      {Op::Mark, "odd", {3, 5}, marked},
      {Op::Again, "odd", {3, 5}, read_again},
  };
  return table;
}

UOp stored(Operand x, const std::string& device) {
  return ir::make(Op::Contiguous, x->dtype, {x}, ir::Placement{{device}});
}

UOp copied_back(const Roots& x, const std::string& device) {
  const UOp there = ir::make(Op::Copy, x[0]->dtype, {x[0]}, ir::Placement{{"CPU"}});
  return ir::make(Op::Copy, x[0]->dtype, {there}, ir::Placement{{device}});
}

UOp assigned(const Roots& x, const std::string&) {
  return ir::make(Op::Assign, x[0]->dtype, {x[0], ir::flip(x[1], {0})});
}

UOp part_assigned(const Roots& x, const std::string&) {
  return ir::make(Op::Assign, x[0]->dtype, {x[0], ir::flip(x[1], {0})}, ir::Pairs{{1, 3}, {2, 4}});
}

// Rows 2, 3 (which is none), 2 and 3.
UOp rows_by_index(const Roots& x, Op op) {
  const auto whole = [](int64_t v) { return ir::constant(DType::I32, double(v)); };
  const UOp row = ir::reshape(ir::iota(4, DType::I32), {4, 1});
  const UOp square = ir::alu(Op::Add, {ir::alu(Op::Mul, {row, row}), whole(2)});
  const UOp at = ir::alu(Op::IMod, {square, whole(4)});
  return ir::scatter(x[0], x[1], ir::expand(at, {4, 5}), {op, 0});
}
UOp put_by_index(const Roots& x, const std::string&) { return rows_by_index(x, Op::Assign); }
UOp largest_by_index(const Roots& x, const std::string&) { return rows_by_index(x, Op::Max); }

UOp iota_of(const Roots& x, const std::string& device) {
  return stored(ir::iota(100, x[0]->dtype), device);
}

UOp constant_of(const Roots& x, const std::string& device) {
  const UOp one = ir::reshape(ir::constant(x[0]->dtype, 1), {1, 1});
  return stored(ir::expand(one, {5, 7}), device);
}

// What places or takes more than one operand.
struct PlaceRow {
  Op op;
  const char* shape_name;
  std::vector<IntVec> shapes;  // of the operands
  UOp (*place)(const Roots& x, const std::string& device);
};

const std::vector<PlaceRow>& placement_rows() {
  static const std::vector<PlaceRow> table = {
      {Op::Copy, "odd", {{3, 5}}, copied_back},
      {Op::Assign, "odd", {{3, 5}, {3, 5}}, assigned},
      {Op::Assign, "part", {{3, 5}, {2, 2}}, part_assigned},
      {Op::Scatter, "put", {{3, 5}, {4, 5}}, put_by_index},
      {Op::Scatter, "largest", {{3, 5}, {4, 5}}, largest_by_index},
      {Op::Iota, "odd", {{1}}, iota_of},
      {Op::Const, "odd", {{1}}, constant_of}};
  return table;
}

Case new_case(Op op, const char* shape_name, const std::vector<IntVec>& shapes, DType t) {
  Case c;
  c.op = ir::name(op);
  c.dtype = t;
  c.dtypes = {t};
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), shape_name);
  c.inputs = [shapes, t, name = c.name](uint64_t seed) {
    Draw draw(seed, name);
    Arrays arrays;
    for (const IntVec& s : shapes) arrays.push_back(draw_array(draw, t, s, Domain::Any));
    return arrays;
  };
  return c;
}

}  // namespace

void append_movement_cases(std::vector<Case>& out) {
  for (const MoveRow& r : movement_rows()) {
    for (const DType t : memory_dtypes()) {
      out.push_back(new_case(r.op, r.shape_name, {r.shape}, t));
      out.back().build = [move = r.move](const Roots& x, const std::string&) -> Roots {
        return {move(x[0])};
      };
    }
  }
  for (const PlaceRow& r : placement_rows()) {
    for (const DType t : memory_dtypes()) {
      if (r.op == Op::Iota && t == DType::Bool) continue;  // counts are numbers
      out.push_back(new_case(r.op, r.shape_name, r.shapes, t));
      out.back().build = [place = r.place](const Roots& x, const std::string& device) -> Roots {
        return {place(x, device)};
      };
    }
  }
}

}  // namespace tuff::check
