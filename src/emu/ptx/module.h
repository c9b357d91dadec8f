// A parsed module of PTX: functions as instructions that are ready to run, and variables. Made by
// the parser, read by what executes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ptxas.h"
#include "emu/api.h"
#include "emu/ptx/types.h"

namespace tuff::emu::ptx {

struct Warp;
struct Instruction;

// Executes an instruction for the lanes of a mask.
using Execute = void (*)(Warp& w, const Instruction& i, uint32_t lanes);

// What an instruction asks of control flow.
enum class Kind : uint8_t {
  Plain,
  Branch,
  BranchIndexed,
  Call,
  Return,
  Exit,
  Trap,
  Barrier,
  WarpSync,     // waits for the lanes that its last source names
  WarpAligned,  // waits for all lanes of the warp
};

inline constexpr uint32_t kNone = ~0u;
inline constexpr size_t kMostOperands = 16;

enum class Scope : uint8_t { None, Block, Device, System };
enum class Order : uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };  // 8.4

// Of an address operand, and of what accesses memory there.
struct MemoryForm {
  Space space = Space::Generic;
  Type type = Type::None;
  uint8_t count = 1;  // elements of a vector
  Order order = Order::Weak;
  Scope scope = Scope::None;
  uint32_t base = kNone;  // register
  int64_t offset = 0;
  bool in_frame = false;  // of the parameter space: of a call, not of the launch
};

struct Instruction {
  Execute execute = nullptr;
  Kind kind = Kind::Plain;
  bool own_definedness = false;  // `execute` says itself which lanes of results are defined
  uint8_t bit_sources = 0;  // of whose bits each bit of a result takes one at most (known_bits.h)
  bool by_halves = false;  // each half of a result is of the sources' halves there alone
  bool guard_negated = false;
  bool flushes = false, saturates = false, relu = false, nan = false;  // .ftz .sat .relu .NaN
  Rounding rounding = Rounding::Nearest;
  uint8_t variant = 0;                    // what else the form says, in terms of who executes it
  uint8_t destinations = 0, sources = 0;  // of `operands`, in this order
  std::array<bool, 2> predicate_negated{};
  uint16_t row = 0;       // of opcodes.def
  uint32_t line = 0;      // of the text
  uint32_t spelling = 0;  // of the module
  uint32_t guard = kNone;
  std::array<uint32_t, 2> predicate_destinations{kNone, kNone}, predicate_sources{kNone, kNone};
  uint32_t target = 0;  // of a branch: an instruction; of others: a row of the function's tables
  MemoryForm memory, second;  // second: what an asynchronous copy reads
  struct {
    uint8_t a = 0, b = 0, depth = 0;  // elements of the factors, in terms of matrix.cpp
  } matrix;
  std::array<uint32_t, kMostOperands> operands{};

  uint32_t d(uint32_t k = 0) const { return operands[k]; }
  uint32_t s(uint32_t k) const { return operands[destinations + k]; }
};

// A register that holds the same for the whole call: set when its frame is made.
struct Constant {
  enum class Source : uint8_t {
    Value,
    Shared,  // the address of shared variable `value`, and above 32 bits an offset to it
    Local,   // of a variable at this offset of the frame
    ThreadId,
    BlockSize,
    BlockId,
    GridSize,  // the axis `value`
    Lane,
    WarpNumber,
    WarpCount,
    LanesEqual,
    LanesBelow,
    LanesUpToOwn,
    LanesAbove,
    LanesFromOwn,
    Processor,
    ProcessorCount,
    GridNumber,
    DynamicShared,
    TotalShared,
  };
  Source source = Source::Value;
  uint64_t value = 0;
  uint32_t reg = 0;
};

// Bytes in the parameter space of a frame, or a register, as a call hands them over.
struct Passed {
  uint32_t reg = kNone;  // kNone: bytes at an offset
  bool predicate = false;
  uint32_t offset = 0, bytes = 0;
};

struct CallSite {
  std::string name;
  uint32_t callee = kNone;  // of the module's functions
  std::vector<Passed> arguments, results;
};

struct Function {
  std::string name;
  bool is_entry = false, is_defined = false;
  uint32_t line = 0;
  std::vector<Passed> formals, results;  // of those that are called
  std::vector<uint8_t> register_bits;    // of each register
  uint32_t predicates = 0;
  std::vector<uint32_t> true_predicates;  // constants
  std::vector<Constant> constants;
  std::vector<Instruction> code;
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> branch_tables;
  uint32_t local_bytes = 0;
  uint32_t parameter_bytes = 0;   // of the parameter space of a frame
  std::vector<uint32_t> shared;   // variables that it names
  emu_api::PtxKernelInfo kernel;  // of entries
};

// Where the shared variables of a kernel lie, those of the functions that it calls among them.
struct SharedLayout {
  std::vector<uint64_t> offsets;  // by variable; only those that are used
  uint32_t static_bytes = 0;
  uint32_t dynamic_offset = 0;
};

struct SharedVariable {
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 1;
  bool dynamic = false;  // as many bytes as the launch says
};

class Module : public emu_api::PtxModule {
 public:
  const std::vector<emu_api::PtxKernelInfo>& kernels() const override { return infos; }
  const std::vector<emu_api::PtxVariable>& variables() const override { return globals; }
  std::string target() const override { return target_name; }
  std::string version() const override { return version_text; }

  const Function* find(const std::string& name) const;  // an entry, or null
  SharedLayout shared_layout(const Function& kernel) const;
  // Bytes of local memory of a thread that runs the kernel, with what its calls need.
  uint32_t local_bytes(const Function& kernel) const;

  std::string target_name, version_text;
  std::vector<std::string> spellings;  // of instructions
  std::deque<Function> functions;
  std::vector<SharedVariable> shared;
  std::vector<emu_api::PtxKernelInfo> infos;
  std::vector<emu_api::PtxVariable> globals;
  std::deque<std::vector<uint8_t>> storage;  // of globals
  std::set<std::string> names;               // of registers, while the text is read
  std::string text;
  // What ptxas said of it, by architecture: nothing where there is none. For resources.cpp.
  mutable std::map<std::string, std::optional<std::vector<PtxasKernel>>> assembled;

 private:
  std::vector<uint32_t> reached(const Function& kernel) const;
};

}  // namespace tuff::emu::ptx
