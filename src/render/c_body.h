// CBody: what is known of a C function so far: its text, and the values of the ops before the
// current one. Shared by the parts of the C renderer's walker (c_kernel.h), which give each op its
// values. The Vector range becomes SIMD lanes, where the dialect has them; every other lane
// combination is a value of its own. Must never know which op comes next.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "render/c_text.h"
#include "render/c_types.h"
#include "render/c_value.h"
#include "render/lane_space.h"

namespace tuff::render {

struct CBody {
  // wide_registers: of 64 bytes.
  CBody(const kernel::LinearKernel& k, const CDialect& d, bool wide_registers);

  void begin_op(size_t i);

  kernel::LaneMask scalar_mask(kernel::LaneMask m) const { return m & ~vector_mask; }
  kernel::LaneMask lanes_of(const ir::Node* u) const { return kernel.lanes[position(u)]; }
  int instances(kernel::LaneMask m) const { return space.count(scalar_mask(m)); }
  size_t position(const ir::Node* u) const;
  std::vector<size_t> users(size_t i) const;
  // Of an op before the current one, for an instance of the lanes `mask`.
  const CValue& value(const ir::Node* u, kernel::LaneMask mask, int instance) const;

  // Texts of a value: as one scalar, as a full vector, as its lane `lane`.
  std::string scalar(const CValue& v, DType t) const;
  std::string vector(const CValue& v, DType t);
  std::string lane(const CValue& v, DType t, int lane) const;

  std::string type_of(DType t, int width = 1) const { return c_type(dialect, t, width); }
  std::string memory_type(DType t, int width = 1) const { return c_memory(dialect, t, width); }
  std::string zero(DType t, int width) const { return "(" + type_of(t, width) + ")(0)"; }
  void line(const std::string& statement) { text.line(statement); }
  std::string define(const std::string& type, const std::string& expr) {
    return text.define(type, expr);
  }

  const kernel::LinearKernel& kernel;
  const CDialect& dialect;
  const LaneSpace space;
  const bool has_wide_registers;
  int width = 1;  // lanes of the Vector range
  kernel::LaneMask vector_mask = 0;
  std::vector<std::vector<CValue>> values;  // per op, per instance without the Vector bit
  size_t current = 0;                       // op
  CText text;
  size_t shared_bytes = 0;  // of its Shared memory

 private:
  std::unordered_map<const ir::Node*, size_t> position_;
};

}  // namespace tuff::render
