// SpirvModule: the words of one SPIR-V module: sections in the order that the specification asks
// for, ids, and one declaration each of equal types, constants, capabilities and decorations.
// Called by the SPIR-V renderer. Must never know of UOps. Opcodes and enumerants are the numbers of
// <spirv/unified1/spirv.hpp>, which only .cpp files include.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tuff::render {

using Id = uint32_t;

class SpirvModule {
 public:
  explicit SpirvModule(uint32_t version_minor) : version_minor_(version_minor) {}

  uint32_t version_minor() const { return version_minor_; }
  Id fresh() { return ++last_id_; }

  // ---- declarations ---------------------------------------------------------------------------
  void capability(uint32_t c);
  void extension(const std::string& name);
  Id glsl();  // GLSL.std.450, imported at first use
  void name(Id id, const std::string& text);
  // OpString, OpSource, OpSourceContinued: the file that line() speaks of, and its text.
  void source(const std::string& file, const std::string& text);
  void decorate(Id id, uint32_t decoration, std::initializer_list<uint32_t> extra = {});
  void decorate_member(Id id, uint32_t member, uint32_t decoration,
                       std::initializer_list<uint32_t> extra = {});
  void execution_mode(Id entry, uint32_t mode, std::initializer_list<uint32_t> extra = {});
  void memory_model(uint32_t addressing, uint32_t model);
  // Any OpType..., deduplicated; `key` keeps apart types that differ only in their decorations.
  Id type(uint32_t op, std::span<const uint32_t> operands, uint32_t key = 0);
  Id type(uint32_t op, std::initializer_list<uint32_t> operands, uint32_t key = 0) {
    return type(op, std::span(operands.begin(), operands.size()), key);
  }
  // OpConstant, OpConstantTrue, OpConstantNull ..., deduplicated.
  Id constant(uint32_t op, Id type, std::initializer_list<uint32_t> literals = {});
  Id global(Id pointer_type, uint32_t storage, bool in_interface);  // OpVariable at module scope
  Id local(Id pointer_type);                                        // OpVariable of the function
  // ---- code of the one function ---------------------------------------------------------------
  // The line of the source that what follows stands for; 0: none. Written as OpLine or OpNoLine
  // before the next instruction that it is news for.
  void line(uint32_t number) { line_ = number; }
  void begin_function();  // the compute shader "main"
  void end_function();
  Id entry() const { return entry_; }
  void label(Id id);
  Id block() const { return block_; }  // the label of the block being written
  void emit(uint32_t op, std::span<const uint32_t> operands);  // without a result
  void emit(uint32_t op, std::initializer_list<uint32_t> operands) {
    emit(op, std::span(operands.begin(), operands.size()));
  }
  Id value(uint32_t op, Id type, std::span<const uint32_t> operands);  // with a fresh result
  Id value(uint32_t op, Id type, std::initializer_list<uint32_t> operands) {
    return value(op, type, std::span(operands.begin(), operands.size()));
  }
  // As value(); the same pure expression of the current scope gives the same id.
  Id pure(uint32_t op, Id type, std::span<const uint32_t> operands);
  Id pure(uint32_t op, Id type, std::initializer_list<uint32_t> operands) {
    return pure(op, type, std::span(operands.begin(), operands.size()));
  }
  // The same, at the head of the function, for its whole body; operands are made there or global.
  Id at_entry(uint32_t op, Id type, std::initializer_list<uint32_t> operands);
  void new_scope() { pure_.clear(); }

  std::vector<uint32_t> words() const;

 private:
  enum Section {
    kCapabilities,
    kExtensions,
    kImports,
    kModel,
    kModes,
    kDebugSource,
    kDebugNames,
    kAnnotations,
    kGlobals,
    kHead,
    kLocals,
    kEntry,
    kBody,
    kSections
  };
  void put(Section s, uint32_t op, std::span<const uint32_t> operands);
  void put_once(Section s, uint32_t op, std::span<const uint32_t> operands);
  Id declared(Section s, uint32_t op, Id type, std::span<const uint32_t> words);

  uint32_t version_minor_;
  Id last_id_ = 0, entry_ = 0, block_ = 0, glsl_ = 0;
  Id source_file_ = 0;
  uint32_t line_ = 0, line_in_force_ = 0;
  std::vector<Id> interface_;
  std::array<std::vector<uint32_t>, kSections> sections_;
  std::map<std::vector<uint32_t>, Id> declared_, pure_;
  std::set<std::vector<uint32_t>> once_;
};

}  // namespace tuff::render
