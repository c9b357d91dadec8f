// What a group's tensors are in memory, and what realize() wants of a graph with a group. Used by
// realize.cpp, jit.cpp and who reads or makes memory.
#pragma once

#include <string>
#include <vector>

#include "sched/shards.h"
#include "tensor/impl.h"

namespace tuff::detail {

// The device whose memory and limits stand for a group's: its first one.
std::string first_device(const std::string& device);
// The Shards node that the memory of a group's tensor is, or null.
const ir::Node* shards_of(const ir::UOp& u);
// By device, the memory; none if it is not realized.
std::vector<Ref<engine::Buffer>> buffers_of_shards(const ir::UOp& u);
// The value that a host function reads of a group's tensor, on one device.
Tensor readable(const Tensor& t);
// Writes row-major host data into all parts.
void write_shards(const Tensor& t, const void* src);
// Copies of host data or, without it, memory with whatever it holds, on each device of a group.
ir::UOp fresh_shards(const Sizes& sizes, DType t, const std::string& group, const void* data);
// As the other one's: on its device or in its layout.
Tensor on_devices_of(const Tensor& t, const Tensor& other);
// What is behind a tensor, exchanged for what is behind another one.
void take_place(const Tensor& t, const Tensor& value);

// The roots that one realization computes, each on one device, of roots that may lie on groups.
class PartRoots {
 public:
  // A root and where its tensor lies.
  void add(const ir::UOp& root, const std::string& device);
  const std::vector<ir::UOp>& roots() const { return roots_; }
  // Of the n-th that was added, the memory; `buffers` are those of roots().
  ir::UOp memory(size_t n, const std::vector<Ref<engine::Buffer>>& buffers) const;

 private:
  struct Wanted {
    sched::Laid laid;          // its parts; what is memory already stays
    std::vector<int64_t> root;  // by part, which root computes it; -1: it is memory
    ir::Shape shape;
  };
  ir::UOp wanted_of(const ir::UOp& part, const std::string& device);
  sched::ShardResolver resolver_;
  std::vector<Wanted> wanted_;
  std::vector<ir::UOp> roots_;
};

}  // namespace tuff::detail
