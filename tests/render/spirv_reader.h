// A compute module as its words say: types with their layout, constants, variables, and the one
// function as a list of instructions. Called by the SPIR-V interpreter. Knows nothing of the
// renderer that wrote the words. InternalError where they are no such module.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tuff::render::testing {

using Id = uint32_t;

// Up to four components, as bits from bit 0; bools are 0 or 1, pointers addresses.
using Value = std::array<uint64_t, 4>;

struct Instruction {
  uint32_t op = 0;
  Id type = 0, result = 0;             // 0: none
  std::span<const uint32_t> operands;  // after those two
};

struct Type {
  uint32_t op = 0;
  uint32_t bits = 0;                 // of a number
  bool is_signed = false;            // of an integer
  bool is_bfloat = false;            // of a float
  Id element = 0;                    // of vectors, arrays, pointers
  uint32_t count = 0;                // of vectors and arrays; 0: a runtime array
  uint32_t stride = 0;               // of arrays; 0: none is declared
  uint32_t storage = 0;              // of pointers
  std::array<uint32_t, 3> matrix{};  // rows, columns and use of a cooperative matrix
  std::vector<Id> members;           // of structs
  std::vector<uint32_t> offsets;
};

struct Variable {
  Id id = 0, type = 0;  // of what it holds
  uint32_t storage = 0;
  int builtin = -1, binding = -1;
};

class SpirvReader {
 public:
  explicit SpirvReader(std::span<const uint32_t> words);

  const Type& type(Id id) const;
  bool is_matrix(Id id) const;  // a type of cooperative matrices
  uint64_t number(Id constant) const;
  const Type& type_of(Id value) const { return type(result_types_[value]); }
  // In memory: components one after the other, bools as words.
  uint64_t size_bytes(Id type) const;
  const std::vector<std::pair<Id, Value>>& constants() const { return constants_; }
  const std::vector<Variable>& variables() const { return variables_; }  // the function's too
  const std::vector<Instruction>& body() const { return body_; }
  size_t label(Id block) const { return labels_.at(block); }  // its position in the body
  Id id_bound() const { return id_bound_; }
  std::array<uint32_t, 3> local_size() const { return local_size_; }

 private:
  void declare(const Instruction& i);
  void declare_type(const Instruction& i);
  void decorate(const Instruction& i);
  void finish_types();

  Id id_bound_ = 0;
  std::vector<Type> types_;  // by id; of no op where it is none
  std::vector<Id> result_types_;
  std::vector<std::pair<Id, Value>> constants_;
  std::unordered_map<Id, std::map<uint32_t, uint32_t>> decorations_;
  std::unordered_map<Id, std::map<uint32_t, uint32_t>> member_offsets_;
  std::vector<Variable> variables_;
  std::vector<Instruction> body_;
  std::unordered_map<Id, size_t> labels_;
  std::array<uint32_t, 3> local_size_{1, 1, 1};
};

}  // namespace tuff::render::testing
