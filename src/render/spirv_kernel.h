// SpirvKernel: walks one linear list and writes the one function of a module. Every lane
// combination is a scalar of its own; neighbours in memory are loaded and stored together as
// vectors. Called by spirv.cpp alone. Must never know drivers or Vulkan handles.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "render/binary.h"
#include "render/divisors.h"
#include "render/lane_space.h"
#include "render/spirv_ops.h"

namespace tuff::render {

// One instance of an op: an id, or for I32 and I64 a sum base + constant (base 0: a number), so
// that the lanes of an address share their base and neighbours are seen.
struct SpirvValue {
  Id base = 0;
  int64_t constant = 0;
  int64_t divisor = 1;  // known to divide the base
  bool operator==(const SpirvValue&) const = default;
};

bool uses_matrices(const kernel::LinearKernel& k);
void declare_matrices(SpirvModule& m);  // for the module of such a kernel

class SpirvKernel {
 public:
  SpirvKernel(const kernel::LinearKernel& k, const Target& t, SpirvModule& m);
  void write();  // the whole function and its interface

 private:
  struct Loop {
    Id header, body, next, merge, counter, increment;
  };
  struct Access {
    int instance;
    SpirvValue offset;
    std::optional<Id> gate;
    std::vector<int> also;  // other instances that load the same element
    int64_t least = 0;      // the offset's base and this are together 0 or more
  };
  struct Run {
    std::vector<Access> items;  // neighbours, lowest address first
    uint32_t per_word = 1;      // so many of them are a word of the access, aligned to that
  };

  void arguments();
  void bound_arguments();
  Id bound_buffer(Id block_pointer, uint32_t binding, const std::string& name);
  Id skipped_elements(Id low_address, DType t);
  Id load_block_pointer(const std::vector<uint32_t>& members, uint32_t buffer_count);
  Id load_push_constant(Id type);
  Id buffer_pointer(DType t);
  void emit(size_t i);
  void emit_range(size_t i);
  void emit_end(const ir::Node& range);
  void emit_special(size_t i);
  void emit_lanes(size_t i);
  SpirvValue computed(size_t i, int n);
  SpirvValue reduced(size_t i, int n);
  SpirvValue dot(size_t i, int n);
  SpirvValue shuffled(size_t i, int n);
  Id buffer_as(const ir::Node& param);
  void emit_register(size_t i);
  void emit_shared(size_t i);
  void emit_barrier();
  void emit_matrix(size_t i);
  void emit_matrix_store(size_t i);
  Id matrix_type(DType t, const ir::MatrixArg& matrix);
  Id register_type(const ir::Node& u);
  std::vector<Id> matrix_place(size_t i, int instance);
  void emit_load(size_t i);
  void emit_store(size_t i);

  bool affine(const ir::Node& u, const std::vector<SpirvValue>& x, SpirvValue& out);
  std::vector<Access> accesses(const ir::Node& index, kernel::LaneMask mask);
  std::vector<Run> runs(std::vector<Access> all, const ir::Node& index, bool loads) const;
  static std::vector<Access> each_once(const std::vector<Access>& sorted);
  Run run_at(std::span<const Access> all, const ir::Node& index) const;
  uint32_t elements_of_word(const SpirvValue& offset, DType t, size_t most) const;
  Id element_pointer(const ir::Node& index, const SpirvValue& offset);
  Id access_pointer(const ir::Node& index, const SpirvValue& offset, int64_t least);
  bool has_short_offsets(const ir::Node& index) const;
  Id address_of(const ir::Node& index, const SpirvValue& offset, int64_t least);
  uint32_t alignment(const Run& run, DType t) const;
  Id wide_pointer(Id element, Id type);
  Id word_type(const Run& run, DType t);
  Id wide_type(const Run& run, DType t);
  std::vector<Id> elements_of(Id all, const Run& run, DType t);
  Id joined(const std::vector<Id>& parts, const Run& run, DType t);
  void load_run(const ir::Node& index, const Run& run, bool branch, std::vector<SpirvValue>& out);
  void store_bits(size_t i, const std::vector<Id>& values);
  void combine(size_t i, const std::vector<Id>& values);
  bool loads_alone(const ir::Node& index) const;
  Id begin_gate(const std::optional<Id>& gate);
  void end_gate(Id merge);
  void store_run(const ir::Node& index, const Run& run, const std::vector<Id>& values);
  Id shared_form(Id x, DType t, bool to_memory);

  Id id(const SpirvValue& v, DType t);
  SpirvValue value(const ir::Node* u, kernel::LaneMask mask, int instance);
  // As value(), of what is selected or stored: see SpirvTypes::opaque.
  SpirvValue chosen(const ir::Node* u, kernel::LaneMask mask, int instance);
  Id constant(const ir::Node& u);
  size_t position(const ir::Node* u) const;

  const kernel::LinearKernel& k_;
  const Target& target_;
  SpirvModule& m_;
  SpirvTypes t_;
  SpirvOps ops_;
  LaneSpace space_;
  std::unordered_map<const ir::Node*, size_t> position_;
  std::vector<std::vector<SpirvValue>> values_;
  std::unordered_map<const ir::Node*, Loop> loops_;
  std::vector<Id> buffers_, scalars_;  // loaded at entry; bound buffers are variables
  std::vector<Id> skipped_;            // of a bound buffer: i32 elements before it in its binding
  size_t current_ = 0;
  bool matrices_ = false;  // uses_matrices()
};

}  // namespace tuff::render
