// Jinja's grammar (jinja.palletsprojects.com, Template Designer Documentation), as far as chat
// templates use it.
#include <charconv>

#include "base/check.h"
#include "base/contains.h"
#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace tuff::text::jinja {
namespace {

constexpr int kMaxLevels = 100;  // of expressions and blocks inside of one another
constexpr int kMaxChain = 400;   // of a tree: a + b + c ...

using Kind = Expression::Kind;
using Words = std::vector<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

  Block run() { return block({}); }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[now().kind == Token::Kind::End ? at_ : at_++]; }
  bool is(Token::Kind kind) const { return now().kind == kind; }
  bool is_op(std::string_view op) const { return is(Token::Kind::Operator) && now().text == op; }
  bool is_word(std::string_view word) const { return is(Token::Kind::Name) && now().text == word; }
  bool take_op(std::string_view op) { return is_op(op) && (take(), true); }
  bool take_word(std::string_view word) { return is_word(word) && (take(), true); }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail<InvalidArgument>("template: line {}: {}", now().line,
                          fmt::format(reason, std::forward<Args>(args)...));
  }
  std::string shown() const {
    switch (now().kind) {
      case Token::Kind::End: return "the end of the template";
      case Token::Kind::Data: return "text";
      case Token::Kind::BlockEnd:
      case Token::Kind::OutputEnd:
      case Token::Kind::Name:
      case Token::Kind::Operator: return fmt::format("'{}'", now().text);
      default: return fmt::format("'{:.40}'", now().text);
    }
  }
  void expect_op(std::string_view op) {
    if (!take_op(op)) refuse("'{}' belongs before {}", op, shown());
  }
  std::string name() {
    if (!is(Token::Kind::Name)) refuse("a name belongs before {}", shown());
    return take().text;
  }
  void end_block() {
    if (!is(Token::Kind::BlockEnd)) refuse("'%}}' belongs before {}", shown());
    take();
  }

  // Each level of nesting holds one.
  struct Level {
    explicit Level(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxLevels) parser.refuse("nested deeper than {}", kMaxLevels);
    }
    ~Level() { parser.depth_--; }
    Level(const Level&) = delete;
    Parser& parser;
  };

  ExpressionPtr node(Kind kind, std::string text = {}) const {
    auto e = std::make_unique<Expression>();
    e->kind = kind;
    e->line = now().line;
    e->text = std::move(text);
    return e;
  }
  void add(Expression& e, ExpressionPtr child) const {
    if (child && child->depth + 1 > e.depth) e.depth = child->depth + 1;
    if (e.depth > kMaxChain) refuse("an expression nested deeper than {}", kMaxChain);
    e.items.push_back(std::move(child));
  }
  template <class... Children>
  ExpressionPtr node_of(Kind kind, std::string text, Children... children) const {
    ExpressionPtr e = node(kind, std::move(text));
    (add(*e, std::move(children)), ...);
    return e;
  }

  // Statements.

  // Up to a block that begins with one of `ends`, whose name is next then.
  Block block(const Words& ends) {
    const Level level(*this);
    Block out;
    while (true) {
      if (is(Token::Kind::End)) {
        if (!ends.empty()) refuse("'{}' is missing", ends.back());
        return out;
      }
      if (is(Token::Kind::Data)) {
        out.push_back(statement(Statement::Kind::Data));
        out.back()->text = take().text;
      } else if (is(Token::Kind::OutputBegin)) {
        take();
        out.push_back(statement(Statement::Kind::Output));
        out.back()->value = tuple();
        if (!is(Token::Kind::OutputEnd)) refuse("'}}}}' belongs before {}", shown());
        take();
      } else {
        take();  // BlockBegin
        if (is(Token::Kind::Name) && contains(ends, std::string_view(now().text))) return out;
        out.push_back(statement());
      }
    }
  }
  std::unique_ptr<Statement> statement(Statement::Kind kind) const {
    auto s = std::make_unique<Statement>();
    s->kind = kind;
    s->line = now().line;
    return s;
  }
  void end(std::string_view word) {
    if (!take_word(word)) refuse("'{}' belongs before {}", word, shown());
    end_block();
  }

  std::unique_ptr<Statement> statement() {
    using Parse = std::unique_ptr<Statement> (Parser::*)();
    struct Row {
      std::string_view word;
      Parse parse;
    };
    constexpr Row kRows[] = {{"if", &Parser::if_statement},
                             {"for", &Parser::for_statement},
                             {"set", &Parser::set_statement},
                             {"macro", &Parser::macro_statement},
                             {"call", &Parser::call_statement},
                             {"filter", &Parser::filter_statement},
                             {"generation", &Parser::generation_statement},
                             {"with", &Parser::with_statement},
                             {"break", &Parser::break_statement},
                             {"continue", &Parser::continue_statement}};
    std::string known;
    for (const Row& row : kRows) {
      if (is_word(row.word)) return (this->*row.parse)();
      known += (known.empty() ? "" : ", ") + std::string(row.word);
    }
    refuse("unknown statement {}; known are {}, raw", shown(), known);
  }

  std::unique_ptr<Statement> if_statement() {
    auto s = statement(Statement::Kind::If);
    take();
    ExpressionPtr condition = tuple();
    end_block();
    while (true) {
      Block body = block({"elif", "else", "endif"});
      s->branches.emplace_back(std::move(condition), std::move(body));
      if (take_word("elif")) {
        condition = tuple();
        end_block();
      } else if (take_word("else")) {
        end_block();
        s->branches.emplace_back(nullptr, block({"endif"}));
        break;
      } else {
        break;
      }
    }
    end("endif");
    return s;
  }

  std::unique_ptr<Statement> for_statement() {
    auto s = statement(Statement::Kind::For);
    take();
    s->target = target(false);
    if (!take_word("in")) refuse("'in' belongs before {}", shown());
    s->value = tuple(/*conditions=*/false);
    if (take_word("if")) s->condition = expression();
    if (is_word("recursive")) refuse("loops that are 'recursive' are not known");
    end_block();
    loops_++;
    s->body = block({"else", "endfor"});
    loops_--;
    if (take_word("else")) {
      end_block();
      s->otherwise = block({"endfor"});
    }
    end("endfor");
    return s;
  }

  std::unique_ptr<Statement> set_statement() {
    auto s = statement(Statement::Kind::Set);
    take();
    s->target = target(true);
    if (take_op("=")) {
      s->value = tuple();
      end_block();
      return s;
    }
    s->kind = Statement::Kind::SetBlock;
    if (is_op("|")) s->value = filters(nullptr);
    end_block();
    s->body = block({"endset"});
    end("endset");
    return s;
  }

  std::unique_ptr<Statement> macro_statement() {
    auto s = statement(Statement::Kind::Macro);
    take();
    s->text = name();
    expect_op("(");
    s->parameters = parameters();
    end_block();
    macro_body(*s, "endmacro");
    return s;
  }
  void macro_body(Statement& s, std::string_view last) {
    const int loops = std::exchange(loops_, 0);
    s.body = block({last});
    loops_ = loops;
    end(last);
  }
  std::vector<Parameter> parameters() {
    std::vector<Parameter> out;
    while (!take_op(")")) {
      if (!out.empty()) expect_op(",");
      Parameter p{name(), nullptr};
      if (take_op("=")) {
        p.otherwise = expression();
      } else if (!out.empty() && out.back().otherwise) {
        refuse("parameter '{}' without a default follows one that has one", p.name);
      }
      out.push_back(std::move(p));
    }
    return out;
  }

  std::unique_ptr<Statement> call_statement() {
    auto s = statement(Statement::Kind::CallBlock);
    take();
    if (take_op("(")) s->parameters = parameters();
    s->value = expression();
    if (s->value->kind != Kind::Call) refuse("'call' wants a call");
    end_block();
    macro_body(*s, "endcall");
    return s;
  }
  std::unique_ptr<Statement> filter_statement() {
    auto s = statement(Statement::Kind::Filter);
    take();
    s->value = filters(nullptr, true);
    end_block();
    s->body = block({"endfilter"});
    end("endfilter");
    return s;
  }
  std::unique_ptr<Statement> generation_statement() {
    auto s = statement(Statement::Kind::Body);
    take();
    end_block();
    macro_body(*s, "endgeneration");
    return s;
  }
  std::unique_ptr<Statement> with_statement() {
    auto s = statement(Statement::Kind::With);
    take();
    while (!is(Token::Kind::BlockEnd)) {
      if (!s->bindings.empty()) expect_op(",");
      Target t = target(false);
      expect_op("=");
      s->bindings.emplace_back(std::move(t), expression());
    }
    end_block();
    s->body = block({"endwith"});
    end("endwith");
    return s;
  }
  std::unique_ptr<Statement> leave_loop(Statement::Kind kind) {
    auto s = statement(kind);
    if (loops_ == 0) refuse("{} outside of a loop", shown());
    take();
    end_block();
    return s;
  }
  std::unique_ptr<Statement> break_statement() { return leave_loop(Statement::Kind::Break); }
  std::unique_ptr<Statement> continue_statement() { return leave_loop(Statement::Kind::Continue); }

  Target single_target(bool attributes) {
    if (take_op("(")) {
      Target t = target(attributes);
      expect_op(")");
      return t;
    }
    Target t;
    t.name = name();
    if (attributes && take_op(".")) t.attribute = name();
    if (t.attribute.empty() &&
        contains(Words{"true", "false", "none", "True", "False", "None"}, std::string_view(t.name)))
      refuse("'{}' cannot be assigned to", t.name);
    return t;
  }
  Target target(bool attributes) {
    const Level level(*this);
    Target first = single_target(attributes);
    if (!is_op(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (take_op(",") && (is(Token::Kind::Name) || is_op("(")) && !is_word("in"))
      all.parts.push_back(single_target(attributes));
    return all;
  }

  // Expressions, from what binds least on.

  // "a, b" is a tuple. Without `conditions` an "if" ends it.
  ExpressionPtr tuple(bool conditions = true) {
    const auto item = [&] { return conditions ? expression() : either(); };
    ExpressionPtr first = item();
    if (!is_op(",")) return first;
    ExpressionPtr out = node_of(Kind::TupleOf, "", std::move(first));
    while (take_op(",") && !ends_tuple()) add(*out, item());
    return out;
  }
  bool ends_tuple() const {
    return is(Token::Kind::BlockEnd) || is(Token::Kind::OutputEnd) || is_op(")") || is_word("in") ||
           is_word("if");
  }

  ExpressionPtr expression() {
    const Level level(*this);
    ExpressionPtr value = either();
    while (take_word("if")) {
      ExpressionPtr condition = either(), otherwise;
      if (take_word("else")) otherwise = expression();
      value = node_of(Kind::Condition, "", std::move(value), std::move(condition),
                      std::move(otherwise));
    }
    return value;
  }
  ExpressionPtr either() {
    ExpressionPtr left = both();
    while (take_word("or")) left = node_of(Kind::Or, "", std::move(left), both());
    return left;
  }
  ExpressionPtr both() {
    ExpressionPtr left = negated();
    while (take_word("and")) left = node_of(Kind::And, "", std::move(left), negated());
    return left;
  }
  ExpressionPtr negated() {
    const Level level(*this);
    if (take_word("not")) return node_of(Kind::Not, "", negated());
    return comparison();
  }
  ExpressionPtr comparison() {
    ExpressionPtr first = sum();
    ExpressionPtr out;
    while (true) {
      std::string op;
      if (is(Token::Kind::Operator) &&
          contains(Words{"==", "!=", "<", "<=", ">", ">="}, std::string_view(now().text))) {
        op = take().text;
      } else if (take_word("in")) {
        op = "in";
      } else if (is_word("not") && ahead().kind == Token::Kind::Name && ahead().text == "in") {
        take(), take();
        op = "not in";
      } else {
        return out ? std::move(out) : std::move(first);
      }
      if (!out) out = node_of(Kind::Compare, "", std::move(first));
      out->operators.push_back(std::move(op));
      add(*out, sum());
    }
  }
  using Operand = ExpressionPtr (Parser::*)();
  ExpressionPtr chain(const Words& operators, Operand operand) {
    ExpressionPtr left = (this->*operand)();
    while (is(Token::Kind::Operator) && contains(operators, std::string_view(now().text))) {
      std::string op = take().text;
      left = node_of(Kind::Binary, std::move(op), std::move(left), (this->*operand)());
    }
    return left;
  }
  ExpressionPtr sum() { return chain({"+", "-"}, &Parser::concatenation); }
  ExpressionPtr concatenation() {
    ExpressionPtr first = product();
    if (!is_op("~")) return first;
    ExpressionPtr out = node_of(Kind::Concat, "", std::move(first));
    while (take_op("~")) add(*out, product());
    return out;
  }
  ExpressionPtr product() { return chain({"*", "/", "//", "%"}, &Parser::power); }
  ExpressionPtr power() { return chain({"**"}, &Parser::filtered_unary); }
  ExpressionPtr filtered_unary() { return unary(true); }
  ExpressionPtr unary(bool filtered) {
    const Level level(*this);
    ExpressionPtr out;
    if (is_op("-") || is_op("+")) {
      std::string op = take().text;
      out = node_of(Kind::Unary, std::move(op), unary(false));
    } else {
      out = postfix(primary());
    }
    return filtered ? filters_and_tests(std::move(out)) : std::move(out);
  }

  ExpressionPtr constant(Value value) const {
    ExpressionPtr e = node(Kind::Constant);
    e->value = std::move(value);
    return e;
  }
  ExpressionPtr primary() {
    if (is(Token::Kind::String)) {
      std::string text = take().text;
      while (is(Token::Kind::String)) text += take().text;
      return constant(std::move(text));
    }
    if (is(Token::Kind::Integer) || is(Token::Kind::Float)) return number();
    if (is(Token::Kind::Name)) return named();
    if (take_op("(")) {
      if (take_op(")")) return node(Kind::TupleOf);
      ExpressionPtr inner = tuple();
      expect_op(")");
      return inner;
    }
    if (take_op("[")) return list();
    if (take_op("{")) return dict();
    refuse("a value belongs before {}", shown());
  }
  ExpressionPtr named() {
    const std::string word = now().text;
    ExpressionPtr out;
    if (word == "true" || word == "True") out = constant(true);
    if (word == "false" || word == "False") out = constant(false);
    if (word == "none" || word == "None") out = constant({});
    if (!out) out = node(Kind::Name, word);
    take();
    return out;
  }
  ExpressionPtr number() {
    const std::string& digits = now().text;
    Value value;
    if (is(Token::Kind::Float)) {
      double d = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), d);
      value = d;
    } else {
      int64_t i = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), i);
      if (error != std::errc()) refuse("{} is beyond 64 bits", digits);
      value = i;
    }
    ExpressionPtr out = constant(std::move(value));
    take();
    return out;
  }
  ExpressionPtr list() {
    ExpressionPtr out = node(Kind::ListOf);
    while (!take_op("]")) {
      if (!out->items.empty()) expect_op(",");
      if (take_op("]")) break;
      add(*out, expression());
    }
    return out;
  }
  ExpressionPtr dict() {
    ExpressionPtr out = node(Kind::DictOf);
    while (!take_op("}")) {
      if (!out->items.empty()) expect_op(",");
      if (take_op("}")) break;
      add(*out, expression());
      expect_op(":");
      add(*out, expression());
    }
    return out;
  }

  ExpressionPtr postfix(ExpressionPtr e) {
    while (true) {
      if (take_op(".")) {
        if (is(Token::Kind::Integer)) {
          e = node_of(Kind::Item, "", std::move(e), number());
        } else {
          std::string attribute = name();
          e = node_of(Kind::Attribute, std::move(attribute), std::move(e));
        }
      } else if (take_op("[")) {
        e = subscript(std::move(e));
      } else if (is_op("(")) {
        e = call(std::move(e));
      } else {
        return e;
      }
    }
  }
  ExpressionPtr subscript(ExpressionPtr e) {
    ExpressionPtr parts[3];
    int part = 0;
    bool slice = false;
    while (!is_op("]")) {
      if (take_op(":")) {
        slice = true;
        if (++part > 2) refuse("a slice of more than three parts");
      } else {
        if (parts[part]) refuse("']' belongs before {}", shown());
        parts[part] = expression();
      }
    }
    take();
    if (slice)
      return node_of(Kind::Slice, "", std::move(e), std::move(parts[0]), std::move(parts[1]),
                     std::move(parts[2]));
    if (!parts[0]) refuse("an index belongs between '[' and ']'");
    return node_of(Kind::Item, "", std::move(e), std::move(parts[0]));
  }
  ExpressionPtr call(ExpressionPtr e) {
    ExpressionPtr out = node_of(Kind::Call, "", std::move(e));
    out->arguments = arguments();
    return out;
  }
  std::vector<Argument> arguments() {
    expect_op("(");
    std::vector<Argument> out;
    while (!take_op(")")) {
      if (!out.empty()) expect_op(",");
      if (take_op(")")) break;
      Argument a;
      if (take_op("**")) {
        a.kind = Argument::Kind::SpreadNamed;
      } else if (take_op("*")) {
        a.kind = Argument::Kind::Spread;
      } else if (is(Token::Kind::Name) && ahead().kind == Token::Kind::Operator &&
                 ahead().text == "=") {
        a.kind = Argument::Kind::Named;
        a.name = take().text;
        take();
      } else if (!out.empty() && out.back().kind == Argument::Kind::Named) {
        refuse("a positional argument follows a named one");
      }
      a.value = expression();
      out.push_back(std::move(a));
    }
    return out;
  }

  ExpressionPtr filters_and_tests(ExpressionPtr e) {
    while (true) {
      if (is_op("|")) {
        e = filters(std::move(e));
      } else if (is_word("is")) {
        e = test(std::move(e));
      } else if (is_op("(")) {
        e = call(std::move(e));
      } else {
        return e;
      }
    }
  }
  std::string dotted_name() {
    std::string out = name();
    while (take_op(".")) out += "." + name();
    return out;
  }
  // Of a filter block (`named`) the first comes without "|".
  ExpressionPtr filters(ExpressionPtr e, bool named = false) {
    while (named || take_op("|")) {
      named = false;
      ExpressionPtr out = node(Kind::Filter);
      out->text = dotted_name();
      add(*out, std::move(e));
      if (is_op("(")) out->arguments = arguments();
      e = std::move(out);
    }
    return e;
  }
  ExpressionPtr test(ExpressionPtr e) {
    take();
    const bool negated = take_word("not");
    ExpressionPtr out = node(Kind::Test);
    out->text = dotted_name();
    add(*out, std::move(e));
    if (is_op("(")) {
      out->arguments = arguments();
    } else if (begins_argument()) {
      if (is_word("is")) refuse("tests cannot be chained by 'is'");
      Argument a;
      a.value = postfix(primary());
      out->arguments.push_back(std::move(a));
    }
    return negated ? node_of(Kind::Not, "", std::move(out)) : std::move(out);
  }
  bool begins_argument() const {
    if (is(Token::Kind::Name)) return !is_word("else") && !is_word("or") && !is_word("and");
    return is(Token::Kind::String) || is(Token::Kind::Integer) || is(Token::Kind::Float) ||
           is_op("[") || is_op("{");
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Block parse(std::string_view text) { return Parser(text).run(); }

}  // namespace tuff::text::jinja
