// The specs: every rule refuses an illegal graph by name, and legal ones of every floor pass. The
// rules are read off spec.cpp itself, so that one without its case here fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/os.h"
#include "ir/custom_kernel.h"
#include "ir/spec.h"

namespace tuff::ir {
namespace {

UOp f32(double v) { return constant(DType::F32, v); }
UOp i32(int64_t v) { return constant(Scalar::of_int(DType::I32, v)); }
UOp u32(int64_t v) { return constant(Scalar::of_int(DType::U32, v)); }
UOp memory(int32_t slot = 0) { return param(slot, DType::F32, 8); }
UOp shared() { return make(Op::Shared, DType::F32, {}, SharedArg{0, 8}); }
UOp accumulator() { return make(Op::Register, DType::F32, {}, int64_t{0}); }
constexpr MatrixArg kA{MatrixUse::A, 16, 8}, kB{MatrixUse::B, 8, 4}, kSum{MatrixUse::Sum, 16, 4};
UOp filled(const MatrixArg& m) {
  return make(Op::MatrixFill, DType::F32, {constant(DType::F32, 1)}, m);
}
MatrixArg interleaved(MatrixUse use, int32_t rows, int32_t by) {
  return {.use = use, .rows = rows, .columns = 4, .stride = 8, .interleaved = by};
}
UOp multiplied(std::vector<UOp> src, const MatrixArg& m = kSum) {
  return make(Op::MatrixMulAdd, DType::F32, src, m);
}
UOp matrix_register() { return make(Op::Register, DType::F32, {}, kSum); }
UOp axis(AxisKind kind, int32_t id = 0, DType t = DType::Index) {
  const UOp four = t == DType::Index ? index_const(4) : i32(4);
  return make(Op::Range, t, {four}, RangeArg{id, kind});
}
UOp loop(int32_t id = 0) { return axis(AxisKind::Loop, id, DType::I32); }
UOp index(const UOp& m, const UOp& at) { return make(Op::Index, m->dtype, {m, at}); }
UOp store(const UOp& to, const UOp& v) { return make(Op::Store, DType::Void, {to, v}); }
UOp end(const UOp& x) { return make(Op::End, DType::Void, {x}); }
UOp after(const UOp& x, const UOp& dep) { return make(Op::After, x->dtype, {x, dep}); }
UOp folded(const UOp& x, std::vector<UOp> ranges, Op op = Op::Add) {
  ranges.insert(ranges.begin(), x);
  return make(Op::Reduce, x->dtype, ranges, ReduceArg{op, {}});
}

// What the check says, or "" if it is content.
std::string verdict(const UOp& root, Floor floor) {
  try {
    check_spec(root, floor, "a test");
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}
std::string verdict(const std::vector<UOp>& list) {
  try {
    check_linear_spec(list, "a test");
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

// Everything below the roots, sources first: the simplest linear list of a graph.
std::vector<UOp> listed(const std::vector<UOp>& roots) {
  std::vector<UOp> out;
  std::set<const Node*> placed;
  const auto place = [&](const auto& self, const UOp& u) -> void {
    if (!placed.insert(u.get()).second) return;
    for (const UOp& s : u->src()) self(self, s);
    out.push_back(u);
  };
  for (const UOp& r : roots) place(place, r);
  return out;
}

struct Illegal {
  std::string why;  // as spec.cpp has it
  Floor floor;
  UOp root;
};

UOp assigned(const UOp& target, const UOp& value, Arg part = {}) {
  return make(Op::Assign, DType::F32, {target, value}, std::move(part));
}

UOp rule(std::initializer_list<UOp> src, IntVec arg) {
  return make(Op::Rule, DType::Void, src, std::move(arg));
}

// 3 steps of a state, whose place is the first one.
UOp loop_of(const UOp& next, std::initializer_list<UOp> src, std::vector<UOp> places,
            int64_t rows = 4) {
  auto body = make_ref<LoopBody>();
  body->sequences = src.size() - 1;
  body->places = std::move(places);
  body->next = {next};
  return make(Op::Loop, DType::F32, src, LoopArg{body, 3, false, rows});
}
UOp row_of_states() { return param(2, DType::F32, 64); }  // 8 elements and what is behind them

// An output of a user's kernel that reads memory.
UOp output_of_kernel() {
  const CustomKernelArg arg(make_ref<CustomKernel>(), {1, 1, 1}, {{{8}, DType::F32}}, 0);
  return custom_kernel(arg, std::vector<UOp>{memory()});
}

std::vector<Illegal> illegal_tensor_graphs() {
  const UOp x = reshape(memory(), {2, 4}), negative = make(Op::Neg, DType::F32, {x});
  return {
      {"a tensor Reduce has one source and (op, axes)", kFloorTensor,
       make(Op::Reduce, DType::F32, {x, x}, ReduceArg{Op::Add, {0}})},
      {"the op does not reduce", kFloorTensor,
       make(Op::Reduce, DType::F32, {x}, ReduceArg{Op::Sub, {0}})},
      {"an Assign's target is no Buffer", kFloorTensor, assigned(negative, x)},
      {"an Assign's target is no Buffer", kFloorTensor, assigned(reshape(negative, {8}), memory())},
      {"an Assign's argument is no part", kFloorTensor, assigned(x, x, int64_t(1))},
      {"a Scatter neither assigns nor folds", kFloorTensor,
       scatter(x, x, cast(x, DType::I32), {Op::Sub, 0})},
      {"a Scatter's value has another dtype than its target", kFloorTensor,
       scatter(x, cast(x, DType::F16), cast(x, DType::I32), {Op::Add, 0})},
      {"a Scatter's index is no integer", kFloorTensor, scatter(x, x, x, {Op::Add, 0})},
      {"a CustomKernel stands for one of its outputs", kFloorTensor,
       launch_of_output(*output_of_kernel())},
      {"a CustomKernel takes Params, and is the whole kernel", kFloorKernel, output_of_kernel()},
      {"a Checkpoint's arguments are a Sink", kFloorTensor,
       make(Op::Checkpoint, DType::F32, {x, x})},
      {"Ruled takes (value, rule) and the value's number", kFloorTensor,
       make(Op::Ruled, DType::F32, {x, x}, int64_t{0})},
      {"Ruled's value is not its rule's", kFloorTensor,
       make(Op::Ruled, DType::F32, {x, rule({memory(), x, x}, {1, 1, 0, 0})}, int64_t{0})},
      {"a Rule says how many values and arguments it has", kFloorTensor, rule({x}, {1})},
      {"a Rule takes (value..., argument..., gradient...)", kFloorTensor, rule({x}, {1, 1, 0, 0})},
      {"a Rule's gradient is of no argument", kFloorTensor, rule({x, x, x}, {1, 1, 0, 1})},
      {"a Rule's gradient has another shape than its argument", kFloorTensor,
       rule({x, x, memory()}, {1, 1, 0, 0})},
      {"a Loop takes (initial states, sequence..., constant...)", kFloorTensor,
       loop_of(memory(0), {row_of_states()}, {memory(0), memory(1)})},
      {"a Loop keeps all states or the last ones", kFloorTensor,
       loop_of(memory(0), {row_of_states()}, {memory(0)}, 3)},
      {"a Loop's state has another shape or dtype after a step", kFloorTensor,
       loop_of(x, {row_of_states()}, {memory(0)})},
      {"a Loop's initial states are not a row of them", kFloorTensor,
       loop_of(memory(0), {memory(0)}, {memory(0)})},
      {"a Loop's sequence has no row for each step", kFloorTensor,
       loop_of(memory(0), {row_of_states(), x}, {memory(0), memory(1)})},
  };
}

std::vector<Illegal> illegal_matrices() {
  const UOp at = index_const(3);
  return {
      {"a matrix is used as a scalar", kFloorKernel, make(Op::Neg, DType::F32, {filled(kA)})},
      {"a matrix is used as a scalar", kFloorKernel,
       make(Op::Add, DType::F32, {make(Op::Load, DType::F32, {matrix_register()}), f32(1)})},
      {"no matrix is described", kFloorKernel, make(Op::MatrixFill, DType::F32, {f32(1)})},
      {"a matrix lies at an Index without a gate", kFloorKernel,
       make(Op::MatrixLoad, DType::F32, {memory()}, kA)},
      {"a matrix lies at an Index without a gate", kFloorKernel,
       make(Op::MatrixLoad, DType::F32,
            {make(Op::Index, DType::F32, {memory(), at, bool_const(true)})}, kA)},
      {"whole rows of a right factor are interleaved", kFloorKernel,
       make(Op::MatrixLoad, DType::F32, {index(memory(), at)}, interleaved(MatrixUse::A, 8, 2))},
      {"whole rows of a right factor are interleaved", kFloorKernel,
       make(Op::MatrixLoad, DType::F32, {index(memory(), at)}, interleaved(MatrixUse::B, 7, 2))},
      {"whole rows of a right factor are interleaved", kFloorKernel,
       make(Op::MatrixLoad, DType::F32, {index(memory(), at)}, interleaved(MatrixUse::B, 8, 0))},
      {"MatrixStore takes the matrix that it describes", kFloorKernel,
       make(Op::MatrixStore, DType::Void, {index(memory(), at), filled(kB)}, kA)},
      {"MatrixStore's matrix has another dtype than its place", kFloorKernel,
       make(Op::MatrixStore, DType::Void,
            {index(memory(), at), make(Op::Cast, DType::F16, {filled(kSum)})}, kSum)},
      {"a factor's matrix is converted", kFloorKernel,
       make(Op::Cast, DType::F16, {filled(kA)})},
      {"a product of matrices is a sum", kFloorKernel, multiplied({filled(kA), filled(kB)}, kA)},
      {"MatrixMulAdd takes matrices whose extents fit", kFloorKernel,
       multiplied({filled(kB), filled(kA)})},
      {"MatrixMulAdd takes matrices whose extents fit", kFloorKernel,
       multiplied({filled(kA), filled({MatrixUse::B, 4, 4})})},
      {"MatrixMulAdd adds a matrix of its own kind", kFloorKernel,
       multiplied({filled(kA), filled(kB), filled(kA)})},
      {"sums of one kind are multiplied element by element", kFloorKernel,
       make(Op::Mul, DType::F32, {filled(kA), filled(kA)})},
      {"sums of one kind are multiplied element by element", kFloorKernel,
       make(Op::Mul, DType::F32, {filled(kSum), f32(1)})},
      {"Store's value is another matrix than its register holds", kFloorKernel,
       store(matrix_register(), filled(kA))},
      {"Store's value is another matrix than its register holds", kFloorKernel,
       store(matrix_register(), f32(1))},
  };
}

std::vector<Illegal> illegal_graphs() {
  const UOp x = reshape(memory(), {2, 4}), at = index_const(3), r = axis(AxisKind::Reduce);
  const UOp half = make(Op::Cast, DType::F16, {f32(1)});
  const UOp sum = make(Op::Add, DType::F32, {f32(1), f32(2)});
  return {
      {"Dot takes (x, y, sum, lane range...)", kFloorKernel,
       make(Op::Dot, DType::F32, {f32(1), f32(2), f32(3)})},
      {"Dot adds up lanes", kFloorKernel,
       make(Op::Dot, DType::F32, {f32(1), f32(2), f32(3), axis(AxisKind::Loop, 0)})},
      {"Dot's factors and sum differ in dtype", kFloorKernel,
       make(Op::Dot, DType::F32, {f32(1), i32(2), f32(3), axis(AxisKind::ReduceLane, 0)})},
      {"a lane is no integer", kFloorKernel, make(Op::Shuffle, DType::F32, {f32(1), f32(2)})},
      {"Index takes (param | shared, offset[, gate])", kFloorKernel, index(f32(1), at)},
      {"Index takes (param | shared, offset[, gate])", kFloorKernel,
       make(Op::Index, DType::F32, {memory()})},
      {"Index takes (param | shared, offset[, gate])", kFloorKernel,
       make(Op::Index, DType::F32, {memory(), at, bool_const(true), at})},
      {"an offset is no integer", kFloorKernel, index(memory(), f32(1))},
      {"a gate is no bool", kFloorKernel, make(Op::Index, DType::F32, {memory(), at, at})},
      {"Load reads an Index or a register", kFloorKernel, make(Op::Load, DType::F32, {memory()})},
      {"Prefetch takes an Index of a param without a gate, to read (0) or write (1)", kFloorLinear,
       make(Op::Prefetch, DType::Void, {index(shared(), i32(0))}, int64_t{0})},
      {"Prefetch takes an Index of a param without a gate, to read (0) or write (1)", kFloorLinear,
       make(Op::Prefetch, DType::Void, {index(memory(), i32(0))})},
      {"Store writes an Index or a register", kFloorKernel, store(memory(), f32(1))},
      {"a streaming Store writes a param, without a gate or a mask", kFloorKernel,
       make(Op::Store, DType::Void, {index(shared(), at), f32(1)}, kStreaming)},
      {"an atomic Store combines with an element of a param", kFloorKernel,
       make(Op::Store, DType::Void, {index(shared(), at), f32(1)}, ReduceArg{Op::Add, {}})},
      {"an atomic Store adds or takes the larger", kFloorKernel,
       make(Op::Store, DType::Void, {index(memory(), at), f32(1)}, ReduceArg{Op::Mul, {}})},
      {"an atomic Store combines 32-bit words of one dtype, or a float with its word", kFloorKernel,
       make(Op::Store, DType::Void, {index(memory(), at), u32(1)}, ReduceArg{Op::Add, {}})},
      {"Store's value has another dtype than its place", kFloorKernel,
       store(index(memory(), at), half)},
      {"Store takes (place, value[, mask])", kFloorKernel,
       make(Op::Store, DType::Void, {index(memory(), at)})},
      {"a masked Store writes u32 elements of memory", kFloorKernel,
       make(Op::Store, DType::Void, {index(memory(), at), f32(1), u32(1)})},
      {"a kernel Reduce takes (value, range...)", kFloorKernel, folded(f32(1), {})},
      {"a kernel Reduce takes (value, range...)", kFloorKernel, folded(f32(1), {f32(2)})},
      {"the op does not reduce", kFloorKernel, folded(f32(1), {r}, Op::Sub)},
      {"End takes (store, range...)", kFloorKernel, end(r)},
      {"End takes (store, range...)", kFloorKernel,
       make(Op::End, DType::Void, {store(index(memory(), r), f32(1)), at})},
      {"the op does not exist on this floor", kFloorTensor, index(memory(), at)},
      {"the op does not exist on this floor", kFloorKernel, x},
      {"After takes (value, dependency...)", kFloorKernel,
       make(Op::Add, DType::F32, {sum, make(Op::After, DType::F32, {sum})})},
  };
}

struct IllegalList {
  std::string why;
  std::vector<UOp> list;
};

std::vector<IllegalList> illegal_lists() {
  const UOp m = memory(), zero = i32(0), a = loop(0), b = loop(1);
  const UOp four = a->src(0), lane = axis(AxisKind::ReduceLane, 2, DType::I32);
  const UOp product = make(Op::Mul, DType::I32, {four, four});
  return {
      {"an Index dtype is left",
       listed({make(Op::Add, DType::Index, {index_const(1), variable("n", 0, 9)})})},
      {"a floor division is left", listed({make(Op::FloorDiv, DType::I32, {zero, four})})},
      {"a floor division is left", listed({make(Op::FloorMod, DType::I32, {zero, four})})},
      {"MatrixMulAdd takes (a, b, c)", listed({multiplied({filled(kA), filled(kB)})})},
      {"a linear End takes (range)", listed({end(store(index(m, zero), f32(1)))})},
      {"a linear Reduce folds lanes only", listed({folded(f32(1), {a}), end(a)})},
      {"a linear Reduce folds lanes only", listed({folded(f32(1), {})})},
      {"the op does not reduce", listed({folded(f32(1), {lane}, Op::Sub)})},
      {"a source stands after its user", {index(m, zero), m, zero}},
      {"a source stands after its user", {m, index(m, zero)}},  // it is not there at all
      {"an op stands twice", {m, zero, m}},
      {"loops do not nest", {four, a, b, end(a), end(b)}},
      {"loops do not nest", listed({end(lane)})},
      {"an op stands twice", {four, a, end(a), end(a)}},
      {"a loop is never closed", {four, a, b, end(b)}},
      {"a value of a loop is used after its end", {four, m, a, end(a), index(m, a)}},
      {"a value of a loop is used after its end", {four, m, a, product, end(a), index(m, product)}},
      {"the op does not exist on this floor", listed({reshape(m, {2, 4})})},
      {"Load reads an Index or a register", listed({make(Op::Load, DType::F32, {m})})},
  };
}

std::vector<Illegal> all_illegal_graphs() {
  std::vector<Illegal> all = illegal_graphs();
  for (const auto& more : {illegal_matrices(), illegal_tensor_graphs()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Spec, IllegalGraphsAreRefusedByName) {
  for (const Illegal& g : all_illegal_graphs()) {
    const std::string said = verdict(g.root, g.floor);
    EXPECT_NE(said.find(g.why), std::string::npos) << "wanted: " << g.why << "\nsaid: " << said;
    EXPECT_NE(said.find("after a test"), std::string::npos) << said;
  }
}

TEST(Spec, IllegalListsAreRefusedByName) {
  for (const IllegalList& l : illegal_lists()) {
    const std::string said = verdict(l.list);
    EXPECT_NE(said.find(l.why), std::string::npos) << "wanted: " << l.why << "\nsaid: " << said;
    EXPECT_NE(said.find("linear floor"), std::string::npos) << said;
  }
}

// The message prints the node itself, not the graph's root.
TEST(Spec, TheOffendingNodeIsPrinted) {
  const UOp bad = make(Op::Load, DType::F32, {memory(7)});
  const std::string said = verdict(sink(std::vector<UOp>{bad}), kFloorKernel);
  EXPECT_NE(said.find("slot 7"), std::string::npos) << said;
  EXPECT_EQ(said.find("sink"), std::string::npos) << said;
}

// Texts in spec.cpp that read as a sentence are its rules.
TEST(Spec, EveryRuleHasAnIllegalGraph) {
  std::set<std::string> covered;
  for (const Illegal& g : all_illegal_graphs()) covered.insert(g.why);
  for (const IllegalList& l : illegal_lists()) covered.insert(l.why);
  const std::string code = os::read_text(std::string(TUFF_SOURCE_DIR) + "/src/ir/spec.cpp");
  int rules = 0;
  for (size_t begin = code.find('"'); begin != std::string::npos;) {
    const size_t end = code.find('"', begin + 1);
    ASSERT_NE(end, std::string::npos);
    const std::string text = code.substr(begin + 1, end - begin - 1);
    if (text.find(' ') != std::string::npos && text.find('{') == std::string::npos) {
      EXPECT_TRUE(covered.contains(text)) << "no case for: " << text;
      ++rules;
    }
    begin = code.find('"', end + 1);
  }
  EXPECT_GE(rules, 20);
}

// ---- ops and floors, from the op table ---------------------------------------------------------

// A node of the op whose sources are legal on the floor; of no ALU op but those named here.
UOp structural_sample(Op op, Floor floor) {
  const bool tensor = floor == kFloorTensor, kernel = floor == kFloorKernel;
  const UOp x = tensor ? reshape(memory(), {2, 4}) : memory();
  const UOp at = kernel ? index_const(0) : i32(0), four = kernel ? index_const(4) : i32(4);
  const DType counter = kernel ? DType::Index : DType::I32;
  switch (op) {
    case Op::Const: return f32(1);
    case Op::Buffer: return buffer(make_ref<Storage>("CPU", DType::F32, 8));
    case Op::Param: return memory();
    case Op::Variable: return variable("n", 0, 9);
    case Op::Iota: return iota(8, DType::I32);
    case Op::Range: return make(Op::Range, counter, {four}, RangeArg{0, AxisKind::Lane});
    case Op::Special: return make(Op::Special, counter, {four}, SpecialArg{'g', 0});
    case Op::Reshape: return reshape(memory(), {2, 4});
    case Op::Loop: return loop_of(memory(0), {row_of_states()}, {memory(0)});
    case Op::Permute: return permute(reshape(memory(), {2, 4}), {1, 0});
    case Op::Expand: return expand(reshape(memory(), {8, 1}), {8, 3});
    case Op::Pad: return pad(memory(), {{1, 1}});
    case Op::Shrink: return shrink(memory(), {{1, 3}});
    case Op::Flip: return flip(memory(), {0});
    case Op::Reduce:
      return tensor ? reduce(Op::Add, x, {1})
                    : folded(f32(1), {axis(AxisKind::ReduceLane, 0, counter)});
    case Op::Dot:
      return make(op, DType::F32,
                  {f32(1), f32(2), f32(3), axis(AxisKind::ReduceLane, 0, counter)});
    case Op::Contiguous:
    case Op::Detach: return make(op, DType::F32, {memory()});
    case Op::Mark: return make(op, DType::F32, {memory()}, int64_t{0});
    case Op::Checkpoint:
      return make(op, DType::F32, {memory(), sink(std::vector<UOp>{memory()})});
    case Op::Again: return make(op, DType::F32, {memory(0), memory(1)});
    case Op::Rule: return rule({memory(), memory(), memory()}, {1, 1, 0, 0});
    case Op::Ruled:
      return make(op, DType::F32,
                  {memory(), rule({memory(), memory(), memory()}, {1, 1, 0, 0})}, int64_t{0});
    case Op::Copy: return make(op, DType::F32, {memory()}, Placement{{"CPU"}, {}});
    case Op::Assign: return make(op, DType::F32, {memory(0), memory(1)});
    case Op::Scatter:
      return scatter(memory(0), memory(1), cast(memory(2), DType::I32), {Op::Add, 0});
    case Op::CustomKernel:
      return tensor ? output_of_kernel() : custom_kernel_ast(*output_of_kernel());
    case Op::Shards: {  // a part is on a device
      const UOp on = make(Op::Contiguous, DType::F32, {memory()}, Placement{{"CPU"}});
      const UOp other = make(Op::Copy, DType::F32, {on}, Placement{{"CPU:1"}});
      return make(op, DType::F32, {on, other}, int64_t{0});
    }
    case Op::Sink: return sink(std::vector<UOp>{memory()});
    case Op::Index: return index(memory(), at);
    case Op::Load: return make(op, DType::F32, {index(memory(), at)});
    case Op::Store: return store(index(memory(), at), f32(1));
    case Op::Prefetch: return make(op, DType::Void, {index(memory(), at)}, int64_t{0});
    case Op::End: {
      const UOp r = axis(AxisKind::Loop, 0, counter);
      return kernel ? make(op, DType::Void, {store(index(memory(), r), f32(1)), r}) : end(r);
    }
    case Op::After: return after(accumulator(), store(accumulator(), f32(0)));
    case Op::Register: return accumulator();
    case Op::Shared: return shared();
    case Op::Barrier: return make(op, DType::Void, {store(index(shared(), at), f32(1))});
    case Op::MatrixFill: return filled(kA);
    case Op::MatrixLoad: return make(op, DType::F32, {index(memory(), at)}, kA);
    case Op::MatrixMulAdd: return multiplied({filled(kA), filled(kB), filled(kSum)});
    case Op::MatrixStore: return make(op, DType::Void, {index(memory(), at), filled(kSum)}, kSum);
    default: return {};
  }
}

UOp alu_sample(Op op, Floor floor) {
  const UOp whole = floor == kFloorKernel ? index_const(5) : i32(5);
  switch (op) {
    case Op::Cast: return make(op, DType::F16, {f32(1)});
    case Op::Bitcast: return make(op, DType::I32, {f32(1)});
    case Op::Shuffle: return make(op, DType::F32, {f32(1), whole});
    case Op::IDiv:
    case Op::IMod:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Shl:
    case Op::Shr: return make(op, DType::I32, {i32(5), i32(2)});
    case Op::FloorDiv:
    case Op::FloorMod: return make(op, DType::Index, {whole, whole});
    case Op::Where: return make(op, DType::F32, {bool_const(true), f32(1), f32(2)});
    case Op::MulAdd: return make(op, DType::F32, {f32(1), f32(2), f32(3)});
    case Op::Threefry: return make(op, DType::U32, {u32(0), u32(1), u32(2), u32(3)}, int64_t{0});
    default:
      return has_flag(op, kUnary) ? make(op, DType::F32, {f32(1)})
                                  : make(op, DType::F32, {f32(1), f32(2)});
  }
}

TEST(Spec, EveryOpPassesOnItsFloorsAndIsRefusedOnTheOthers) {
  for (size_t i = 0; i < op_rows().size(); ++i) {
    const Op op = Op(i);
    for (const Floor floor : {kFloorTensor, kFloorKernel, kFloorLinear}) {
      UOp u = structural_sample(op, floor);
      if (!u) u = alu_sample(op, floor);
      ASSERT_EQ(u->op, op);
      const std::string said = floor == kFloorLinear ? verdict(listed({u})) : verdict(u, floor);
      // The table has them on the linear floor, a rule of its own refuses them there.
      const bool divides = op == Op::FloorDiv || op == Op::FloorMod;
      if (row(op).floors & floor) {
        EXPECT_EQ(said.empty(), !(divides && floor == kFloorLinear)) << name(op) << ": " << said;
      } else {
        EXPECT_NE(said, "") << name(op) << " on floor " << int(floor);
      }
    }
  }
}

// ---- legal wholes -----------------------------------------------------------------------------

TEST(Spec, LegalGraphsPass) {
  const UOp x = reshape(memory(0), {2, 4}), y = reshape(memory(1), {2, 4});
  const UOp sum = reduce(Op::Add, make(Op::Mul, DType::F32, {x, y}), {1});
  EXPECT_EQ(verdict(sum, kFloorTensor), "");
  EXPECT_EQ(verdict(assigned(x, y), kFloorTensor), "");
  EXPECT_EQ(verdict(assigned(x, shrink(y, {{1, 2}, {0, 3}}), Pairs{{0, 1}, {1, 4}}), kFloorTensor),
            "");

  const UOp i = axis(AxisKind::Loop, 0), k = axis(AxisKind::Reduce, 1);
  const UOp read = make(Op::Load, DType::F32,
                        {make(Op::Index, DType::F32, {memory(1), i + k, lt(i, index_const(3))})});
  const UOp written = store(index(memory(0), i), folded(read, {k}, Op::Max));
  EXPECT_EQ(verdict(sink(std::vector<UOp>{make(Op::End, DType::Void, {written, i})}), kFloorKernel),
            "");
}

// sum over a loop in a register, read after the loop; a nested loop; workgroup memory.
TEST(Spec, LegalListsPass) {
  const UOp m = memory(0), x = memory(1), acc = accumulator(), zero = store(acc, f32(0));
  const UOp a = loop(0), b = loop(1);
  const UOp at = make(Op::Add, DType::I32, {a, b});
  const UOp inside = after(after(acc, zero), b), value = make(Op::Load, DType::F32, {index(x, at)});
  const UOp step =
      store(inside, make(Op::Add, DType::F32, {make(Op::Load, DType::F32, {inside}), value}));
  std::vector<UOp> list = listed({m, zero, a, b, step});
  for (const UOp& u : {end(b), end(a)}) list.push_back(u);
  for (const UOp& u :
       listed({store(index(m, i32(0)), make(Op::Load, DType::F32, {after(acc, end(a))}))}))
    if (std::find(list.begin(), list.end(), u) == list.end()) list.push_back(u);
  EXPECT_EQ(verdict(list), "");

  const UOp s = shared(), l = make(Op::Special, DType::I32, {i32(8)}, SpecialArg{'l', 0});
  const UOp barrier = make(Op::Barrier, DType::Void, {store(index(s, l), f32(1))});
  EXPECT_EQ(verdict(listed(
                {store(index(m, l), make(Op::Load, DType::F32, {index(after(s, barrier), l)}))})),
            "");
  EXPECT_EQ(verdict(std::vector<UOp>{}), "");
}

}  // namespace
}  // namespace tuff::ir
