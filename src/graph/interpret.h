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

#include "graph/uop.h"

namespace tuff::graph {

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

// Values of the roots. Reduces accumulate in index order in the accumulator dtype of base's
// accumulator() for Add/Mul of f16/bf16 and in the dtype itself otherwise.
std::vector<HostArray> interpret(std::span<const UOp> roots, const Bindings& bindings);

// Runs a linear list for every group and local id of the launch. Buffers by Param slot.
struct LinearAccess {
  int32_t slot;
  int64_t element;
  bool write;
};
struct LinearRun {
  std::vector<std::span<std::byte>> buffers;
  std::unordered_map<std::string, int64_t> variables;
  std::array<uint32_t, 3> groups{1, 1, 1}, local{1, 1, 1};
  std::function<void(const LinearAccess&)> on_access;  // optional
};
void interpret_linear(std::span<const UOp> list, LinearRun& run);

}  // namespace tuff::graph
