// The reference interpreter: what a graph means, op by op, in plain C++. It covers every op and
// dtype. Tests compare every device with it; slow and simple on purpose. Knows nothing of kernels'
// schedules: it runs tensor-floor graphs and, for the hazard checker, linear lists.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

struct HostArray {  // row-major, contiguous
  DType dtype = DType::Void;
  IntVec shape;
  std::vector<std::byte> bytes;
  Scalar at(int64_t i) const { return load_scalar(dtype, bytes.data() + i * size_bytes(dtype)); }
  int64_t count() const;
};

struct Bindings {
  std::unordered_map<uint64_t, std::span<std::byte>> storages;  // by Storage::id
  std::unordered_map<std::string, int64_t> variables;
};

// The values of a growing graph: every node is evaluated once, when it or something above it is
// first asked for. Nothing is written back by Assigns. `bindings` must outlive it and may grow.
class Evaluation {
 public:
  explicit Evaluation(const Bindings& bindings) : bindings_(bindings) {}
  const HostArray& value(const UOp& u);
  // What a place is taken for.
  void put(const UOp& place, HostArray a) { values_.emplace(place.get(), std::move(a)); }
  // As many elements of `from` as the place has, in its shape, from one on.
  void put_part(const UOp& place, const HostArray& from, int64_t begin);
  IntVec extents(const Shape& s) const;  // with the variables' values
  int64_t extent(const Dim& d) const { return extents({d})[0]; }
  // For every element of a movement op's result the source element it is, or -1 in padding.
  // For every element of a Reduce's source the element of the result it goes to.
  std::vector<int64_t> source_elements(const Node& movement) const;
  // For every element of an Assign's value the element of the target it goes to.
  std::vector<int64_t> reduced_elements(const Node& reduce) const;
  std::vector<int64_t> assigned_elements(const Node& assign) const;
  // As these, of a Scatter; -1: to none.
  std::vector<int64_t> scattered_elements(const Node& scatter) const;

 private:
  HostArray evaluate(const Node& n) const;
  HostArray fresh(const Node& n) const;
  HostArray contents(const Node& n) const;
  HostArray elementwise(const Node& n) const;
  HostArray moved(const Node& n) const;
  HostArray reduced(const Node& n) const;
  HostArray assigned(const Node& n) const;
  HostArray scattered(const Node& n) const;
  HostArray looped(const Node& n) const;
  HostArray joined(const Node& n) const;
  const HostArray& src(const Node& n, size_t i) const { return values_.at(n.src(i).get()); }
  IntVec begins(const Node& n) const;

  const Bindings& bindings_;
  std::unordered_map<const Node*, HostArray> values_;
  std::vector<UOp> kept_;  // what was asked for: the nodes that values_ names stay alive
};

// Values of the roots. Reduces and scatters fold in index order, in reference_accumulator().
std::vector<HostArray> interpret(std::span<const UOp> roots, const Bindings& bindings);

// Runs a linear list for every group and local id of the launch. Buffers by Param slot.
struct LinearAccess {
  int32_t slot;
  int64_t element;
  bool write;
  size_t bytes = 1;  // of the element: bytes may be read as words
};
struct LinearRun {
  std::vector<std::span<std::byte>> buffers;
  std::unordered_map<std::string, int64_t> variables;
  std::array<uint32_t, 3> groups{1, 1, 1}, local{1, 1, 1};
  uint32_t subgroup_size = 0;                          // 0: a workgroup is one subgroup
  std::function<void(const LinearAccess&)> on_access;  // optional
};
void interpret_linear(std::span<const UOp> list, LinearRun& run);

}  // namespace tuff::ir
