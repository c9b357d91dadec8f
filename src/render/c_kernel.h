// CKernel: walks one linear list and writes the body of one C function.
// Called by c.cpp alone. The Vector range becomes SIMD lanes, where the dialect has them; every
// other lane combination is a variable of its own. Must never know compilers or targets.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "render/c_ops.h"
#include "render/c_types.h"
#include "render/divisors.h"
#include "render/lane_space.h"

namespace tuff::render {

// One instance of an op. An integer is base + constant + step * (vector lane / every): kept apart
// so that the lanes of an address share one base and a step of 1 shows itself as a contiguous
// access.
struct CValue {
  std::string base;  // a name or literal; empty: 0
  int64_t constant = 0, step = 0, every = 1;
  bool vector = false;  // base is a vector (then constant and step are 0)
  std::string table;    // a vector's lanes are those of this one that the low 4 bits of base name
  int64_t divisor = 1;  // known to divide the base
  bool varies() const { return vector || step != 0; }
  bool is_number() const { return base.empty() && step == 0; }
  bool operator==(const CValue&) const = default;
  bool is_contiguous() const { return step == 1 && every == 1; }
  int64_t at_lane(int64_t l) const { return constant + step * (l / every); }
};

// One instance of a Load or Store of memory.
struct CAccess {
  const ir::Node& index;
  CValue offset;
  int width;                     // lanes
  const CValue* gate = nullptr;  // null: always
  DType dtype() const { return index.dtype; }
  bool lane_gate() const { return gate && gate->varies(); }  // one for each lane
  bool whole_gate() const { return gate && !gate->varies(); }
  CAccess at(int64_t distance, int64_t step = 0) const {  // that far from the first lane
    return {index, {offset.base, offset.constant + distance, step}, width, gate};
  }
};

class CKernel {
 public:
  // wide_registers: of 64 bytes.
  CKernel(const kernel::LinearKernel& k, const CDialect& d, bool wide_registers);
  std::string body();  // "(const void* args, ...) { ... }" without the symbol
  size_t shared_bytes() const { return shared_bytes_; }  // of the body: its Shared memory

 private:
  void header();
  void emit(size_t i);
  void emit_range(size_t i);
  void emit_register(size_t i);
  void emit_alu(size_t i);
  void emit_load(size_t i);
  void emit_store(size_t i);
  void emit_prefetch(size_t i);
  void emit_reduce(size_t i);
  void emit_dot(size_t i);
  void order_block();

  // For dialects with workgroups: c_workgroup.cpp.
  void workgroup_header();
  void block_header();
  std::string coordinate(const ir::SpecialArg& s) const;
  std::string item_number() const;
  void emit_workgroup_memory(size_t i);
  void emit_shuffle(size_t i);
  void emit_matrix(size_t i);
  std::string matrix_place(size_t i, int instance) const;
  std::string held_type(const ir::Node& u, bool vec) const;  // of a value or a register

  CValue alu(const ir::Node& u, const std::vector<CValue>& x);
  bool affine(const ir::Node& u, const std::vector<CValue>& x, CValue& out);
  bool divided_lanes(const ir::Node& u, const std::vector<CValue>& x, CValue& out) const;
  CValue affine_sum(DType t, const CValue& a, const CValue& b, bool subtract);
  CValue affine_product(DType t, const CValue& a, int64_t factor);
  CAccess access(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  void claim_alignment(size_t i, const ir::Node& index);
  CValue load(const CAccess& a);
  CValue load_contiguous(const CAccess& a);
  CValue load_repeated(const CAccess& a);
  CValue load_strided(const CAccess& a);
  bool is_gathered(const CAccess& a) const;
  CValue load_gathered(const CAccess& a);
  void store(const CAccess& a, const CValue& v);
  void combine(const CAccess& a, const CValue& v, ir::Op op, DType t);
  void store_strided(const CAccess& a, const CValue& v);
  bool is_strided(const CAccess& a) const;
  std::string every_nth_of_vector(int v, int n, const CAccess& a);
  int64_t step_along(const ir::Node& index, kernel::LaneMask mask, int instance, int bit) const;
  bool share_gate(const ir::Node& index, kernel::LaneMask mask, int instance, int bit) const;
  CValue gates_along(const ir::Node& index, kernel::LaneMask mask, int instance, int bit);
  int interleaved_bit(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  void load_interleaved(size_t i, const ir::Node& index, int first, int bit);
  void store_interleaved(size_t i, const ir::Node& index, int first, int bit);
  CAccess interleaved_part(const CAccess& a, int v, int n, CValue& gate);
  std::vector<int> interleaved_lanes(int v, int n) const;
  std::string every_nth(const std::vector<std::string>& vectors, DType t, int first, int width);
  std::string shuffled(const std::string& a, const std::string& b, DType t,
                       std::span<const int> lanes);
  int transposed_bit(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  void load_behind_gates(size_t i, const ir::Node& index);
  void load_transposed(size_t i, const ir::Node& index, int first, int bit);
  std::vector<std::string> transposed(std::vector<std::string> rows, DType t);
  std::string joined(std::vector<std::string> parts, DType t, int n);

  // Scalar instances as vectors: c_packs.cpp.
  bool may_pack(size_t i) const;
  std::vector<size_t> users(size_t i) const;
  bool feeds_scalars_alone(size_t i) const;
  void set_pack(size_t i, const std::string& name);
  bool load_packed(size_t i, const ir::Node& index);
  std::string packed_operand(size_t i, size_t source, bool& packed);
  bool alu_packed(size_t i);


  // Values of numbers of 4 bits: c_lookups.cpp.
  bool has_lookups() const;
  bool feeds_arithmetic_alone(size_t i) const;
  bool looked_up(const ir::Node& u, const std::vector<CValue>& x, CValue& out);
  std::string look_up(const CValue& v, DType t);

  CValue load_register(size_t i, const ir::Node* reg, int instance);
  bool changes_before_last_use(size_t load, const ir::Node* reg) const;
  void store_register(size_t i, const ir::Node* reg);
  CValue fold(ir::Op op, DType t, const std::vector<CValue>& x, bool across_vector);

  // Texts of a value: as one scalar, as a full vector, as its lane `lane`.
  std::string scalar(const CValue& v, DType t) const;
  std::string vector(const CValue& v, DType t);
  std::string lane(const CValue& v, DType t, int lane) const;
  std::string element(const CAccess& a, int lane) const;
  std::string masked(const char* verb, const CAccess& a) const;
  std::string pointer_name(const ir::Node& index) const;
  std::string pointer(const CAccess& a) const;
  std::string vector_at(const CAccess& a, int width) const;  // as it lies there
  std::string zero(DType t, int width) const { return fmt::format("({})(0)", type_of(t, width)); }
  std::string or_zero(const CAccess& a, const std::string& text) const;

  std::string type_of(DType t, int width = 1) const { return c_type(dialect_, t, width); }
  std::string memory_type(DType t, int width = 1) const { return c_memory(dialect_, t, width); }
  // A variable of the current op holding `expr`; the same expression gives the same variable.
  std::string define(const std::string& type, const std::string& expr);
  void line(const std::string& text);
  size_t position(const ir::Node* u) const;
  kernel::LaneMask lanes_of(const ir::Node* u) const { return k_.lanes[position(u)]; }
  kernel::LaneMask scalar_mask(kernel::LaneMask m) const { return m & ~vector_mask_; }
  const CValue& value(const ir::Node* u, kernel::LaneMask mask, int instance) const;

  const kernel::LinearKernel& k_;
  const CDialect& dialect_;
  LaneSpace space_;
  int width_ = 1;  // lanes of the Vector range
  kernel::LaneMask vector_mask_ = 0;
  std::unordered_map<const ir::Node*, size_t> position_;
  std::vector<std::vector<CValue>> values_;  // per op, per instance without the Vector bit
  std::unordered_map<size_t, std::string> packs_;  // op -> the vector whose lanes its instances are
  std::unordered_map<std::string, std::string> defined_;  // expression -> variable, of this op
  size_t current_ = 0, shared_bytes_ = 0;
  size_t block_ = 0;  // where in out_ the statements begin that only compute, for this op's block
  bool wide_registers_ = false;
  bool streams_ = false;  // stores past the caches
  int variables_ = 0, indent_ = 1;
  std::string out_;
};

}  // namespace tuff::render
