// The statements of a function: declarations, labels, instructions.
#include <algorithm>

#include "base/arith.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/parser.h"

namespace tuff::emu::ptx {
namespace {

constexpr uint64_t kMostRegisters = 1 << 18, kMostLocalBytes = 512 << 10,
                   kMostVariableBytes = 1 << 20;
constexpr uint64_t kMostFrameBytes = 1 << 16;

}  // namespace

BodyParser::BodyParser(Cursor& cursor, Module& module, Function& function, const Symbols& globals)
    : cursor_(cursor), module_(module), function_(function), globals_(globals), scopes_(1) {}

void BodyParser::declare(std::string_view name, const Symbol& symbol) {
  if (!scopes_.back().emplace(name, symbol).second)
    cursor_.wrong(fmt::format("'{}' is declared twice", name));
}

const Symbol* BodyParser::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return &found->second;
  }
  const auto found = globals_.find(name);
  return found == globals_.end() ? nullptr : &found->second;
}

uint32_t BodyParser::new_register(uint32_t bits) {
  if (function_.register_bits.size() >= kMostRegisters)
    cursor_.wrong(fmt::format("more than {} registers", kMostRegisters));
  function_.register_bits.push_back(uint8_t(bits));
  return uint32_t(function_.register_bits.size() - 1);
}

// ---- the head

void BodyParser::declare_parameter(const Declaration& d) {
  emu_api::PtxKernelInfo& kernel = function_.kernel;
  const uint64_t offset = align_up(uint64_t(kernel.parameter_bytes), uint64_t(d.alignment));
  const uint64_t bytes = d.bytes();
  kernel.parameters.push_back({uint32_t(offset), uint32_t(bytes), d.alignment});
  kernel.parameter_bytes = uint32_t(std::min<uint64_t>(offset + bytes, UINT32_MAX));
  declare(d.name, {Symbol::Kind::Parameter, 0, Constant::Source::Value, offset, uint32_t(bytes)});
}

Passed BodyParser::declare_formal(const Declaration& d) {
  const uint64_t offset = align_up(uint64_t(function_.parameter_bytes), uint64_t(d.alignment));
  if (offset + d.bytes() > kMostFrameBytes)
    cursor_.wrong(fmt::format("more than {} bytes of parameters", kMostFrameBytes));
  const auto bytes = uint32_t(d.bytes());
  function_.parameter_bytes = uint32_t(offset) + bytes;
  declare(d.name, {Symbol::Kind::FrameParameter, 0, Constant::Source::Value, offset, bytes});
  return {kNone, false, uint32_t(offset), bytes};
}

Passed BodyParser::declare_formal_register(const Declaration& d) {
  if (d.type == Type::Pred) {
    const uint32_t index = function_.predicates++;
    declare(d.name, {Symbol::Kind::Predicate, index});
    return {index, true, 0, 1};
  }
  const uint32_t index = new_register(bits_of(d.type));
  declare(d.name, {Symbol::Kind::Register, index});
  return {index, false, 0, bytes_of(d.type)};
}

// ---- statements

void BodyParser::read() {
  cursor_.expect("{");
  scopes_.emplace_back();
  while (scopes_.size() > 1) statement();
  // What falls off the end returns (9.7.11.5).
  Instruction end;
  end.kind = Kind::Return;
  end.line = cursor_.peek().line;
  append(end, "ret");
  resolve_labels();
}

void BodyParser::statement() {
  if (cursor_.done()) cursor_.wrong("a function without an end");
  const Token token = cursor_.peek();
  if (cursor_.take_if(";")) return;
  if (cursor_.take_if("{")) {
    scopes_.emplace_back();
  } else if (cursor_.take_if("}")) {
    scopes_.pop_back();
  } else if (token.is(".loc") || token.is(".file")) {
    cursor_.skip_line();
  } else if (token.is(".pragma")) {
    while (!cursor_.done() && !cursor_.take_if(";")) cursor_.take();
  } else if (token.is(".reg")) {
    read_registers();
  } else if (token.is(".local") || token.is(".shared") || token.is(".param")) {
    cursor_.take();
    read_variable(token.text);
  } else if (token.kind == Token::Kind::Word && cursor_.peek(1).is(":")) {
    cursor_.take();
    cursor_.take();
    read_label(token.text);
  } else if (token.kind == Token::Kind::Word || token.is("@")) {
    read_instruction();
  } else {
    cursor_.wrong(fmt::format("{} is not known here", Cursor::shown(token)));
  }
}

// ".reg .b32 %r<8>, %x;": %r0 to %r7, and %x. 5.4.5.
void BodyParser::read_registers() {
  cursor_.expect(".reg");
  const Token token = cursor_.take();
  const auto type = type_of(token.text.empty() ? "" : token.text.substr(1));
  if (token.kind != Token::Kind::Directive || !type)
    cursor_.wrong(fmt::format("registers of a type are wanted, not {}", Cursor::shown(token)));
  const auto declare_one = [&](std::string_view name) {
    if (*type == Type::Pred) {
      if (function_.predicates >= kMostRegisters) cursor_.wrong("too many predicates");
      declare(name, {Symbol::Kind::Predicate, function_.predicates++});
    } else {
      declare(name, {Symbol::Kind::Register, new_register(bits_of(*type))});
    }
  };
  do {
    const std::string_view name = cursor_.name();
    if (!cursor_.take_if("<")) {
      declare_one(name);
      continue;
    }
    const uint64_t count = cursor_.number(kMostRegisters);
    cursor_.expect(">");
    for (uint64_t k = 0; k < count; ++k)
      declare_one(*module_.names.insert(fmt::format("{}{}", name, k)).first);
  } while (cursor_.take_if(","));
  cursor_.expect(";");
}

void BodyParser::read_variable(std::string_view space) {
  do {
    const Declaration d = read_declaration(cursor_);
    if (d.unsized) cursor_.wrong(fmt::format("'{}' has no size", d.name));
    if (space == ".param") {
      declare_formal(d);
    } else if (space == ".local") {
      const uint64_t at = align_up(uint64_t(function_.local_bytes), uint64_t(d.alignment));
      if (at + d.bytes() > kMostLocalBytes)
        cursor_.wrong(fmt::format("more than {} bytes of local memory", kMostLocalBytes));
      function_.local_bytes = uint32_t(at + d.bytes());
      declare(d.name, {Symbol::Kind::Variable, 0, Constant::Source::Local, at});
    } else {
      if (d.bytes() > kMostVariableBytes)
        cursor_.wrong(fmt::format("more than {} bytes of shared memory", kMostVariableBytes));
      const auto index = uint32_t(module_.shared.size());
      module_.shared.push_back({std::string(d.name), d.bytes(), d.alignment, false});
      declare(d.name, {Symbol::Kind::Variable, 0, Constant::Source::Shared, index});
    }
  } while (cursor_.take_if(","));
  cursor_.expect(";");
}

void BodyParser::read_label(std::string_view label) {
  const auto here = uint32_t(function_.code.size());
  if (!cursor_.peek().is(".branchtargets")) {
    if (!labels_.emplace(label, here).second)
      cursor_.wrong(fmt::format("label '{}' is there twice", label));
    return;
  }
  cursor_.take();
  const auto table = uint32_t(function_.branch_tables.size());
  function_.branch_tables.emplace_back();
  if (!tables_.emplace(label, table).second)
    cursor_.wrong(fmt::format("label '{}' is there twice", label));
  do {
    const auto entry = uint32_t(function_.branch_tables[table].size());
    function_.branch_tables[table].push_back(0);
    const uint32_t line = cursor_.peek().line;
    uses_.push_back({cursor_.name(), line, 0, table, entry});
  } while (cursor_.take_if(","));
  cursor_.expect(";");
}

void BodyParser::resolve_labels() {
  for (const LabelUse& use : uses_) {
    const auto found = labels_.find(use.label);
    if (found == labels_.end())
      fail<CompileError>("PTX line {}: there is no label '{}' in '{}'", use.line, use.label,
                         function_.name);
    if (use.table)
      function_.branch_tables[*use.table][use.entry] = found->second;
    else
      function_.code[use.instruction].target = found->second;
  }
  for (const auto& [instruction, label] : table_uses_) {
    const auto found = tables_.find(label);
    Instruction& i = function_.code[instruction];
    if (found == tables_.end())
      fail<CompileError>("PTX line {}: there are no branch targets '{}'", i.line, label);
    i.target = found->second;
  }
}

// ---- instructions

void BodyParser::append(Instruction i, std::string_view spelling) {
  auto found = spellings_.find(spelling);
  if (found == spellings_.end()) {
    found = spellings_.emplace(std::string(spelling), uint32_t(module_.spellings.size())).first;
    module_.spellings.emplace_back(spelling);
  }
  i.spelling = found->second;
  function_.code.push_back(i);
}

void BodyParser::read_guard(Instruction& i) {
  if (!cursor_.take_if("@")) return;
  i.guard_negated = cursor_.take_if("!");
  i.guard = predicate_of(cursor_.name());
}

void BodyParser::read_instruction() {
  Instruction i;
  read_guard(i);
  i.line = cursor_.peek().line;
  const std::string_view spelling = cursor_.name();
  Form form;
  std::string why;
  const OpcodeRow* row = match(spelling, form, why);
  if (!row) fail<CompileError>("PTX line {}: {}", i.line, why);
  i.row = uint16_t(row - opcode_rows().data());
  i.kind = row->kind;
  i.flushes = form.has("ftz");
  i.saturates = form.has("sat");
  i.relu = form.has("relu");
  i.nan = form.has("NaN");
  i.rounding = form.rounding();
  if (i.kind == Kind::Call) {
    read_call(i);
    cursor_.expect(";");
    return append(i, spelling);
  }
  std::vector<Operand> operands;
  if (!cursor_.peek().is(";")) {
    do {
      operands.push_back(read_operand());
    } while (cursor_.take_if(","));
  }
  cursor_.expect(";");
  reads_clock_ = false;
  try {
    if (!bind_move(i, form, operands)) {
      row->make(form, i);
      if (!i.execute && i.kind == Kind::Plain) fail<CompileError>("'{}' is not known", spelling);
      bind(i, form, row->operands, operands);
    }
    if (reads_clock_) make_clock(i);
  } catch (const CompileError& e) {
    fail<CompileError>("PTX line {}: {}: {}", i.line, spelling, e.what());
  }
  append(i, spelling);
}

Operand BodyParser::read_simple_operand() {
  Operand o;
  o.negated = cursor_.take_if("!");
  o.negative = !o.negated && cursor_.take_if("-");
  o.token = cursor_.take();
  switch (o.token.kind) {
    case Token::Kind::Word:
      o.kind = o.token.text == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
      break;
    case Token::Kind::Integer:
    case Token::Kind::Single:
    case Token::Kind::Double: o.kind = Operand::Kind::Number; break;
    default: cursor_.wrong(fmt::format("an operand is wanted, not {}", Cursor::shown(o.token)));
  }
  return o;
}

// "[%rd1+8]", "[name]", "[name+-4]", "[64]".
Operand BodyParser::read_address() {
  Operand o = read_simple_operand();
  if (o.kind == Operand::Kind::Number) {
    o.offset = int64_t(o.negative ? 0 - o.token.bits : o.token.bits);
  } else if (cursor_.take_if("+")) {
    const bool negative = cursor_.take_if("-");
    const auto bits = int64_t(cursor_.number(INT64_MAX));
    o.offset = negative ? -bits : bits;
  } else if (cursor_.take_if("-")) {
    o.offset = -int64_t(cursor_.number(INT64_MAX));
  }
  cursor_.expect("]");
  return o;
}

Operand BodyParser::read_operand() {
  if (cursor_.take_if("[")) {
    Operand inner = read_address();
    Operand o;
    o.kind = Operand::Kind::Address;
    o.token = inner.token;
    o.offset = inner.offset;
    o.parts.push_back(std::move(inner));
    return o;
  }
  if (cursor_.take_if("{")) {
    Operand o;
    o.kind = Operand::Kind::Vector;
    do {
      o.parts.push_back(read_simple_operand());
    } while (cursor_.take_if(","));
    cursor_.expect("}");
    return o;
  }
  Operand o = read_simple_operand();
  if (cursor_.take_if("|")) o.second = cursor_.take();
  if (o.kind == Operand::Kind::Name && cursor_.take_if("+"))
    o.offset = int64_t(cursor_.number(INT64_MAX));
  return o;
}

// ---- calls: "call (results), name, (arguments);" (9.7.11.4)

void BodyParser::read_call(Instruction& i) {
  CallSite call;
  if (cursor_.peek().is("(")) {
    call.results = read_passed();
    cursor_.expect(",");
  }
  call.name = std::string(cursor_.name());
  if (const Symbol* symbol = find(call.name); symbol && symbol->kind == Symbol::Kind::Register)
    cursor_.wrong("calls by register are not known here");
  if (cursor_.take_if(",")) call.arguments = read_passed();
  i.target = uint32_t(function_.calls.size());
  function_.calls.push_back(std::move(call));
}

std::vector<Passed> BodyParser::read_passed() {
  std::vector<Passed> out;
  cursor_.expect("(");
  if (cursor_.take_if(")")) return out;
  do {
    out.push_back(passed_of(read_simple_operand()));
  } while (cursor_.take_if(","));
  cursor_.expect(")");
  return out;
}

Passed BodyParser::passed_of(const Operand& o) {
  if (o.kind == Operand::Kind::Number) return {number_of(o, Type::B32), false, 0, 4};
  const Symbol* symbol = find(o.token.text);
  if (!symbol) cursor_.wrong(fmt::format("'{}' is not declared", o.token.text));
  switch (symbol->kind) {
    case Symbol::Kind::FrameParameter:
      return {kNone, false, uint32_t(symbol->value), symbol->bytes};
    case Symbol::Kind::Register:
      return {symbol->index, false, 0, (function_.register_bits[symbol->index] + 7u) / 8};
    case Symbol::Kind::Predicate: return {symbol->index, true, 0, 1};
    default: cursor_.wrong(fmt::format("'{}' cannot be handed over", o.token.text));
  }
}

}  // namespace tuff::emu::ptx
