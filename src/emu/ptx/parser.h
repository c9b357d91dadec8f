// The parts of the parser: a cursor over tokens, what names mean, and the two that read a module
// and the body of a function. Used by parse*.cpp alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "emu/ptx/form.h"
#include "emu/ptx/lexer.h"

namespace tuff::emu::ptx {

class Cursor {
 public:
  explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() {
    const Token& out = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return out;
  }
  bool take_if(std::string_view text) {
    if (!peek().is(text)) return false;
    take();
    return true;
  }
  void expect(std::string_view text) {
    if (!take_if(text)) wrong(fmt::format("'{}' is wanted, not {}", text, shown(peek())));
  }
  bool done() const { return peek().kind == Token::Kind::End; }
  void skip_line() {
    for (const uint32_t line = peek().line; !done() && peek().line == line;) take();
  }
  std::string_view name() {
    if (peek().kind != Token::Kind::Word)
      wrong(fmt::format("a name is wanted, not {}", shown(peek())));
    return take().text;
  }
  uint64_t number(uint64_t most) {
    const Token& token = peek();
    if (token.kind != Token::Kind::Integer || token.bits > most)
      wrong(fmt::format("a number up to {} is wanted, not {}", most, shown(token)));
    return take().bits;
  }
  [[noreturn]] void wrong(const std::string& what) const {
    fail<CompileError>("PTX line {}: {}", peek().line, what);
  }
  static std::string shown(const Token& token) {
    return token.kind == Token::Kind::End ? "the end" : fmt::format("'{}'", token.text);
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// What a name stands for.
struct Symbol {
  enum class Kind : uint8_t { Register, Predicate, Variable, Parameter, FrameParameter };
  Kind kind = Kind::Register;
  uint32_t index = 0;                                 // of a register or a predicate
  Constant::Source source = Constant::Source::Value;  // of a variable's address
  uint64_t value = 0;                                 // or a parameter's offset
  uint32_t bytes = 0;
};
using Symbols = std::unordered_map<std::string_view, Symbol>;

// A declared variable before it has a place.
struct Declaration {
  std::string_view name;
  Type type = Type::None;
  uint32_t alignment = 0, vector = 1;
  uint64_t count = 1;
  bool unsized = false;
  uint64_t bytes() const { return count * vector * bytes_of(type); }
};

// ".align 4 .b8 name[16]", from the first directive after the space on.
Declaration read_declaration(Cursor& cursor);

struct Operand {
  enum class Kind : uint8_t { Name, Number, Address, Vector, Sink };
  Kind kind = Kind::Name;
  Token token;
  bool negative = false, negated = false;  // "-", "!"
  int64_t offset = 0;                      // of an address, or behind a name
  std::vector<Operand> parts;              // of a vector
  std::optional<Token> second;             // behind a bar: "%p1|%p2"
};

// The body of one function.
class BodyParser {
 public:
  BodyParser(Cursor& cursor, Module& module, Function& function, const Symbols& globals);
  // What the head declares.
  void declare_parameter(const Declaration& d);  // of an entry
  Passed declare_formal(const Declaration& d);   // of a function
  Passed declare_formal_register(const Declaration& d);
  void read();

 private:
  struct LabelUse {
    std::string_view label;
    uint32_t line;
    uint32_t instruction;           // its target; or
    std::optional<uint32_t> table;  // an entry of a branch table
    uint32_t entry = 0;
  };

  // parse_body.cpp
  void statement();
  void read_registers();
  void read_variable(std::string_view space);
  void read_label(std::string_view label);
  void read_instruction();
  void read_guard(Instruction& i);
  void read_call(Instruction& i);
  std::vector<Passed> read_passed();
  Passed passed_of(const Operand& operand);
  Operand read_operand();
  Operand read_simple_operand();
  Operand read_address();
  void append(Instruction i, std::string_view spelling);
  void declare(std::string_view name, const Symbol& symbol);
  const Symbol* find(std::string_view name) const;
  uint32_t new_register(uint32_t bits);
  void resolve_labels();

  // parse_operands.cpp
  void bind(Instruction& i, const Form& form, std::string_view pattern,
            std::vector<Operand>& operands);
  void bind_one(Instruction& i, const Form& form, std::string_view token, const Operand& operand);
  bool bind_move(Instruction& i, const Form& form, const std::vector<Operand>& operands);
  void bind_destinations(Instruction& i, const Operand& o, uint32_t count, Type type, bool wider);
  void bind_sources(Instruction& i, const Operand& o, uint32_t count, Type type, bool wider);
  void bind_predicate(Instruction& i, const Operand& o, bool destination);
  void bind_address(Instruction& i, const Operand& o);
  void bind_label(Instruction& i, const Operand& o);
  uint32_t register_of(const Operand& o, uint32_t bits, bool wider) const;
  uint32_t predicate_of(std::string_view name) const;
  uint32_t value_of(const Operand& o, Type type, bool wider);
  uint32_t number_of(const Operand& o, Type type);
  uint32_t address_of_name(const Operand& o, MemoryForm* memory);
  uint32_t constant(Constant::Source source, uint64_t value);
  std::optional<uint32_t> special(std::string_view name);
  void push(Instruction& i, uint32_t reg, bool destination) const;

  Cursor& cursor_;
  Module& module_;
  Function& function_;
  const Symbols& globals_;
  std::vector<Symbols> scopes_;
  std::unordered_map<std::string_view, uint32_t> labels_;
  std::unordered_map<std::string_view, uint32_t> tables_;
  std::vector<LabelUse> uses_;
  std::vector<std::pair<uint32_t, std::string_view>>
      table_uses_;  // instruction, label of the table
  std::map<std::pair<Constant::Source, uint64_t>, uint32_t> constants_;
  std::map<std::string, uint32_t, std::less<>> spellings_;
  bool reads_clock_ = false;
};

}  // namespace tuff::emu::ptx
