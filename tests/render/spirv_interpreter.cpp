#include "render/spirv_interpreter.h"

#include <algorithm>
#include <cstring>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "render/spirv_cooperative_matrix.h"
#include "render/spirv_matrices.h"
#include "render/spirv_reader.h"
#include "render/spirv_values.h"

namespace tuff::render::testing {
namespace {

// An address: the number of a memory, then the byte in it. A buffer begins some way behind the
// binding that it is seen through.
constexpr uint32_t kMemoryShift = 40;
constexpr uint32_t kSkipStep = 64;

struct Memory {
  std::span<uint8_t> bytes;
  uint64_t begin = 0;                    // byte of the first of them
  std::vector<bool>* written = nullptr;  // null: all of it
};

// Memory that an invocation or a workgroup has for itself.
struct OwnMemory {
  std::vector<uint8_t> bytes;
  std::vector<bool> written;
  explicit OwnMemory(size_t n = 0) : bytes(n), written(n) {}
  Memory memory() { return {bytes, 0, &written}; }
};

// Who touched a byte of workgroup memory, and between which barriers.
struct Touch {
  uint64_t written = 0, read = 0;  // intervals; 0: none
  uint32_t writer = 0, reader = 0;
  bool several = false;  // readers
};

struct Invocation {
  std::array<uint32_t, 3> local{};
  uint32_t index = 0;  // in its workgroup
  uint32_t lane = 0;  // of its subgroup
  std::vector<Value> values;
  std::vector<bool> known;
  std::unordered_map<Id, Matrix> shares;  // of cooperative matrices: the elements that it holds
  OwnMemory own;
  size_t at = 0;  // of the body
  Id block = 0;
  bool done = false;
};

class Machine {
 public:
  Machine(std::span<const uint32_t> words, const SpirvLaunch& launch) : m_(words), launch_(launch) {
    lay_out_variables();
    map_arguments();
  }

  void run() {
    for (uint32_t z = 0; z < launch_.groups[2]; ++z)
      for (uint32_t y = 0; y < launch_.groups[1]; ++y)
        for (uint32_t x = 0; x < launch_.groups[0]; ++x) run_group({x, y, z});
  }

 private:
  // Buffers, then the block, push constants, workgroup memory and the invocation's own.
  uint32_t block_memory() const { return uint32_t(launch_.buffers.size()) + 1; }
  uint32_t push_memory() const { return block_memory() + 1; }
  uint32_t shared_memory() const { return block_memory() + 2; }
  uint32_t own_memory() const { return block_memory() + 3; }
  static uint64_t address(uint32_t memory, uint64_t byte) {
    return (uint64_t(memory) << kMemoryShift) + byte;
  }

  void lay_out_variables();
  void map_arguments();
  void run_group(const std::array<uint32_t, 3>& group);
  Invocation invocation(const std::array<uint32_t, 3>& group, uint32_t index);
  void advance(Invocation& v);
  void jump(Invocation& v, Id to);
  static bool is_shuffle(uint32_t op);
  void shuffle(std::span<Invocation> subgroup);
  bool step_together(std::span<Invocation> subgroup);
  static bool is_collective(uint32_t op);
  uint64_t uniform(std::span<Invocation> subgroup, Id id);
  void collective(std::span<Invocation> subgroup);
  Matrix gathered(std::span<Invocation> subgroup, Id matrix);
  void scatter(std::span<Invocation> subgroup, const Instruction& i, const Matrix& whole);
  Matrix load_matrix(std::span<Invocation> subgroup, const Instruction& i);
  void store_matrix(std::span<Invocation> subgroup, const Instruction& i);
  void hide_until_barrier(uint64_t address, uint64_t bytes);
  void check_matrix_access(uint64_t where, uint64_t stride_bytes, const Type& matrix,
                           uint32_t layout) const;
  bool moves_share(Invocation& v, const Instruction& i);
  uint64_t share_bytes(const Type& matrix) const {
    const uint64_t count = uint64_t(matrix.matrix[0]) * matrix.matrix[1];
    TUFF_CHECK(count % launch_.subgroup_size == 0, "{} elements in {} lanes", count,
               launch_.subgroup_size);
    return count / launch_.subgroup_size * m_.size_bytes(matrix.element);
  }
  void execute(Invocation& v, const Instruction& i);
  void control(Invocation& v, const Instruction& i);
  Value computed(Invocation& v, const Instruction& i);
  Value elementwise(Invocation& v, const Instruction& i);
  Value access_chain(Invocation& v, const Instruction& i);
  Value constructed(Invocation& v, const Instruction& i);
  Value bitcast(const Value& x, const Type& from, const Type& to) const;
  uint64_t atomic(Invocation& v, const Instruction& i);

  uint8_t* at(Invocation& v, uint64_t address, uint64_t bytes, bool write);
  void check_race(const Invocation& v, uint64_t byte, bool write);
  Value load(Invocation& v, uint64_t address, Id type);
  void store(Invocation& v, uint64_t address, Id type, const Value& x);
  void check_alignment(uint64_t address, std::span<const uint32_t> access) const;

  const Value& value(const Invocation& v, Id id) const {
    TUFF_CHECK(id < v.known.size() && v.known[id], "%{} is used before it has a value", id);
    return v.values[id];
  }
  const Type& component(const Type& t) const {
    return t.op == spv::OpTypeVector ? m_.type(t.element) : t;
  }
  static uint32_t components(const Type& t) { return t.op == spv::OpTypeVector ? t.count : 1; }

  SpirvReader m_;
  const SpirvLaunch& launch_;
  std::vector<uint8_t> block_, push_;
  std::vector<Memory> memories_;
  OwnMemory shared_;
  std::vector<Touch> touched_;  // bytes of workgroup memory
  uint64_t interval_ = 1;       // barriers so far, and one
  std::vector<uint64_t> variable_bytes_;  // by variable: where it lies in its memory
  uint64_t shared_bytes_ = 0, own_bytes_ = 0;
  std::vector<uint64_t> pending_;  // of workgroup memory, written by subgroups since the barrier
};

// ---- memory ---------------------------------------------------------------------------------

void Machine::lay_out_variables() {
  for (const Variable& x : m_.variables()) {
    uint64_t* end = x.storage == spv::StorageClassWorkgroup ? &shared_bytes_
                    : x.storage == spv::StorageClassFunction || x.storage == spv::StorageClassInput
                        ? &own_bytes_
                        : nullptr;
    variable_bytes_.push_back(end ? *end : 0);
    const uint64_t size = m_.is_matrix(x.type) ? share_bytes(m_.type(x.type))
                          : end                ? m_.size_bytes(x.type)
                                               : 0;
    if (end) *end += (size + 15) / 16 * 16;
  }
}

void Machine::map_arguments() {
  const ArgLayout& args = launch_.args;
  TUFF_CHECK(
      launch_.buffers.size() == args.buffer_count && launch_.scalars.size() == args.scalar_count,
      "{} buffers and {} scalars for {} and {}", launch_.buffers.size(), launch_.scalars.size(),
      args.buffer_count, args.scalar_count);
  block_.resize(args.size_bytes());
  memories_.resize(own_memory() + 1);
  for (uint32_t i = 0; i < args.buffer_count; ++i) {
    const uint64_t skipped = kSkipStep * (i % (kBindingAlignment / kSkipStep));
    memories_[i + 1] = {launch_.buffers[i], skipped};
    const uint64_t first = address(i + 1, skipped);
    std::memcpy(&block_[i * sizeof first], &first, sizeof first);
  }
  for (uint32_t i = 0; i < args.scalar_count; ++i)
    std::memcpy(&block_[args.scalar_offset(i)], &launch_.scalars[i], sizeof(int32_t));
  // By addresses the push constant is the block's; bound, the number of its first word.
  bool bound = false;
  for (const Variable& x : m_.variables()) bound |= x.storage == spv::StorageClassStorageBuffer;
  const uint64_t where = bound ? kSkipStep / 4 : address(block_memory(), kSkipStep);
  push_.resize(sizeof where);
  std::memcpy(push_.data(), &where, sizeof where);
  memories_[block_memory()] = {block_, kSkipStep};
  memories_[push_memory()] = {push_};
}

uint8_t* Machine::at(Invocation& v, uint64_t address, uint64_t bytes, bool write) {
  const uint64_t number = address >> kMemoryShift, byte = address & ((1ull << kMemoryShift) - 1);
  TUFF_CHECK(number > 0 && number < memories_.size(), "address {:#x} is no memory", address);
  const Memory m = number == own_memory()      ? v.own.memory()
                   : number == shared_memory() ? shared_.memory()
                                               : memories_[number];
  TUFF_CHECK(byte >= m.begin && byte + bytes <= m.begin + m.bytes.size(),
             "{} bytes at byte {} of memory {}, which has {}", bytes, int64_t(byte - m.begin),
             number, m.bytes.size());
  for (uint64_t i = byte; m.written && i < byte + bytes; ++i) {
    TUFF_CHECK(write || (*m.written)[i], "byte {} of memory {} is read before it is written", i,
               number);
    (*m.written)[i] = true;
    if (number == shared_memory()) check_race(v, i, write);
  }
  return m.bytes.data() + (byte - m.begin);
}

// A data race of Vulkan's memory model, also where the value read is dropped.
void Machine::check_race(const Invocation& v, uint64_t byte, bool write) {
  Touch& t = touched_[byte];
  const bool written = t.written == interval_ && t.writer != v.index;
  const bool read = t.read == interval_ && (t.several || t.reader != v.index);
  TUFF_CHECK(!written && !(write && read),
             "invocation {} {} byte {} of workgroup memory, which another {} since the last barrier",
             v.index, write ? "writes" : "reads", byte, written ? "wrote" : "read");
  if (write) {
    t.written = interval_, t.writer = v.index;
    return;
  }
  t.several = t.read == interval_ && (t.several || t.reader != v.index);
  t.read = interval_, t.reader = v.index;
}

void Machine::check_alignment(uint64_t address, std::span<const uint32_t> access) const {
  if (access.empty() || !(access[0] & spv::MemoryAccessAlignedMask)) return;
  TUFF_CHECK(address % access[1] == 0, "an access to {:#x} claims {} bytes of alignment", address,
             access[1]);
}

Value Machine::load(Invocation& v, uint64_t address, Id type) {
  const Type& t = m_.type(type);
  const uint32_t n = components(t);
  const uint64_t size = m_.size_bytes(type) / n;
  Value out{};
  for (uint32_t c = 0; c < n; ++c)
    std::memcpy(&out[c], at(v, address + c * size, size, false), size);
  return out;
}

void Machine::store(Invocation& v, uint64_t address, Id type, const Value& x) {
  const uint32_t n = components(m_.type(type));
  const uint64_t size = m_.size_bytes(type) / n;
  for (uint32_t c = 0; c < n; ++c) std::memcpy(at(v, address + c * size, size, true), &x[c], size);
}

// ---- workgroups -----------------------------------------------------------------------------

Invocation Machine::invocation(const std::array<uint32_t, 3>& group, uint32_t index) {
  const auto size = m_.local_size();
  Invocation v;
  v.local = {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
  v.index = index;
  v.lane = index % launch_.subgroup_size;
  v.values.resize(m_.id_bound());
  v.known.resize(m_.id_bound());
  v.own = OwnMemory(own_bytes_);
  for (const auto& [id, x] : m_.constants()) {
    v.values[id] = x;
    v.known[id] = true;
  }
  for (size_t i = 0; i < m_.variables().size(); ++i) {
    const Variable& x = m_.variables()[i];
    const uint64_t byte = variable_bytes_[i];
    const bool own = x.storage == spv::StorageClassFunction || x.storage == spv::StorageClassInput;
    const uint64_t where =
        own                                             ? address(own_memory(), byte)
        : x.storage == spv::StorageClassWorkgroup       ? address(shared_memory(), byte)
        : x.storage == spv::StorageClassPushConstant    ? address(push_memory(), 0)
        : x.storage == spv::StorageClassUniformConstant ? uint64_t(x.binding)
                                                        : address(uint32_t(x.binding) + 1, 0);
    v.values[x.id] = {where};
    v.known[x.id] = true;
    const auto set = [&](const std::array<uint32_t, 3>& w) {
      store(v, where, x.type, {w[0], w[1], w[2]});
    };
    if (x.builtin == spv::BuiltInWorkgroupId) set(group);
    if (x.builtin == spv::BuiltInNumWorkgroups) set(launch_.groups);
    if (x.builtin == spv::BuiltInLocalInvocationId) set(v.local);
    if (x.builtin == spv::BuiltInSubgroupLocalInvocationId) set({v.lane});
    if (x.builtin == spv::BuiltInSubgroupId) set({index / launch_.subgroup_size});
  }
  return v;
}

// What a subgroup's invocations have stopped at is done by them together. False at a barrier or
// the end.
bool Machine::step_together(std::span<Invocation> subgroup) {
  for (Invocation& v : subgroup) advance(v);
  for (const Invocation& v : subgroup)
    TUFF_CHECK(v.at == subgroup[0].at && v.done == subgroup[0].done,
               "invocations of one subgroup stop at instructions {} and {}", subgroup[0].at, v.at);
  const uint32_t op = subgroup[0].done ? 0 : m_.body()[subgroup[0].at].op;
  if (is_shuffle(op)) {
    shuffle(subgroup);
  } else if (is_collective(op)) {
    collective(subgroup);
  } else {
    return false;
  }
  return true;
}

void Machine::run_group(const std::array<uint32_t, 3>& group) {
  const auto size = m_.local_size();
  const uint32_t n = size[0] * size[1] * size[2];
  shared_ = OwnMemory(shared_bytes_);
  touched_.assign(shared_bytes_, {});
  std::vector<Invocation> all;
  for (uint32_t i = 0; i < n; ++i) all.push_back(invocation(group, i));
  for (bool backwards = false; !all[0].done; backwards = !backwards) {
    // Between barriers in one order, then in the other: what needs one shows.
    const uint32_t step = std::min(launch_.subgroup_size, n), subgroups = (n + step - 1) / step;
    for (uint32_t k = 0; k < subgroups; ++k) {
      const uint32_t first = (backwards ? subgroups - 1 - k : k) * step;
      const auto subgroup = std::span(all).subspan(first, std::min(step, n - first));
      while (step_together(subgroup)) {}
    }
    for (Invocation& v : all) {
      TUFF_CHECK(v.at == all[0].at && v.done == all[0].done, "a barrier that not all come to");
    }
    for (Invocation& v : all) v.at += v.done ? 0 : 1;
    ++interval_;
    for (const uint64_t byte : pending_) shared_.written[byte] = true;
    pending_.clear();
  }
}

bool Machine::is_shuffle(uint32_t op) {
  return op == spv::OpGroupNonUniformShuffle || op == spv::OpGroupNonUniformShuffleXor;
}

void Machine::shuffle(std::span<Invocation> subgroup) {
  const Instruction& i = m_.body()[subgroup[0].at];
  std::vector<Value> given;
  for (const Invocation& v : subgroup) given.push_back(value(v, i.operands[1]));
  for (Invocation& v : subgroup) {
    const uint64_t which = value(v, i.operands[2])[0];
    const uint64_t from = i.op == spv::OpGroupNonUniformShuffleXor ? which ^ v.lane : which;
    TUFF_CHECK(from < given.size(), "a shuffle from lane {} of {}", from, given.size());
    v.values[i.result] = given[from];
    v.known[i.result] = true;
    ++v.at;
  }
}

// ---- cooperative matrices -------------------------------------------------------------------

bool Machine::is_collective(uint32_t op) {
  return op == cooperative::kOpLoad || op == cooperative::kOpStore || op == cooperative::kOpMulAdd;
}

// What has to be the same in all lanes.
uint64_t Machine::uniform(std::span<Invocation> subgroup, Id id) {
  const uint64_t first = value(subgroup[0], id)[0];
  for (const Invocation& v : subgroup)
    TUFF_CHECK(value(v, id)[0] == first, "%{} of a matrix differs between lanes", id);
  return first;
}

void Machine::collective(std::span<Invocation> subgroup) {
  const Instruction& i = m_.body()[subgroup[0].at];
  TUFF_CHECK(subgroup.size() == launch_.subgroup_size, "{} of {} lanes at a matrix",
             subgroup.size(), launch_.subgroup_size);
  if (i.op == cooperative::kOpStore) {
    store_matrix(subgroup, i);
  } else if (i.op == cooperative::kOpLoad) {
    scatter(subgroup, i, load_matrix(subgroup, i));
  } else {
    scatter(subgroup, i,
            multiply_add(m_, i, gathered(subgroup, i.operands[0]),
                         gathered(subgroup, i.operands[1]), gathered(subgroup, i.operands[2])));
  }
  for (Invocation& v : subgroup) ++v.at;
}

Matrix Machine::gathered(std::span<Invocation> subgroup, Id matrix) {
  const Type& t = m_.type_of(matrix);
  Matrix whole(size_t(t.matrix[0]) * t.matrix[1]);
  for (Invocation& v : subgroup) {
    const auto share = v.shares.find(matrix);
    TUFF_CHECK(share != v.shares.end(), "%{} is used before it has a value", matrix);
    const auto held = held_elements(t, v.lane, launch_.subgroup_size);
    for (size_t e = 0; e < held.size(); ++e) whole[held[e]] = share->second.at(e);
  }
  return whole;
}

void Machine::scatter(std::span<Invocation> subgroup, const Instruction& i, const Matrix& whole) {
  for (Invocation& v : subgroup) {
    Matrix& share = v.shares[i.result];
    share.clear();
    for (const size_t e : held_elements(m_.type(i.type), v.lane, launch_.subgroup_size))
      share.push_back(whole[e]);
  }
}

// VUID-RuntimeSpirv-OpCooperativeMatrixLoadKHR-08986: to 16 bytes, or to a row (column) if shorter.
void Machine::check_matrix_access(uint64_t where, uint64_t stride_bytes, const Type& matrix,
                                  uint32_t layout) const {
  const uint64_t line = matrix.matrix[layout == cooperative::kRowMajor ? 1 : 0];
  const uint64_t aligned = std::min<uint64_t>(16, line * m_.size_bytes(matrix.element));
  TUFF_CHECK(where % aligned == 0 && stride_bytes % aligned == 0,
             "a matrix at {:#x} with a stride of {} bytes is not aligned to {}", where,
             stride_bytes, aligned);
}

Matrix Machine::load_matrix(std::span<Invocation> subgroup, const Instruction& i) {
  const uint64_t where = uniform(subgroup, i.operands[0]),
                 stride = uniform(subgroup, i.operands[2]);
  const auto layout = uint32_t(uniform(subgroup, i.operands[1]));
  const Type& t = m_.type(i.type);
  const uint64_t size = m_.size_bytes(m_.type_of(i.operands[0]).element);
  TUFF_CHECK(size == m_.size_bytes(t.element), "a matrix of elements that memory does not hold");
  check_alignment(where, i.operands.subspan(3));
  check_matrix_access(where, stride * size, t, layout);
  Matrix whole;
  for (uint64_t r = 0; r < t.matrix[0]; ++r) {
    for (uint64_t c = 0; c < t.matrix[1]; ++c) {
      const uint64_t from = where + matrix_offset(layout, stride, r, c) * size;
      std::memcpy(&whole.emplace_back(0), at(subgroup[0], from, size, false), size);
    }
  }
  return whole;
}

void Machine::store_matrix(std::span<Invocation> subgroup, const Instruction& i) {
  const uint64_t where = uniform(subgroup, i.operands[0]),
                 stride = uniform(subgroup, i.operands[3]);
  const auto layout = uint32_t(uniform(subgroup, i.operands[2]));
  const Type& t = m_.type_of(i.operands[1]);
  const uint64_t size = m_.size_bytes(t.element);
  const Matrix whole = gathered(subgroup, i.operands[1]);
  check_alignment(where, i.operands.subspan(4));
  check_matrix_access(where, stride * size, t, layout);
  for (uint64_t r = 0; r < t.matrix[0]; ++r) {
    for (uint64_t c = 0; c < t.matrix[1]; ++c) {
      const uint64_t to = where + matrix_offset(layout, stride, r, c) * size;
      std::memcpy(at(subgroup[0], to, size, true), &whole[r * t.matrix[1] + c], size);
      if (to >> kMemoryShift == shared_memory()) hide_until_barrier(to, size);
    }
  }
}

// Which lane wrote an element nobody knows: all need a barrier before they read.
void Machine::hide_until_barrier(uint64_t address, uint64_t bytes) {
  const uint64_t first = address & ((1ull << kMemoryShift) - 1);
  for (uint64_t byte = first; byte < first + bytes; ++byte) {
    shared_.written[byte] = false;
    pending_.push_back(byte);
  }
}

// What each lane does with its own elements: variables and matrices of one value.
bool Machine::moves_share(Invocation& v, const Instruction& i) {
  const bool stores = i.op == spv::OpStore && m_.is_matrix(m_.type_of(i.operands[0]).element);
  const bool makes = i.type && m_.is_matrix(i.type);
  if (!stores && !makes) return false;
  const Type& t = m_.type(stores ? m_.type_of(i.operands[0]).element : i.type);
  const uint64_t size = m_.size_bytes(t.element), count = share_bytes(t) / size;
  if (i.op == spv::OpFMul || i.op == spv::OpFConvert) {
    Matrix made;
    for (uint64_t e = 0; e < count; ++e) {
      std::vector<uint64_t> x;
      for (const Id source : i.operands) x.push_back(v.shares.at(source).at(e));
      made.push_back(arithmetic(i.op, m_.type(m_.type_of(i.operands[0]).element),
                                m_.type(t.element), x));
    }
    v.shares[i.result] = std::move(made);
    return true;
  }
  const uint64_t where = i.op == spv::OpCompositeConstruct ? 0 : value(v, i.operands[0])[0];
  if (i.op == spv::OpCompositeConstruct) {
    v.shares[i.result].assign(count, value(v, i.operands.front())[0]);
  } else if (i.op == spv::OpLoad) {
    Matrix& share = v.shares[i.result];
    share.assign(count, 0);
    for (uint64_t e = 0; e < count; ++e)
      std::memcpy(&share[e], at(v, where + e * size, size, false), size);
  } else {
    TUFF_CHECK(stores, "SPIR-V interpreter: opcode {} of a matrix", i.op);
    const Matrix& share = v.shares.at(i.operands[1]);
    for (uint64_t e = 0; e < count; ++e)
      std::memcpy(at(v, where + e * size, size, true), &share[e], size);
  }
  return true;
}

// ---- instructions ---------------------------------------------------------------------------

// Until a barrier, a shuffle or the end.
void Machine::advance(Invocation& v) {
  while (!v.done) {
    const Instruction& i = m_.body()[v.at];
    if (i.op == spv::OpControlBarrier || is_shuffle(i.op) || is_collective(i.op)) return;
    execute(v, i);
  }
}

void Machine::jump(Invocation& v, Id to) {
  const Id from = v.block;
  size_t at = m_.label(to) + 1;
  std::vector<std::pair<Id, Value>> phis;
  for (; m_.body()[at].op == spv::OpPhi; ++at) {
    const auto x = m_.body()[at].operands;
    for (size_t k = 0; k < x.size(); k += 2)
      if (x[k + 1] == from) phis.push_back({m_.body()[at].result, value(v, x[k])});
  }
  for (const auto& [id, x] : phis) {
    v.values[id] = x;
    v.known[id] = true;
  }
  v.block = to;
  v.at = at;
}

void Machine::control(Invocation& v, const Instruction& i) {
  switch (i.op) {
    case spv::OpLabel: v.block = i.result; [[fallthrough]];
    case spv::OpSelectionMerge:
    case spv::OpLoopMerge: ++v.at; return;
    case spv::OpBranch: return jump(v, i.operands[0]);
    case spv::OpBranchConditional: return jump(v, i.operands[value(v, i.operands[0])[0] ? 1 : 2]);
    case spv::OpReturn: v.done = true; return;
    default: fail<InternalError>("SPIR-V interpreter: opcode {}", i.op);
  }
}

void Machine::execute(Invocation& v, const Instruction& i) {
  if (moves_share(v, i)) {
    ++v.at;
    return;
  }
  if (i.op == spv::OpStore) {
    const uint64_t where = value(v, i.operands[0])[0];
    check_alignment(where, i.operands.subspan(2));
    store(v, where, m_.type_of(i.operands[0]).element, value(v, i.operands[1]));
    ++v.at;
    return;
  }
  if (!i.type) return control(v, i);
  const Value x = computed(v, i);
  v.values[i.result] = x;
  v.known[i.result] = true;
  ++v.at;
}

Value Machine::computed(Invocation& v, const Instruction& i) {
  switch (i.op) {
    case spv::OpLoad: {
      const uint64_t where = value(v, i.operands[0])[0];
      check_alignment(where, i.operands.subspan(1));
      return load(v, where, i.type);
    }
    case spv::OpAccessChain: return access_chain(v, i);
    case spv::OpCompositeExtract: return {value(v, i.operands[0])[i.operands[1]]};
    case spv::OpCompositeConstruct: return constructed(v, i);
    case spv::OpSelect: return value(v, i.operands[value(v, i.operands[0])[0] ? 1 : 2]);
    case spv::OpBitcast:
      return bitcast(value(v, i.operands[0]), m_.type_of(i.operands[0]), m_.type(i.type));
    case spv::OpConvertPtrToU:
    case spv::OpConvertUToPtr: return value(v, i.operands[0]);
    case spv::OpAtomicAnd:
    case spv::OpAtomicOr: return {atomic(v, i)};
    case spv::OpExtInst: {
      std::vector<Value> x;
      for (const Id id : i.operands.subspan(2)) x.push_back(value(v, id));
      return extended(i.operands[1], component(m_.type(i.type)), x);
    }
    default: return elementwise(v, i);
  }
}

Value Machine::elementwise(Invocation& v, const Instruction& i) {
  const Type &from = m_.type_of(i.operands[0]), &to = m_.type(i.type);
  Value out{};
  for (uint32_t c = 0; c < components(to); ++c) {
    uint64_t x[3] = {};
    for (size_t k = 0; k < i.operands.size(); ++k) x[k] = value(v, i.operands[k])[c];
    out[c] = arithmetic(i.op, component(from), component(to), {x, i.operands.size()});
  }
  return out;
}

Value Machine::constructed(Invocation& v, const Instruction& i) {
  Value out{};
  for (size_t c = 0; c < i.operands.size(); ++c) out[c] = value(v, i.operands[c])[0];
  return out;
}

Value Machine::bitcast(const Value& x, const Type& from, const Type& to) const {
  if (from.op == spv::OpTypePointer || to.op == spv::OpTypePointer) return x;
  std::array<uint8_t, sizeof(Value)> bytes{};
  const auto width = [&](const Type& t) { return component(t).bits / 8; };
  TUFF_CHECK(width(from) * components(from) == width(to) * components(to),
             "a bitcast that changes the number of bits");
  for (uint32_t c = 0; c < components(from); ++c)
    std::memcpy(&bytes[c * width(from)], &x[c], width(from));
  Value out{};
  for (uint32_t c = 0; c < components(to); ++c)
    std::memcpy(&out[c], &bytes[c * width(to)], width(to));
  return out;
}

Value Machine::access_chain(Invocation& v, const Instruction& i) {
  uint64_t where = value(v, i.operands[0])[0];
  Id type = m_.type_of(i.operands[0]).element;
  for (const Id index : i.operands.subspan(1)) {
    const Type &t = m_.type(type), &number = m_.type_of(index);
    const uint64_t bits = value(v, index)[0];
    const int64_t n =
        number.bits == 32 && number.is_signed ? int64_t(int32_t(bits)) : int64_t(bits);
    if (t.op == spv::OpTypeStruct) {
      where += t.offsets.at(size_t(n));
      type = t.members.at(size_t(n));
    } else {
      const uint64_t stride = t.stride ? t.stride : m_.size_bytes(t.element);
      TUFF_CHECK(t.count == 0 || uint64_t(n) < t.count, "element {} of {}", n, t.count);
      where += uint64_t(n) * stride;
      type = t.element;
    }
  }
  return {where};
}

uint64_t Machine::atomic(Invocation& v, const Instruction& i) {
  const uint64_t where = value(v, i.operands[0])[0], x = value(v, i.operands[3])[0];
  const uint64_t before = load(v, where, i.type)[0];
  store(v, where, i.type, {i.op == spv::OpAtomicAnd ? before & x : before | x});
  return before;
}

}  // namespace

void run_spirv(std::span<const uint32_t> words, const SpirvLaunch& launch) {
  Machine(words, launch).run();
}

}  // namespace tuff::render::testing
