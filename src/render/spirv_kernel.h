// SpirvKernel: walks one linear list and writes the one function of a module. Called by spirv.cpp
// alone. What arguments, memory, integers and matrices take are files of their own. Must never know
// drivers or Vulkan handles.
#pragma once

#include <unordered_map>

#include "render/spirv_memory.h"

namespace tuff::render {

class SpirvKernel {
 public:
  SpirvKernel(const kernel::LinearKernel& k, const Target& t, SpirvModule& m)
      : b_(k, t, m), memory_(b_) {}
  void write();  // the whole function and its interface

 private:
  struct Loop {
    Id header, body, next, merge, counter, increment;
  };

  void begin_function();
  void emit(size_t i);
  void emit_const(size_t i);
  void emit_variable(size_t i);
  void emit_special(size_t i);
  void emit_range(size_t i);
  void emit_end(const ir::Node& range);
  void emit_register(size_t i);
  void emit_shared(size_t i);
  void emit_barrier();
  void emit_load(size_t i);
  void emit_store(size_t i);
  void emit_lanes(size_t i);
  SpirvValue computed(size_t i, int n);
  SpirvValue reduced(size_t i, int n);
  SpirvValue dot(size_t i, int n);
  SpirvValue shuffled(size_t i, int n);
  Id buffer_as(const ir::Node& param);

  SpirvBody b_;
  SpirvMemory memory_;
  std::unordered_map<const ir::Node*, Loop> loops_;
};

}  // namespace tuff::render
