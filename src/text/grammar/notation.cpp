// GBNF: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
#include <map>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/grammar/code_reader.h"
#include "text/grammar/expression.h"

namespace tuff::text::grammar {
namespace {

bool is_name(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class NotationReader {
 public:
  explicit NotationReader(std::string_view text) : in_("a grammar", text) {}
  Rules read() {
    for (skip(true); !in_.at_end(); skip(true)) read_rule();
    for (const auto& [name, row] : rows_)
      if (!row.read) fail<InvalidArgument>("a grammar: there is no rule {}", name);
    const auto root = rows_.find("root");
    if (root == rows_.end())
      fail<InvalidArgument>("a grammar: there is no rule root, where it begins");
    rules_.root = root->second.rule;
    return std::move(rules_);
  }

 private:
  struct Row {
    size_t rule;
    bool read = false;  // or named alone
  };

  // Space and comments; the ends of lines where a rule cannot end.
  void skip(bool lines) {
    while (!in_.at_end()) {
      const uint32_t c = in_.peek();
      if (c == '#') {
        while (!in_.at_end() && in_.peek() != '\n') in_.take();
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        in_.take();
      } else {
        return;
      }
    }
  }
  Row& row(const std::string& name) {
    const auto known = rows_.find(name);
    if (known != rows_.end()) return known->second;
    return rows_[name] = {rules_.add(name)};
  }
  std::string name() {
    std::string out;
    while (!in_.at_end() && is_name(in_.peek())) out += char(in_.take());
    return out;
  }
  void read_rule() {
    const std::string rule = name();
    if (rule.empty()) in_.refuse("a rule's name was wanted");
    if (std::exchange(row(rule).read, true))
      in_.refuse(fmt::format("there is a rule {} already", rule));
    skip(false);
    if (!in_.take_text("::=")) in_.refuse("::= was wanted behind a rule's name");
    skip(true);
    Expression body = alternatives(false, 0);
    rules_.rows[row(rule).rule].body = std::move(body);
    if (!in_.at_end() && in_.peek() != '\n' && in_.peek() != '\r')
      in_.refuse("the end of a rule was wanted");
  }
  Expression alternatives(bool grouped, int depth) {
    if (depth > kMaxDepth) in_.refuse(fmt::format("groups go deeper than {}", kMaxDepth));
    std::vector<Expression> out;
    out.push_back(items(grouped, depth));
    while (in_.take_if('|')) {
      skip(true);
      out.push_back(items(grouped, depth));
    }
    return choice(std::move(out));
  }
  Expression items(bool grouped, int depth) {
    std::vector<Expression> out;
    while (!in_.at_end()) {
      const uint32_t c = in_.peek();
      if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
      out.push_back(in_.counted(item(depth)));
      skip(grouped);
    }
    return sequence(std::move(out));
  }
  Expression item(int depth) {
    const uint32_t c = in_.peek();
    if (is_name(c)) {
      const std::string called = name();
      return rule(row(called).rule);
    }
    in_.take();
    switch (c) {
      case '"': return quoted();
      case '[': return in_.set([this] { return std::vector{in_.escaped_range()}; });
      case '.': return all_but({});
      case '(': {
        skip(true);
        Expression inside = alternatives(true, depth + 1);
        if (!in_.take_if(')')) in_.refuse(") was wanted");
        return inside;
      }
      default: in_.refuse("a text, a set of characters, a rule's name or a group was wanted");
    }
  }
  Expression quoted() {
    Expression out;
    while (!in_.take_if('"')) {
      const uint32_t c = in_.take();
      const uint32_t code = c == '\\' ? in_.escape() : c;
      out.parts.push_back(characters({{code, code}}));
    }
    return out;
  }

  CodeReader in_;
  Rules rules_;
  std::map<std::string, Row> rows_;
};

}  // namespace

Rules read_notation(std::string_view text) { return NotationReader(text).read(); }

}  // namespace tuff::text::grammar
