// Operands of instructions: what they name becomes registers, constants among them, by the patterns
// of opcodes.def.
#include <algorithm>
#include <bit>

#include "emu/ptx/makers.h"
#include "emu/ptx/parser.h"

namespace tuff::emu::ptx {
namespace {

using Source = Constant::Source;

struct SpecialRow {
  std::string_view name;
  Source source;
  uint64_t value;
};

// 10: those that are the same as long as a thread runs.
constexpr SpecialRow kSpecials[] = {
    {"%tid.x", Source::ThreadId, 0},
    {"%tid.y", Source::ThreadId, 1},
    {"%tid.z", Source::ThreadId, 2},
    {"%ntid.x", Source::BlockSize, 0},
    {"%ntid.y", Source::BlockSize, 1},
    {"%ntid.z", Source::BlockSize, 2},
    {"%ctaid.x", Source::BlockId, 0},
    {"%ctaid.y", Source::BlockId, 1},
    {"%ctaid.z", Source::BlockId, 2},
    {"%nctaid.x", Source::GridSize, 0},
    {"%nctaid.y", Source::GridSize, 1},
    {"%nctaid.z", Source::GridSize, 2},
    {"%laneid", Source::Lane, 0},
    {"%warpid", Source::WarpNumber, 0},
    {"%nwarpid", Source::WarpCount, 0},
    {"%lanemask_eq", Source::LanesEqual, 0},
    {"%lanemask_lt", Source::LanesBelow, 0},
    {"%lanemask_le", Source::LanesUpToOwn, 0},
    {"%lanemask_gt", Source::LanesAbove, 0},
    {"%lanemask_ge", Source::LanesFromOwn, 0},
    {"%smid", Source::Processor, 0},
    {"%nsmid", Source::ProcessorCount, 0},
    {"%gridid", Source::GridNumber, 0},
    {"%dynamic_smem_size", Source::DynamicShared, 0},
    {"%total_smem_size", Source::TotalShared, 0},
    {"WARP_SZ", Source::Value, 32},
};

bool is_clock(std::string_view name) {
  return name == "%clock" || name == "%clock64" || name == "%clock_hi" || name == "%globaltimer";
}

// "d4:f32+?" in parts.
struct Pattern {
  char letter = 0;
  uint32_t count = 0;  // 0: no vector
  std::string_view type;
  bool wider = false, optional = false;
};

Pattern pattern_of(std::string_view token) {
  Pattern out;
  out.letter = token[0];
  token.remove_prefix(1);
  if (!token.empty() && token[0] >= '1' && token[0] <= '9') {
    out.count = uint32_t(token[0] - '0');
    token.remove_prefix(1);
  }
  if (token.ends_with('?')) {
    out.optional = true;
    token.remove_suffix(1);
  }
  if (token.ends_with('+')) {
    out.wider = true;
    token.remove_suffix(1);
  }
  if (!token.empty()) out.type = token.substr(1);
  return out;
}

Type twice_as_wide(Type type) {
  switch (type) {
    case Type::U16: return Type::U32;
    case Type::S16: return Type::S32;
    case Type::U32: return Type::U64;
    default: return Type::S64;
  }
}

Type wanted_type(const Pattern& p, const Form& form) {
  if (p.type.empty()) return form.type();
  if (p.type == "w") return twice_as_wide(form.type());
  if (p.type == "0" || p.type == "1") return form.type(size_t(p.type[0] - '0'));
  return type_of(p.type).value_or(Type::None);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

void BodyParser::bind(Instruction& i, const Form& form, std::string_view pattern,
                      std::vector<Operand>& operands) {
  const std::vector<std::string_view> wanted = words_of(pattern);
  size_t least = 0;
  for (const std::string_view token : wanted) least += !pattern_of(token).optional;
  if (operands.size() < least || operands.size() > wanted.size())
    fail<CompileError>("{} operands, it takes {}", operands.size(), wanted.size());
  for (size_t k = 0; k < operands.size(); ++k) bind_one(i, form, wanted[k], operands[k]);
}

void BodyParser::bind_one(Instruction& i, const Form& form, std::string_view token,
                          const Operand& o) {
  const Pattern p = pattern_of(token);
  const Type type = wanted_type(p, form);
  const uint32_t by_form = form.has("v4") ? 4 : form.has("v2") ? 2 : 0;
  switch (p.letter) {
    case 'd': return bind_destinations(i, o, p.count, type, p.wider);
    case 'D': return bind_destinations(i, o, by_form, type, p.wider);
    case 's': return bind_sources(i, o, p.count, type, p.wider);
    case 'S': return bind_sources(i, o, by_form, type, p.wider);
    case 'p': return bind_predicate(i, o, true);
    case 'q': return bind_predicate(i, o, false);
    case 'm': return bind_address(i, o);
    default: return bind_label(i, o);
  }
}

void BodyParser::push(Instruction& i, uint32_t reg, bool destination) const {
  if (i.destinations + i.sources >= int(kMostOperands)) fail<CompileError>("too many operands");
  i.operands[size_t(i.destinations + i.sources)] = reg;
  (destination ? i.destinations : i.sources)++;
}

void BodyParser::bind_destinations(Instruction& i, const Operand& o, uint32_t count, Type type,
                                   bool wider) {
  const auto one = [&](const Operand& element) {
    const bool sink = element.kind == Operand::Kind::Sink;
    push(i, sink ? new_register(bits_of(type)) : register_of(element, bits_of(type), wider), true);
  };
  if (count == 0 || (count == 1 && o.kind != Operand::Kind::Vector)) {
    one(o);
    // "%r1|%p1" of shfl and match.
    if (o.second) i.predicate_destinations[0] = predicate_of(o.second->text);
    return;
  }
  if (o.kind != Operand::Kind::Vector || o.parts.size() != count)
    fail<CompileError>("a vector of {} registers is wanted", count);
  for (const Operand& element : o.parts) one(element);
}

void BodyParser::bind_sources(Instruction& i, const Operand& o, uint32_t count, Type type,
                              bool wider) {
  if (count == 0 || (count == 1 && o.kind != Operand::Kind::Vector))
    return push(i, value_of(o, type, wider), false);
  if (o.kind != Operand::Kind::Vector || o.parts.size() != count)
    fail<CompileError>("a vector of {} registers is wanted", count);
  for (const Operand& element : o.parts) push(i, value_of(element, type, wider), false);
}

uint32_t BodyParser::predicate_of(std::string_view name) const {
  const Symbol* symbol = find(name);
  if (!symbol || symbol->kind != Symbol::Kind::Predicate)
    fail<CompileError>("'{}' is no predicate", name);
  return symbol->index;
}

void BodyParser::bind_predicate(Instruction& i, const Operand& o, bool destination) {
  if (destination) {
    const bool sink = o.kind == Operand::Kind::Sink;
    i.predicate_destinations[0] = sink ? function_.predicates++ : predicate_of(o.token.text);
    if (o.second) i.predicate_destinations[1] = predicate_of(o.second->text);
    return;
  }
  const size_t k = i.predicate_sources[0] == kNone ? 0 : 1;
  if (o.kind == Operand::Kind::Number) {  // a constant, as in "and.pred %p1, %p2, 1"
    const uint32_t known = function_.predicates++;
    i.predicate_sources[k] = known;
    function_.true_predicates.push_back(known);
    i.predicate_negated[k] = o.token.bits == 0;
    return;
  }
  i.predicate_sources[k] = predicate_of(o.token.text);
  i.predicate_negated[k] = o.negated;
}

void BodyParser::bind_label(Instruction& i, const Operand& o) {
  if (o.kind != Operand::Kind::Name) fail<CompileError>("a label is wanted");
  const auto here = uint32_t(function_.code.size());
  if (i.kind == Kind::BranchIndexed)
    table_uses_.emplace_back(here, o.token.text);
  else
    uses_.push_back({o.token.text, o.token.line, here, std::nullopt, 0});
}

// ---- registers and constants

uint32_t BodyParser::constant(Constant::Source source, uint64_t value) {
  const auto [found, is_new] = constants_.try_emplace({source, value}, 0);
  if (is_new) {
    found->second = new_register(64);
    function_.constants.push_back({source, value, found->second});
  }
  return found->second;
}

uint32_t BodyParser::register_of(const Operand& o, uint32_t bits, bool wider) const {
  const Symbol* symbol = o.kind == Operand::Kind::Name ? find(o.token.text) : nullptr;
  if (!symbol || symbol->kind != Symbol::Kind::Register || o.negated || o.negative || o.offset)
    fail<CompileError>("'{}' is no register", o.token.text);
  const uint32_t own = function_.register_bits[symbol->index];
  if (own != bits && !(wider && own > bits))
    fail<CompileError>("'{}' has {} bits, {} are wanted", o.token.text, own, bits);
  return symbol->index;
}

std::optional<uint32_t> BodyParser::special(std::string_view name) {
  for (const SpecialRow& row : kSpecials) {
    if (row.name == name) return constant(row.source, row.value);
  }
  if (!is_clock(name)) return std::nullopt;
  reads_clock_ = true;
  return constant(Source::Value, 0);
}

uint32_t BodyParser::value_of(const Operand& o, Type type, bool wider) {
  if (o.kind == Operand::Kind::Number) return number_of(o, type);
  if (o.kind != Operand::Kind::Name || o.negated)
    fail<CompileError>("a register or a constant is wanted");
  const Symbol* symbol = find(o.token.text);
  if (symbol && symbol->kind == Symbol::Kind::Register) return register_of(o, bits_of(type), wider);
  if (!symbol) {
    if (const auto reg = special(o.token.text)) return *reg;
  }
  return address_of_name(o, nullptr);
}

// The bits of a constant in the type that is wanted (4.5).
uint32_t BodyParser::number_of(const Operand& o, Type type) {
  const uint32_t width = bits_of(type);
  uint64_t bits = o.token.bits;
  if (o.token.kind == Token::Kind::Integer) {
    if (type == Type::F32 || type == Type::F64)
      fail<CompileError>("'{}' is no constant of .{}", o.token.text, name(type));
    bits = o.negative ? 0 - bits : bits;
    // Too wide is what neither sign nor zeros extend.
    const int64_t above = width < 64 ? int64_t(bits) >> width : 0;
    if (width < 64 && above != 0 && int64_t(bits) >> (width - 1) != -1)
      fail<CompileError>("{} does not fit {} bits", o.token.text, width);
  } else {
    const double value = (o.negative ? -1 : 1) * (o.token.kind == Token::Kind::Single
                                                      ? double(std::bit_cast<float>(uint32_t(bits)))
                                                      : std::bit_cast<double>(bits));
    const bool single = o.token.kind == Token::Kind::Single;
    if (width == 32 && single)
      bits ^= o.negative ? 0x80000000u : 0;  // NaN as it is
    else if (width == 32)
      bits = std::bit_cast<uint32_t>(float(value));
    else if (width == 64)
      bits = single ? std::bit_cast<uint64_t>(value) : bits ^ (o.negative ? 1ull << 63 : 0);
    else
      fail<CompileError>("'{}' is no constant of .{}", o.token.text, name(type));
  }
  return constant(Source::Value, width == 64 ? bits : bits & ((1ull << width) - 1));
}

// The address of a variable or parameter within its space; `memory` where it is accessed there.
uint32_t BodyParser::address_of_name(const Operand& o, MemoryForm* memory) {
  const Symbol* symbol = find(o.token.text);
  if (!symbol) fail<CompileError>("'{}' is not declared", o.token.text);
  const uint64_t offset = memory ? 0 : uint64_t(o.offset);
  switch (symbol->kind) {
    case Symbol::Kind::Variable: {
      if (symbol->source != Source::Shared) return constant(symbol->source, symbol->value + offset);
      function_.shared.push_back(uint32_t(symbol->value));
      return constant(symbol->source, symbol->value | offset << 32);
    }
    case Symbol::Kind::Parameter: return constant(Source::Value, symbol->value + offset);
    case Symbol::Kind::FrameParameter:
      // Only functions have parameters of their own in registers (5.1.6.2); an entry's are the
      // launch's.
      if (!memory && function_.is_entry)
        fail<CompileError>("the address of '{}' cannot be taken here", o.token.text);
      if (memory) memory->in_frame = true;
      return constant(Source::Value, symbol->value + offset);
    default: fail<CompileError>("'{}' is no address", o.token.text);
  }
}

void BodyParser::bind_address(Instruction& i, const Operand& o) {
  if (o.kind != Operand::Kind::Address) fail<CompileError>("an address in brackets is wanted");
  MemoryForm& m = i.memory.base == kNone ? i.memory : i.second;
  const Operand& inner = o.parts.front();
  m.offset = inner.offset;
  if (inner.kind == Operand::Kind::Number) {
    m.base = constant(Source::Value, 0);
    return;
  }
  if (inner.kind != Operand::Kind::Name) fail<CompileError>("an address in brackets is wanted");
  const Symbol* symbol = find(inner.token.text);
  if (symbol && symbol->kind == Symbol::Kind::Register) {
    const uint32_t bits = function_.register_bits[symbol->index];
    if (bits != 32 && bits != 64) fail<CompileError>("'{}' is no address", inner.token.text);
    m.base = symbol->index;
    m.in_frame = m.space == Space::Param && !function_.is_entry;
    return;
  }
  m.base = address_of_name(inner, &m);
  if (m.in_frame != (symbol && symbol->kind == Symbol::Kind::FrameParameter) ||
      (m.in_frame && m.space != Space::Param))
    fail<CompileError>("'{}' is a parameter", inner.token.text);
}

// Vectors of `mov`: "mov.b64 %rd1, {%r1, %r2}" packs, "mov.b64 {%r1, %r2}, %rd1" unpacks.
bool BodyParser::bind_move(Instruction& i, const Form& form, const std::vector<Operand>& operands) {
  if (form.base != "mov" || operands.size() != 2) return false;
  const bool unpacks = operands[0].kind == Operand::Kind::Vector;
  const bool packs = operands[1].kind == Operand::Kind::Vector;
  if (unpacks == packs) return false;
  const Operand& vector = operands[packs ? 1 : 0];
  const uint32_t bits = bits_of(form.type());
  const auto count = uint32_t(vector.parts.size());
  if ((count != 2 && count != 4) || bits / count < 8)
    fail<CompileError>("a vector of 2 or 4 registers is wanted");
  const uint32_t width = bits / count;
  const Type element = width == 32 ? Type::B32 : width == 16 ? Type::B16 : Type::B8;
  if (unpacks) {
    bind_destinations(i, vector, count, element, width == 8);
    push(i, value_of(operands[1], form.type(), false), false);
    make_unpack(i, width);
  } else {
    push(i, register_of(operands[0], bits, false), true);
    for (const Operand& part : vector.parts) push(i, value_of(part, element, width == 8), false);
    make_pack(i, width);
  }
  return true;
}

}  // namespace tuff::emu::ptx
