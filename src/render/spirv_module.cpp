#include "render/spirv_module.h"

#include <algorithm>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::render {
namespace {

constexpr uint32_t kGenerator = 0;  // no registered tool number

std::vector<uint32_t> text_words(const std::string& text) {
  std::vector<uint32_t> words(text.size() / 4 + 1);
  for (size_t i = 0; i < text.size(); ++i)
    words[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(text[i])) << (i % 4 * 8);
  return words;
}

// How much of the text from `begin` one instruction holds: its words are counted in 16 bits, and a
// character is not cut.
size_t text_piece(const std::string& text, size_t begin) {
  constexpr size_t kMostBytes = (65535 - 4) * 4 - 1;  // less OpSource's first words and the final 0
  size_t n = std::min(kMostBytes, text.size() - begin);
  const auto continues = [&](size_t at) {
    return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  while (n > 1 && continues(begin + n)) --n;
  return n;
}

std::vector<uint32_t> joined(std::initializer_list<uint32_t> head, std::span<const uint32_t> tail) {
  std::vector<uint32_t> out(head);
  out.insert(out.end(), tail.begin(), tail.end());
  return out;
}

}  // namespace

void SpirvModule::put(Section s, uint32_t op, std::span<const uint32_t> operands) {
  TUFF_CHECK(operands.size() < 65535, "an instruction of {} words", operands.size() + 1);
  sections_[s].push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  sections_[s].insert(sections_[s].end(), operands.begin(), operands.end());
}

void SpirvModule::put_once(Section s, uint32_t op, std::span<const uint32_t> operands) {
  if (once_.insert(joined({op}, operands)).second) put(s, op, operands);
}

void SpirvModule::capability(uint32_t c) { put_once(kCapabilities, spv::OpCapability, {&c, 1}); }

void SpirvModule::extension(const std::string& name) {
  put_once(kExtensions, spv::OpExtension, text_words(name));
}

Id SpirvModule::glsl() {
  if (!glsl_) {
    glsl_ = fresh();
    put(kImports, spv::OpExtInstImport, joined({glsl_}, text_words("GLSL.std.450")));
  }
  return glsl_;
}

void SpirvModule::name(Id id, const std::string& text) {
  put(kDebugNames, spv::OpName, joined({id}, text_words(text)));
}

void SpirvModule::source(const std::string& file, const std::string& text) {
  source_file_ = fresh();
  put(kDebugSource, spv::OpString, joined({source_file_}, text_words(file)));
  size_t end = text_piece(text, 0);
  put(kDebugSource, spv::OpSource,
      joined({spv::SourceLanguageUnknown, 0, source_file_}, text_words(text.substr(0, end))));
  while (end < text.size()) {
    const size_t n = text_piece(text, end);
    put(kDebugSource, spv::OpSourceContinued, text_words(text.substr(end, n)));
    end += n;
  }
}

void SpirvModule::decorate(Id id, uint32_t decoration, std::initializer_list<uint32_t> extra) {
  put_once(kAnnotations, spv::OpDecorate,
           joined({id, decoration}, std::span(extra.begin(), extra.size())));
}

void SpirvModule::decorate_member(Id id, uint32_t member, uint32_t decoration,
                                  std::initializer_list<uint32_t> extra) {
  put_once(kAnnotations, spv::OpMemberDecorate,
           joined({id, member, decoration}, std::span(extra.begin(), extra.size())));
}

void SpirvModule::execution_mode(Id entry, uint32_t mode, std::initializer_list<uint32_t> extra) {
  put_once(kModes, spv::OpExecutionMode,
           joined({entry, mode}, std::span(extra.begin(), extra.size())));
}

void SpirvModule::memory_model(uint32_t addressing, uint32_t model) {
  const uint32_t operands[] = {addressing, model};
  put(kModel, spv::OpMemoryModel, operands);
}

Id SpirvModule::type(uint32_t op, std::span<const uint32_t> operands, uint32_t key) {
  auto [it, missing] = declared_.try_emplace(joined({op, key}, operands));
  if (missing) {
    it->second = fresh();
    put(kGlobals, op, joined({it->second}, operands));
  }
  return it->second;
}

Id SpirvModule::constant(uint32_t op, Id type, std::initializer_list<uint32_t> literals) {
  return declared(kGlobals, op, type, std::span(literals.begin(), literals.size()));
}

Id SpirvModule::at_entry(uint32_t op, Id type, std::initializer_list<uint32_t> operands) {
  return declared(kEntry, op, type, std::span(operands.begin(), operands.size()));
}

Id SpirvModule::declared(Section s, uint32_t op, Id type, std::span<const uint32_t> words) {
  auto [it, missing] = declared_.try_emplace(joined({op, type}, words));
  if (missing) {
    it->second = fresh();
    put(s, op, joined({type, it->second}, words));
  }
  return it->second;
}

Id SpirvModule::global(Id pointer_type, uint32_t storage, bool in_interface) {
  const Id id = fresh();
  const uint32_t operands[] = {pointer_type, id, storage};
  put(kGlobals, spv::OpVariable, operands);
  if (in_interface || version_minor_ >= 4) interface_.push_back(id);  // 1.4: every global it uses
  return id;
}

Id SpirvModule::local(Id pointer_type) {
  const Id id = fresh();
  const uint32_t operands[] = {pointer_type, id, spv::StorageClassFunction};
  put(kLocals, spv::OpVariable, operands);
  return id;
}

void SpirvModule::begin_function() {
  const Id void_type = type(spv::OpTypeVoid, {});
  const Id function_type = type(spv::OpTypeFunction, {void_type});
  entry_ = fresh();
  const uint32_t head[] = {void_type, entry_, spv::FunctionControlMaskNone, function_type};
  put(kHead, spv::OpFunction, head);
  block_ = fresh();
  put(kHead, spv::OpLabel, {&block_, 1});
}

void SpirvModule::end_function() {
  emit(spv::OpReturn, {});
  emit(spv::OpFunctionEnd, {});
}

void SpirvModule::label(Id id) {
  emit(spv::OpLabel, {id});
  block_ = id;
  line_in_force_ = 0;  // a line holds to the end of its block
  new_scope();
}

// No line stands before a block's label and its OpPhis: the rules for what a block begins with are
// then met without an exception, which validators and drivers have read in different ways.
void SpirvModule::emit(uint32_t op, std::span<const uint32_t> operands) {
  const bool structural = op == spv::OpLabel || op == spv::OpPhi || op == spv::OpFunctionEnd;
  if (!structural && line_ != line_in_force_) {
    const uint32_t where[] = {source_file_, line_, 0};
    if (line_)
      put(kBody, spv::OpLine, where);
    else
      put(kBody, spv::OpNoLine, {});
    line_in_force_ = line_;
  }
  put(kBody, op, operands);
}

Id SpirvModule::value(uint32_t op, Id type, std::span<const uint32_t> operands) {
  const Id id = fresh();
  emit(op, joined({type, id}, operands));
  return id;
}

Id SpirvModule::pure(uint32_t op, Id type, std::span<const uint32_t> operands) {
  auto [it, missing] = pure_.try_emplace(joined({op, type}, operands));
  if (missing) it->second = value(op, type, operands);
  return it->second;
}

std::vector<uint32_t> SpirvModule::words() const {
  std::vector<uint32_t> out = {spv::MagicNumber, 0x10000u | version_minor_ << 8, kGenerator,
                               last_id_ + 1, 0};
  for (int s = 0; s < kSections; ++s) {
    if (s == kModes) {  // entry points stand between the memory model and the execution modes
      std::vector<uint32_t> entry =
          joined({spv::ExecutionModelGLCompute, entry_}, text_words("main"));
      entry.insert(entry.end(), interface_.begin(), interface_.end());
      out.push_back(static_cast<uint32_t>(entry.size() + 1) << 16 | spv::OpEntryPoint);
      out.insert(out.end(), entry.begin(), entry.end());
    }
    out.insert(out.end(), sections_[s].begin(), sections_[s].end());
  }
  return out;
}

}  // namespace tuff::render
