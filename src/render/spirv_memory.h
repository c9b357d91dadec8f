// SpirvMemory: loads and stores of the SPIR-V renderer. What lanes read at neighbouring addresses
// is read as one vector, its alignment claimed as far as the offset's divisors prove it. What is
// narrower than 32 bits is read by words of that width; or, where the Target's components are that
// wide, 32-bit pairs as 64-bit words: where the offset is proven to begin one. Memory begins at
// multiples of 64 bytes, views of it too. Called by SpirvKernel.
#pragma once

#include <optional>
#include <vector>

#include "render/spirv_runs.h"

namespace tuff::render {

class SpirvMemory {
 public:
  explicit SpirvMemory(SpirvBody& b) : b_(b) {}

  void load(size_t i, const ir::Node& index);
  // The instances' ids: stored, the bits of a mask alone, or combined with what is there.
  void store(size_t i, const ir::Node& index, const std::vector<Id>& values);

 private:
  bool loads_alone(const ir::Node& index) const;
  void load_run(const ir::Node& index, const SpirvRun& run, bool branch,
                std::vector<SpirvValue>& out);
  void store_run(const ir::Node& index, const SpirvRun& run, const std::vector<Id>& values);
  void store_bits(size_t i, const ir::Node& index, const std::vector<Id>& values);
  void combine(size_t i, const ir::Node& index, const std::vector<Id>& values);
  Id begin_gate(const std::optional<Id>& gate);
  void end_gate(Id merge);

  Id wide_pointer(Id element, Id type);
  Id word_type(const SpirvRun& run, DType t);
  Id wide_type(const SpirvRun& run, DType t);
  std::vector<Id> elements_of(Id all, const SpirvRun& run, DType t);
  Id joined(const std::vector<Id>& parts, const SpirvRun& run, DType t);
  Id shared_form(Id x, DType t, bool to_memory);

  SpirvBody& b_;
};

}  // namespace tuff::render
