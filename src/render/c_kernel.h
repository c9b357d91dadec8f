// CKernel: walks one linear list and writes the body of one C function. Called by c.cpp alone. What
// accesses memory, integers, packs, lookups, workgroups and matrices take are files of their own.
// Must never know compilers or targets.
#pragma once

#include <string>
#include <vector>

#include "render/c_access_groups.h"
#include "render/c_packs.h"

namespace tuff::render {

class CKernel {
 public:
  // wide_registers: of 64 bytes.
  CKernel(const kernel::LinearKernel& k, const CDialect& d, bool wide_registers)
      : b_(k, d, wide_registers), memory_(b_), groups_(b_, memory_), packs_(b_, memory_) {}
  std::string body();  // "(const void* args, ...) { ... }" without the symbol
  size_t shared_bytes() const { return b_.shared_bytes; }  // of the body: its Shared memory

 private:
  void begin_function();
  void emit(size_t i);
  void emit_special(size_t i);
  void emit_shared(size_t i);
  void emit_range(size_t i);
  void emit_alu(size_t i);
  void emit_load(size_t i);
  void emit_store(size_t i);
  void emit_prefetch(size_t i);
  void emit_reduce(size_t i);
  void emit_dot(size_t i);

  void emit_register(size_t i);
  CValue load_register(size_t i, const ir::Node* reg, int instance);
  bool changes_before_last_use(size_t load, const ir::Node* reg) const;
  void store_register(size_t i, const ir::Node* reg);
  std::string held_type(const ir::Node& u, bool vec) const;  // of a register

  CValue alu(const ir::Node& u, const std::vector<CValue>& x);
  CValue fold(ir::Op op, DType t, const std::vector<CValue>& x, bool across_vector);
  void order_block();

  CBody b_;
  CMemory memory_;
  CAccessGroups groups_;
  CPacks packs_;
};

}  // namespace tuff::render
