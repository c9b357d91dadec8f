// Templates as trees. Made by the parser, walked by the evaluator.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace tuff::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Argument {
  std::string name;  // of a named one
  enum class Kind { Positional, Named, Spread, SpreadNamed } kind = Kind::Positional;
  ExpressionPtr value;
};

struct Expression {
  enum class Kind {
    Constant,   // value
    Name,       // text
    ListOf,     // items
    TupleOf,    // items
    DictOf,     // items: keys and values in turn
    Attribute,  // items[0], text
    Item,       // items[0], items[1]
    Slice,      // items[0], begin, end, step; null where left out
    Call,       // items[0], arguments
    Filter,     // text, items[0] (null in a filter block), arguments
    Test,       // text, items[0], arguments
    Unary,      // text, items[0]
    Binary,     // text, items[0], items[1]
    Compare,    // items, operators between them
    And,
    Or,
    Not,
    Condition,  // items: value, condition, otherwise (or null)
    Concat,     // items
  };
  Kind kind = Kind::Constant;
  int line = 0, depth = 1;
  std::string text;
  Value value;
  std::vector<ExpressionPtr> items;
  std::vector<Argument> arguments;
  std::vector<std::string> operators;
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

// What a value is assigned to: a name, an attribute of a namespace, or several.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

struct Statement {
  enum class Kind {
    Data,       // text
    Output,     // value
    If,         // branches: (condition or null, block)
    For,        // target, value, condition, body, otherwise
    Set,        // target, value
    SetBlock,   // target, value (filters or null), body
    Macro,      // name, parameters, body
    CallBlock,  // parameters of caller, value (a Call), body
    Filter,     // value (filters), body
    Body,       // body, in a scope of its own: generation
    With,       // targets and values in bindings, body
    Break,
    Continue,
  };
  Kind kind = Kind::Data;
  int line = 0;
  std::string text;
  Target target;
  ExpressionPtr value, condition;
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  std::vector<Parameter> parameters;
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Block body, otherwise;
};

// InvalidArgument naming the line and what is there.
Block parse(std::string_view text);

}  // namespace tuff::text::jinja
