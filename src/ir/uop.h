// UOp: the one node of every floor. (op, dtype, src[], arg), immutable, hash-consed: equal nodes
// are the same node, so == is identity. UOp is a counted handle; Node is what it points to. Called
// by every room right of base. Must never know devices, memory or kernels' languages. Nodes are
// made by the builders below, which check arity, dtypes and shapes and fold constants.
#ifndef TUFF_IR_UOP_H
#define TUFF_IR_UOP_H

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <tuff/dtype.h>
#include "base/check.h"
#include "base/ref.h"
#include "ir/op.h"

namespace tuff::ir {

struct Node;

class UOp {
 public:
  UOp() = default;
  explicit UOp(const Node* n);  // shares
  static UOp adopt(const Node* n) {
    UOp u;
    u.n_ = n;
    return u;
  }  // takes over one count
  UOp(const UOp& o) : UOp(o.n_) {}
  UOp(UOp&& o) noexcept : n_(std::exchange(o.n_, nullptr)) {}
  UOp& operator=(UOp o) noexcept {
    std::swap(n_, o.n_);
    return *this;
  }
  ~UOp();
  const Node* get() const { return n_; }
  const Node* operator->() const { return n_; }
  const Node& operator*() const { return *n_; }
  explicit operator bool() const { return n_ != nullptr; }
  friend bool operator==(const UOp& a, const UOp& b) { return a.n_ == b.n_; }

 private:
  const Node* n_ = nullptr;
};

struct UOpHash {
  using is_transparent = void;
  size_t operator()(const UOp& u) const { return std::hash<const Node*>()(u.get()); }
};
template <class T>
using UOpMap = std::unordered_map<UOp, T, UOpHash>;

// One extent of a shape: a number, or a symbolic integer expression (dtype Index) with bounds.
class Dim {
 public:
  Dim(int64_t v = 0) : value_(v) {}
  Dim(int v) : value_(v) {}
  Dim(UOp expr);  // a Const becomes its number
  bool is_const() const { return !expr_; }
  int64_t value() const {
    TUFF_CHECK(is_const(), "symbolic extent where a number is needed");
    return value_;
  }
  int64_t max() const { return value_; }  // the number, or the upper bound of the expression
  UOp uop() const;                        // as an Index node
  bool operator==(const Dim& o) const { return value_ == o.value_ && expr_ == o.expr_; }
  bool operator==(int64_t v) const { return is_const() && value_ == v; }

 private:
  int64_t value_ = 0;
  UOp expr_;
};
using Shape = std::vector<Dim>;
using IntVec = std::vector<int64_t>;
struct DimPair {
  Dim a, b;
  bool operator==(const DimPair&) const = default;
};
using Pairs = std::vector<DimPair>;

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);

// Memory behind a Buffer node. graph sees only this face; engine::Buffer derives from it.
struct Storage : RefCounted {
  Storage(std::string device_name, DType t, int64_t n);
  const uint64_t id;         // unique in the process
  const std::string device;  // "CPU", "VULKAN:0"
  const DType dtype;
  const int64_t count;  // elements
};

// Where a tensor lives: one device, or a group of them (device_group.h) with its axis that is cut
// into parts; -1: each device has all of it.
struct Placement {
  std::vector<std::string> devices;  // one name
  int shard_axis = -1;
  bool operator==(const Placement&) const = default;
};

// How a Range is run. Loop and Reduce come from sched; kernel's opts retag parts of them.
enum class AxisKind : uint8_t {
  Loop,         // serial, or free to become any of the below up to Vector
  Group,        // a launch axis: one workgroup (GPU) or one CPU group per value
  Local,        // an invocation inside a workgroup
  Lane,         // unrolled: every value that depends on it exists once per lane value
  Vector,       // like Lane, and the renderer may map it to SIMD lanes; at most one per kernel
  Reduce,       // serial loop folded by a Reduce
  ReduceLane,   // unrolled part of a reduction
  GroupReduce,  // reduction shared by the invocations of a workgroup
  Subgroup,     // a lane of the subgroup; beside it Local counts the subgroups of a workgroup
  Matrix,       // inside a cooperative matrix: no loop; of parts of an axis alone, never of a Range
  Ordered,      // serial, one iteration after the other: what they store may be the same element
};
const char* name(AxisKind k);
constexpr bool is_lane(AxisKind k) {
  return k == AxisKind::Lane || k == AxisKind::Vector || k == AxisKind::ReduceLane;
}

struct ReduceArg {
  Op op;
  IntVec axes;
  bool operator==(const ReduceArg&) const = default;
};
// How often the indexes of a Scatter name an element of its target.
enum class Named : uint8_t {
  Any,        // any number of times, combined in the order of the value
  Once,       // no element more than once
  All,        // each element once: nothing of the target is left
  Unordered,  // any number of times, combined in any order
};
const char* name(Named n);
struct ScatterArg {
  Op op;  // that combines an element with what comes to it; Assign: it is replaced
  int64_t axis;
  Named named = Named::Any;
  bool operator==(const ScatterArg&) const = default;
};
// What a Loop does in a step (loop.h). Closed: made of its places alone.
struct LoopBody : RefCounted {
  std::vector<UOp> places;  // of the states, of a row of each sequence, of the constants
  std::vector<UOp> next;    // per state
  size_t sequences = 0;
};
struct LoopArg {
  Ref<LoopBody> body;
  Dim steps;
  bool reverse = false;
  int64_t rows = steps.max() + 1;  // of states in memory; row r is at r % rows
  bool operator==(const LoopArg& o) const {
    return steps == o.steps && reverse == o.reverse && rows == o.rows &&
           body->sequences == o.body->sequences && body->places == o.body->places &&
           body->next == o.body->next;
  }
};
// A kernel as its user wrote it (custom_kernel.h).
struct CustomKernel;
struct CustomOutput {
  IntVec shape;
  DType dtype;
  bool operator==(const CustomOutput&) const = default;
};
struct CustomKernelArg {
  CustomKernelArg(Ref<const CustomKernel> k, std::array<uint32_t, 3> g,
                  std::vector<CustomOutput> o, int64_t n);
  CustomKernelArg(const CustomKernelArg&);
  CustomKernelArg& operator=(const CustomKernelArg&);
  CustomKernelArg(CustomKernelArg&&) noexcept;
  CustomKernelArg& operator=(CustomKernelArg&&) noexcept;
  ~CustomKernelArg();
  Ref<const CustomKernel> kernel;
  std::array<uint32_t, 3> groups;
  std::vector<CustomOutput> outputs;
  int64_t number;  // of the output that the node stands for; kWholeKernel: the kernel itself
  bool operator==(const CustomKernelArg& o) const;
};
inline constexpr int64_t kWholeKernel = -1;
// Who gives a Detach of several sources its gradient (gradient.h). There is one object per rule.
struct GradientRule;
// What a value in memory was computed of, for gradients (history.h): the arg of a Detach. Nothing
// but their walk comes into it.
struct History : RefCounted {
  History(UOp of, UOp l) : computed(std::move(of)), leaf(std::move(l)) {}
  const UOp computed;  // empty: memory that it reads has been overwritten
  const UOp leaf;      // one that a gradient would reach
};
struct RangeArg {
  int32_t id;
  AxisKind kind;
  bool operator==(const RangeArg&) const = default;
};
struct VariableArg {
  std::string name;
  int64_t min, max;
  bool operator==(const VariableArg&) const = default;
};
struct ParamArg {
  int32_t slot;
  int64_t count;
  std::string device;
  bool operator==(const ParamArg&) const = default;
};  // device: only in normalized tensor graphs
struct SpecialArg {
  char space;
  int8_t axis;
  bool operator==(const SpecialArg&) const = default;
};  // space 'g' or 'l', axis 0..2; 's', axis 0
// The arg of a Store whose memory is not read again before the caches have lost it: it may go past
// them, in whole aligned vectors. It has happened when the kernel has ended. A Store whose arg is a
// ReduceArg combines its value with the element, atomically.
inline constexpr int64_t kStreaming = 1;
struct SharedArg {
  int32_t number;
  int64_t count;
  bool operator==(const SharedArg&) const = default;
};

// A cooperative matrix: which operand of a product, rows x columns; where it is loaded or stored,
// the elements from one row (column) to the next; of a register, its number. So many rows may lie
// interleaved, element by element, as CPUs want a right factor: element (r, c) at
// r / interleaved * stride + c * interleaved + r % interleaved.
enum class MatrixUse : uint8_t { A, B, Sum };
struct MatrixArg {
  MatrixUse use;
  int32_t rows, columns;
  int64_t stride = 0;
  bool by_columns = false;  // neighbours in memory are of one column
  int64_t number = 0;
  int32_t interleaved = 1;
  int64_t offset(int64_t r, int64_t c) const {  // of an element, from the first
    if (by_columns) return c * stride + r;
    return r / interleaved * stride + c * interleaved + r % interleaved;
  }
  bool operator==(const MatrixArg&) const = default;
};
const char* name(MatrixUse use);

using ArgValue =
    std::variant<std::monostate, int64_t, Scalar, IntVec, Shape, Pairs, ReduceArg, RangeArg,
                 VariableArg, ParamArg, SpecialArg, SharedArg, Placement, Ref<Storage>, MatrixArg,
                 ScatterArg, const GradientRule*, LoopArg, CustomKernelArg, Ref<History>>;
// A class, so that copying and destroying one is compiled once and not in every source.
struct Arg : ArgValue {
  using ArgValue::ArgValue;
  Arg() = default;
  Arg(const Arg&);
  Arg(Arg&&) noexcept;
  Arg& operator=(const Arg&);
  Arg& operator=(Arg&&) noexcept;
  ~Arg();
};

// What every traversal touches stands in the first 64 bytes.
struct Node {
  Op op;
  DType dtype;
  uint32_t src_count;
  mutable std::atomic<uint32_t> refs;
  mutable uint32_t mark_order;
  mutable uint64_t mark;  // scratch of one traversal at a time, see walk.h
  const UOp* src_begin;
  const std::string*
      device;    // interned name of the device below (first Buffer, Param or Copy); null if none
  uint64_t key;  // structural: equal for graphs that differ only in which Storages they use
  // The node below (or this one) where paths to memory first part: every path from here to a
  // Buffer, Param or Placement goes through it, and its own sources disagree. Null if nothing is
  // below.
  const Node* junction;
  uint64_t serial;   // creation number: a stable order that is no pointer
  uint64_t hash;     // of (op, dtype, srcs, arg)
  int64_t min, max;  // bounds of Index and Bool values and of integer Consts; else int64's limits
  Arg arg;
  Shape shape;  // tensor floor; empty elsewhere
  std::span<const UOp> src() const { return {src_begin, src_count}; }
  const UOp& src(size_t i) const { return src_begin[i]; }
  template <class T>
  const T& get() const {
    return std::get<T>(arg);
  }
  bool is_const() const { return op == Op::Const; }
  bool is_const_int(int64_t v) const {
    return op == Op::Const && !is_float(dtype) && get<Scalar>().as_int() == v;
  }
  int64_t const_int() const { return get<Scalar>().as_int(); }
};

// ---- builders -------------------------------------------------------------------------------
// The general one: checks op, arity, dtype rule and shape rule, interns. No folding.
UOp make(Op op, DType dtype, std::span<const UOp> src, Arg arg = {});
inline UOp make(Op op, DType dtype, std::initializer_list<UOp> src, Arg arg = {}) {
  return make(op, dtype, std::span<const UOp>(src.begin(), src.size()), std::move(arg));
}
// The same node with other sources (dtype re-derived where the rule derives it); itself if equal.
UOp with_src(const UOp& u, std::span<const UOp> src);
// ALU with dtype and shape rules; folds all-constant sources and, for Index/Bool, x+0, x*1, x*0,
// x-x, x//1, x%1, constants to the right, (x+c1)+c2, where(const): what every index builder wants.
UOp alu(Op op, std::initializer_list<UOp> src, Arg arg = {});
UOp alu(Op op, std::span<const UOp> src, Arg arg = {});

UOp constant(const Scalar& v);
UOp constant(DType t, double v);
UOp index_const(int64_t v);  // dtype Index
UOp bool_const(bool v);
UOp iota(const Dim& n, DType t);  // 0..n-1 as t
UOp buffer(Ref<Storage> s);
UOp param(int32_t slot, DType t, int64_t count, std::string device = {});
UOp variable(std::string name, int64_t min, int64_t max);  // InvalidArgument if min > max
UOp range(const UOp& size, int32_t id, AxisKind kind);
UOp cast(const UOp& x, DType to);  // itself if equal
UOp bitcast(const UOp& x, DType to);
UOp reduce(Op op, const UOp& x, IntVec axes);   // tensor floor; axes sorted, kept as 1
UOp reshape(const UOp& x, const Shape& shape);  // ShapeError if the element counts differ
UOp permute(const UOp& x, const IntVec& axes);
UOp expand(const UOp& x, const Shape& shape);
UOp pad(const UOp& x, const Pairs& pairs);
UOp shrink(const UOp& x, const Pairs& pairs);
UOp flip(const UOp& x, const IntVec& axes);
// x with `value` in the place of shrink(x, part).
UOp put(const UOp& x, const Pairs& part, const UOp& value);
UOp scatter(const UOp& target, const UOp& value, const UOp& index, const ScatterArg& arg);
// The part that an Assign stores its value in; null where that is all, and for other ops.
inline const Pairs* assigned_part(const Node& n) {
  return n.op == Op::Assign ? std::get_if<Pairs>(&n.arg) : nullptr;
}
UOp sink(std::span<const UOp> roots);

// Index/bool arithmetic that reads as algebra; through alu(), so constants fold.
UOp operator+(const UOp& a, const UOp& b);
UOp operator-(const UOp& a, const UOp& b);
UOp operator*(const UOp& a, const UOp& b);
UOp operator+(const UOp& a, int64_t b);
UOp operator-(const UOp& a, int64_t b);
UOp operator*(const UOp& a, int64_t b);
UOp floordiv(const UOp& a, const UOp& b);
UOp floormod(const UOp& a, const UOp& b);
UOp floordiv(const UOp& a, int64_t b);
UOp floormod(const UOp& a, int64_t b);
UOp lt(const UOp& a, const UOp& b);
UOp ge(const UOp& a, const UOp& b);  // as not (a < b)
UOp logical_and(const UOp& a, const UOp& b);
UOp logical_not(const UOp& a);
UOp where(const UOp& c, const UOp& a, const UOp& b);

// ---- facts ----------------------------------------------------------------------------------
int64_t element_count(const Shape& s);  // product of max extents
bool is_symbolic(const Shape& s);       // whether an extent is
std::string to_string(const Shape& s);      // "(3, 4)"; symbolic extents by their text
const MatrixArg* matrix_of(const Node* n);  // that a value or a register is; null: none
std::string device_of(const UOp& u);        // Node::device, or ""
uint64_t last_storage_id();                 // of those made so far: younger ones have larger ids
uint64_t live_node_count();                 // for leak tests

}  // namespace tuff::ir

#endif  // TUFF_IR_UOP_H
