// CPacks: the scalar instances of an op as one vector. What vectors share, as the scales of a
// block's groups, is decoded for all groups by one instruction, and each vector takes its lane of
// it.
#pragma once

#include <string>
#include <unordered_map>

#include "render/c_memory.h"

namespace tuff::render {

class CPacks {
 public:
  CPacks(CBody& b, const CMemory& memory) : b_(b), memory_(memory) {}

  // Whether the instances of a load, or of an op of packs, became one; they have their values then.
  bool load(size_t i, const ir::Node& index);
  bool alu(size_t i);

 private:
  bool is_worth_it(size_t i) const;
  bool feeds_scalars_alone(size_t i) const;
  void set(size_t i, const std::string& name);
  std::string operand(size_t i, size_t source, bool& packed);

  CBody& b_;
  const CMemory& memory_;
  std::unordered_map<size_t, std::string> packs_;  // op -> the vector whose lanes its instances are
};

}  // namespace tuff::render
