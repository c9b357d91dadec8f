#include "text/jinja/evaluator.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "text/jinja/functions.h"

namespace tuff::text::jinja {
namespace {

constexpr size_t kMaxSteps = 5'000'000;         // nodes that are evaluated
constexpr size_t kMaxMade = size_t{256} << 20;  // bytes of values and output
constexpr int kMaxCalls = 60;                   // macros inside of one another
constexpr int kMaxNodes = 500;                  // nodes inside of one another

using Kind = Expression::Kind;

struct Loop {
  const Values* items;
  size_t index = 0;
};

struct Frame {
  std::unordered_map<std::string, Value> names;
  const Frame* parent = nullptr;
  const Loop* loop = nullptr;
};

enum class Flow { Normal, Break, Continue };

// An error that has its line already.
class LineError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

class Evaluator : public Host {
 public:
  Evaluator() : out_(&output_) {}
  ~Evaluator() override {
    // Namespaces may hold one another.
    for (const auto& n : namespaces_) n->clear();
    for (Frame& f : frames_) f.names.clear();
  }

  std::string run(const Block& block, std::vector<std::pair<std::string, Value>> variables) {
    Frame& globals = new_frame(nullptr);
    add_functions(globals);
    for (auto& [name, value] : variables) globals.names[name] = std::move(value);
    Frame& top = new_frame(&globals);
    walk(block, top);
    return std::move(output_);
  }

  void charge(size_t amount) override {
    if (amount > kMaxMade - std::min(made_, kMaxMade))
      fail<InvalidArgument>("the template makes more than {} MiB", kMaxMade >> 20);
    made_ += amount;
  }

 private:
  using Call = std::function<Value(const Arguments&)>;
  static Value function(const std::string& name, Call call) {
    return Function{name, std::make_shared<const Call>(std::move(call))};
  }

  void add_functions(Frame& globals) {
    globals.names["namespace"] = function("namespace", [this](const Arguments& args) {
      auto items = std::make_shared<std::vector<std::pair<std::string, Value>>>(args.named);
      for (const Value& v : args.positional) {
        if (!v.dict()) fail<InvalidArgument>("namespace: a mapping is wanted");
        for (const auto& [key, value] : *v.dict())
          items->emplace_back(text_of("namespace", key), value);
      }
      charge(sizeof(Value) * (1 + items->size()));
      namespaces_.push_back(items);
      return Value(Namespace{std::move(items)});
    });
    globals.names["dict"] = function("dict", [](const Arguments& args) {
      Pairs pairs;
      for (const Value& v : args.positional)
        if (v.dict()) pairs = *v.dict();
      for (const auto& [name, value] : args.named) pairs.emplace_back(Value(name), value);
      return Value(std::move(pairs));
    });
    globals.names["range"] =
        function("range", [this](const Arguments& args) { return range(args); });
    globals.names["raise_exception"] =
        function("raise_exception", [](const Arguments& args) -> Value {
          const auto a = bound("raise_exception", args, {"message"});
          fail<InvalidArgument>("{}", a[0] ? printed(*a[0]) : "");
        });
  }
  Value range(const Arguments& args) {
    const auto a = bound("range", args, {"start", "stop", "step"});
    if (!a[0]) fail<InvalidArgument>("range: an argument is missing");
    const int64_t first = whole_number("range", *a[0]);
    const int64_t begin = a[1] ? first : 0, end = a[1] ? whole_number("range", *a[1]) : first;
    const int64_t step = a[2] ? whole_number("range", *a[2]) : 1;
    if (step == 0) fail<InvalidArgument>("range: step cannot be zero");
    Values out;
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
      charge(sizeof(Value));
      out.emplace_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return out;
  }

  Frame& new_frame(const Frame* parent) {
    frames_.emplace_back();
    frames_.back().parent = parent;
    return frames_.back();
  }
  // A frame that ends with its scope, unless a macro was defined in it.
  template <class F>
  auto in_scope(const Frame& parent, F&& body) {
    const size_t macros = macros_, frames = frames_.size();
    Frame& frame = new_frame(&parent);
    struct End {
      ~End() {
        if (e.macros_ == macros) e.frames_.resize(frames);
      }
      Evaluator& e;
      size_t macros, frames;
    } end{*this, macros, frames};
    return body(frame);
  }

  void step(int line) {
    if (++steps_ > kMaxSteps) at_line(line, fmt::format("more than {} steps", kMaxSteps));
  }
  [[noreturn]] static void at_line(int line, std::string_view reason) {
    throw LineError(fmt::format("template: line {}: {}", line, reason));
  }
  // What `body` throws, with the line.
  template <class F>
  auto named(int line, F&& body) {
    try {
      return body();
    } catch (const LineError&) {
      throw;
    } catch (const Error& e) {
      at_line(line, e.what());
    } catch (const fmt::format_error& e) {
      at_line(line, e.what());
    }
  }
  struct Deeper {
    Deeper(Evaluator& e, int line) : evaluator(e) {
      if (++e.depth_ > kMaxNodes) {
        e.depth_--;
        at_line(line, "nested too deep");
      }
    }
    ~Deeper() { evaluator.depth_--; }
    Deeper(const Deeper&) = delete;
    Evaluator& evaluator;
  };

  // Statements.

  Flow walk(const Block& block, Frame& frame) {
    for (const auto& s : block)
      if (const Flow flow = walk(*s, frame); flow != Flow::Normal) return flow;
    return Flow::Normal;
  }
  Flow walk(const Statement& s, Frame& frame) {
    step(s.line);
    const Deeper deeper(*this, s.line);
    switch (s.kind) {
      case Statement::Kind::Data: write(s.line, s.text); break;
      case Statement::Kind::Output: write(s.line, printed(value_of(*s.value, frame))); break;
      case Statement::Kind::If: return walk_if(s, frame);
      case Statement::Kind::For: return walk_for(s, frame);
      case Statement::Kind::Set: assign(s.target, value_of(*s.value, frame), frame, s.line); break;
      case Statement::Kind::SetBlock: walk_set_block(s, frame); break;
      case Statement::Kind::Macro: frame.names[s.text] = macro(s.text, s, frame); break;
      case Statement::Kind::CallBlock: walk_call(s, frame); break;
      case Statement::Kind::Filter: {
        const Value text = captured(s.body, frame);
        write(s.line, printed(filtered(*s.value, frame, &text)));
        break;
      }
      case Statement::Kind::Body:
        in_scope(frame, [&](Frame& inner) { walk(s.body, inner); });
        break;
      case Statement::Kind::With: walk_with(s, frame); break;
      case Statement::Kind::Break: return Flow::Break;
      case Statement::Kind::Continue: return Flow::Continue;
    }
    return Flow::Normal;
  }
  void write(int line, std::string_view text) {
    named(line, [&] { charge(text.size()); });
    *out_ += text;
  }
  Flow walk_if(const Statement& s, Frame& frame) {
    for (const auto& [condition, body] : s.branches)
      if (!condition || truth(value_of(*condition, frame))) return walk(body, frame);
    return Flow::Normal;
  }
  Flow walk_for(const Statement& s, Frame& frame) {
    const Value over = value_of(*s.value, frame);
    Values items = named(s.line, [&] { return iterated(*this, over); });
    if (s.condition) {
      Values kept;
      for (Value& item : items)
        in_scope(frame, [&](Frame& inner) {
          step(s.line);
          assign(s.target, item, inner, s.line);
          if (truth(value_of(*s.condition, inner))) kept.push_back(std::move(item));
        });
      items = std::move(kept);
    }
    Loop loop{&items};
    for (; loop.index < items.size(); loop.index++) {
      step(s.line);
      const Flow flow = in_scope(frame, [&](Frame& inner) {
        inner.loop = &loop;
        assign(s.target, items[loop.index], inner, s.line);
        const Flow flow = walk(s.body, inner);
        inner.loop = nullptr;  // the frame may outlive it
        return flow;
      });
      if (flow == Flow::Break) break;
    }
    if (!items.empty()) return Flow::Normal;
    return in_scope(frame, [&](Frame& inner) { return walk(s.otherwise, inner); });
  }
  void walk_set_block(const Statement& s, Frame& frame) {
    Value text = captured(s.body, frame);
    if (s.value) text = filtered(*s.value, frame, &text);
    assign(s.target, text, frame, s.line);
  }
  Value captured(const Block& body, const Frame& frame) {
    return written([&] { in_scope(frame, [&](Frame& inner) { walk(body, inner); }); });
  }
  // What is written meanwhile.
  template <class F>
  std::string written(F&& body) {
    std::string text;
    struct Back {
      ~Back() { place = before; }
      std::string *&place, *before;
    } back{out_, out_};
    out_ = &text;
    body();
    return text;
  }
  void walk_with(const Statement& s, Frame& frame) {
    in_scope(frame, [&](Frame& inner) {
      for (const auto& [target, value] : s.bindings)
        assign(target, value_of(*value, frame), inner, s.line);
      walk(s.body, inner);
    });
  }
  void walk_call(const Statement& s, Frame& frame) {
    const Value caller = macro("caller", s, frame);
    const Value callee = value_of(*s.value->items[0], frame);
    Arguments args = arguments(s.value->arguments, frame);
    args.named.emplace_back("caller", caller);
    write(s.line, printed(named(s.line, [&] { return called(callee, args); })));
  }

  void assign(const Target& target, const Value& value, Frame& frame, int line) {
    if (!target.parts.empty()) {
      const Values parts = named(line, [&] { return iterated(*this, value); });
      if (parts.size() != target.parts.size())
        at_line(line, fmt::format("{} values for {} names", parts.size(), target.parts.size()));
      for (size_t i = 0; i < parts.size(); i++) assign(target.parts[i], parts[i], frame, line);
    } else if (target.attribute.empty()) {
      frame.names[target.name] = value;
    } else {
      const Value object = lookup(target.name, frame);
      const auto* ns = object.as<Namespace>();
      if (!ns)
        at_line(line, fmt::format("'{}.{}' cannot be set: '{}' is no namespace", target.name,
                                  target.attribute, target.name));
      for (auto& [name, old] : *ns->items)
        if (name == target.attribute) return void(old = value);
      named(line, [&] { charge(sizeof(Value)); });
      ns->items->emplace_back(target.attribute, value);
    }
  }
  static Value lookup(const std::string& name, const Frame& frame) {
    for (const Frame* f = &frame; f; f = f->parent)
      if (const auto it = f->names.find(name); it != f->names.end()) return it->second;
    return Undefined{fmt::format("'{:.80}'", name)};
  }

  // Macros.

  Value macro(const std::string& name, const Statement& s, const Frame& frame) {
    macros_++;
    return function(name, [this, &s, &frame, name](const Arguments& args) {
      const Deeper deeper(*this, s.line);
      struct Count {
        ~Count() { calls--; }
        int& calls;
      } count{++calls_};
      if (calls_ > kMaxCalls)
        at_line(s.line, fmt::format("macro '{}' is called inside of {} others", name, kMaxCalls));
      return Value(written([&] {
        in_scope(frame, [&](Frame& inner) {
          bind(s, args, inner, name);
          walk(s.body, inner);
        });
      }));
    });
  }
  void bind(const Statement& s, const Arguments& args, Frame& inner, const std::string& name) {
    std::vector<std::string_view> names;
    for (const Parameter& p : s.parameters) names.push_back(p.name);
    Arguments known = args, rest;
    std::erase_if(known.named, [&](const auto& item) {
      if (std::ranges::find(names, item.first) != names.end()) return false;
      if (item.first == "caller") {
        inner.names["caller"] = item.second;
      } else {
        rest.named.push_back(item);
      }
      return true;
    });
    if (known.positional.size() > names.size()) {
      rest.positional.assign(known.positional.begin() + std::ptrdiff_t(names.size()),
                             known.positional.end());
      known.positional.resize(names.size());
    }
    const auto values = named(s.line, [&] { return bound(name, known, names); });
    for (size_t i = 0; i < names.size(); i++) {
      const Parameter& p = s.parameters[i];
      inner.names[p.name] = values[i]     ? *values[i]
                            : p.otherwise ? value_of(*p.otherwise, inner)
                                          : Value(Undefined{fmt::format("'{}'", p.name)});
    }
    Pairs named_rest;
    for (auto& [key, value] : rest.named) named_rest.emplace_back(Value(key), value);
    inner.names["varargs"] = Value(std::move(rest.positional), true);
    inner.names["kwargs"] = Value(std::move(named_rest));
  }
  static Value called(const Value& callee, const Arguments& args) {
    if (const auto* f = callee.as<Function>()) return (*f->call)(args);
    if (const auto* u = callee.as<Undefined>()) refuse_undefined(*u);
    fail<InvalidArgument>("'{}' object is not callable", type_name(callee));
  }
  Arguments arguments(const std::vector<Argument>& list, const Frame& frame) {
    Arguments out;
    for (const Argument& a : list) {
      const Value v = value_of(*a.value, frame);
      switch (a.kind) {
        case Argument::Kind::Positional: out.positional.push_back(v); break;
        case Argument::Kind::Named: out.named.emplace_back(a.name, v); break;
        case Argument::Kind::Spread:
          for (Value& item : iterated(*this, v)) out.positional.push_back(std::move(item));
          break;
        case Argument::Kind::SpreadNamed:
          if (!v.dict()) fail<InvalidArgument>("'**' wants a mapping");
          for (const auto& [key, value] : *v.dict())
            out.named.emplace_back(text_of("**", key), value);
          break;
      }
    }
    return out;
  }

  // Expressions.

  Value value_of(const Expression& e, const Frame& frame) {
    step(e.line);
    const Deeper deeper(*this, e.line);
    return named(e.line, [&] { return computed(e, frame); });
  }
  Value computed(const Expression& e, const Frame& frame) {
    const auto operand = [&](size_t i) { return value_of(*e.items[i], frame); };
    switch (e.kind) {
      case Kind::Constant: return e.value;
      case Kind::Name: return lookup(e.text, frame);
      case Kind::ListOf: return all(e, frame);
      case Kind::TupleOf: return Value(all(e, frame), true);
      case Kind::DictOf: return dict_of(e, frame);
      case Kind::Attribute: return attribute_of(e, frame);
      case Kind::Item: {
        const Value object = operand(0);
        return item(*this, object, operand(1));
      }
      case Kind::Slice: return slice_of(e, frame);
      case Kind::Call: {
        const Value callee = operand(0);
        return called(callee, arguments(e.arguments, frame));
      }
      case Kind::Filter: return filtered(e, frame, nullptr);
      case Kind::Test: {
        const Value subject = operand(0);
        return apply_test(*this, e.text, subject, arguments(e.arguments, frame));
      }
      case Kind::Unary: return unary(e.text, operand(0));
      case Kind::Binary: {
        const Value left = operand(0);
        return binary(*this, e.text, left, operand(1));
      }
      case Kind::Compare: return compared(e, frame);
      case Kind::And: {
        Value left = operand(0);
        return truth(left) ? operand(1) : left;
      }
      case Kind::Or: {
        Value left = operand(0);
        return truth(left) ? left : operand(1);
      }
      case Kind::Not: return !truth(operand(0));
      case Kind::Condition:
        if (truth(operand(1))) return operand(0);
        return e.items[2] ? operand(2) : Value(Undefined{"the value of an 'if' without 'else'"});
      case Kind::Concat: {
        std::string out;
        for (const auto& part : e.items) out += printed(value_of(*part, frame));
        charge(out.size());
        return out;
      }
    }
    return {};
  }
  Values all(const Expression& e, const Frame& frame) {
    Values out;
    for (const auto& part : e.items) out.push_back(value_of(*part, frame));
    charge(out.size() * sizeof(Value));
    return out;
  }
  Value dict_of(const Expression& e, const Frame& frame) {
    Pairs pairs;
    for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
      Value key = value_of(*e.items[i], frame), value = value_of(*e.items[i + 1], frame);
      const auto it =
          std::ranges::find_if(pairs, [&](const auto& pair) { return equal(pair.first, key); });
      if (it != pairs.end()) {
        it->second = std::move(value);
      } else {
        pairs.emplace_back(std::move(key), std::move(value));
      }
    }
    charge(pairs.size() * 2 * sizeof(Value));
    return pairs;
  }
  Value attribute_of(const Expression& e, const Frame& frame) {
    if (e.items[0]->kind == Kind::Name && e.items[0]->text == "loop")
      if (const Loop* loop = loop_of(frame)) return loop_attribute(*loop, e.text);
    return attribute(*this, value_of(*e.items[0], frame), e.text);
  }
  static const Loop* loop_of(const Frame& frame) {
    for (const Frame* f = &frame; f; f = f->parent) {
      if (f->names.contains("loop")) return nullptr;
      if (f->loop) return f->loop;
    }
    return nullptr;
  }
  Value loop_attribute(const Loop& loop, const std::string& name) {
    const Values& items = *loop.items;
    const auto i = int64_t(loop.index), n = int64_t(items.size());
    if (name == "index") return i + 1;
    if (name == "index0") return i;
    if (name == "revindex") return n - i;
    if (name == "revindex0") return n - i - 1;
    if (name == "first") return i == 0;
    if (name == "last") return i + 1 == n;
    if (name == "length") return n;
    if (name == "depth") return int64_t{1};
    if (name == "depth0") return int64_t{0};
    if (name == "previtem" || name == "nextitem") {
      const int64_t at = name == "previtem" ? i - 1 : i + 1;
      if (at >= 0 && at < n) return items[size_t(at)];
      return Undefined{fmt::format("loop.{}, at the {} of it,", name, i == 0 ? "start" : "end")};
    }
    if (name == "cycle")
      return function("cycle", [i](const Arguments& args) {
        if (args.positional.empty()) fail<InvalidArgument>("cycle: no items are given");
        return args.positional[size_t(i) % args.positional.size()];
      });
    return Undefined{fmt::format("'loop.{:.80}'", name)};
  }
  Value slice_of(const Expression& e, const Frame& frame) {
    Value parts[4];
    for (size_t i = 0; i < 4; i++)
      if (e.items[i]) parts[i] = value_of(*e.items[i], frame);
    return slice(*this, parts[0], parts[1], parts[2], parts[3]);
  }
  // `innermost`: what filters of a block begin with.
  Value filtered(const Expression& e, const Frame& frame, const Value* innermost) {
    const Expression* operand = e.items[0].get();
    const Value subject = !operand ? *innermost
                          : innermost && operand->kind == Kind::Filter
                              ? filtered(*operand, frame, innermost)
                              : value_of(*operand, frame);
    return named(e.line, [&] {
      return apply_filter(*this, e.text, subject, arguments(e.arguments, frame));
    });
  }
  Value unary(const std::string& op, const Value& v) {
    if (const auto* u = v.as<Undefined>()) refuse_undefined(*u);
    if (!is_number(v))
      fail<InvalidArgument>("bad operand type for unary {}: '{}'", op, type_name(v));
    return binary(*this, "*", v, int64_t{op == "-" ? -1 : 1});
  }
  Value compared(const Expression& e, const Frame& frame) {
    Value left = value_of(*e.items[0], frame);
    for (size_t i = 0; i < e.operators.size(); i++) {
      Value right = value_of(*e.items[i + 1], frame);
      if (!holds(e.operators[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }
  bool holds(const std::string& op, const Value& a, const Value& b) {
    if (op == "in") return is_in(*this, a, b);
    if (op == "not in") return !is_in(*this, a, b);
    return apply_test(*this, op, a, {{b}, {}});
  }

  std::string output_;
  std::string* out_;
  std::deque<Frame> frames_;
  std::vector<std::shared_ptr<std::vector<std::pair<std::string, Value>>>> namespaces_;
  size_t steps_ = 0, made_ = 0, macros_ = 0;
  int calls_ = 0, depth_ = 0;
};

}  // namespace

std::string evaluate(const Block& block, std::vector<std::pair<std::string, Value>> variables) {
  return Evaluator().run(block, std::move(variables));
}

}  // namespace tuff::text::jinja
