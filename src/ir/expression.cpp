// expression(): an Index or Bool expression in one line, with the precedence of C.
#include "ir/op_table.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

constexpr size_t kMaxLength = 4096;  // shared nodes are spelled out at every use
constexpr int kMaxDepth = 200;

enum Level { kOr, kAnd, kCompare, kSum, kProduct, kUnary };

// What is not listed reads like a call.
constexpr OpTable<std::pair<const char*, Level>> kInfix{{
    {Op::Mul, {"*", kProduct}},        {Op::FloorDiv, {" // ", kProduct}},
    {Op::FloorMod, {" % ", kProduct}}, {Op::CmpLt, {" < ", kCompare}},
    {Op::CmpEq, {" == ", kCompare}},   {Op::CmpNe, {" != ", kCompare}},
    {Op::And, {" & ", kAnd}},          {Op::Or, {" | ", kOr}},
}};

class Printer {
 public:
  std::string text;
  void print(const Node& n, int level, int depth);

 private:
  void infix(const Node& n, const char* sign, int own, int level, int depth);
  void sum(const Node& n, int level, int depth);
  void call(const Node& n, const char* name, int depth);
  void leaf(const Node& n, int depth);
  bool not_of(const Node& n, int depth);
};

void Printer::infix(const Node& n, const char* sign, int own, int level, int depth) {
  if (own < level) text += '(';
  print(*n.src(0), own, depth + 1);
  text += sign;
  print(*n.src(1), own + 1, depth + 1);
  if (own < level) text += ')';
}

// x + y*-4 reads x - y*4.
void Printer::sum(const Node& n, int level, int depth) {
  const Node& y = *n.src(1);
  const bool scaled = y.op == Op::Mul && y.src(1)->is_const();
  const Node& c = scaled ? *y.src(1) : y;
  if (n.op == Op::Sub || n.dtype != DType::Index || !c.is_const() || c.const_int() >= 0 ||
      c.const_int() == INT64_MIN) {
    return infix(n, n.op == Op::Sub ? " - " : " + ", kSum, level, depth);
  }
  if (level > kSum) text += '(';
  print(*n.src(0), kSum, depth + 1);
  text += " - ";
  const int64_t magnitude = -c.const_int();
  if (scaled) print(*y.src(0), magnitude == 1 ? kSum + 1 : kProduct, depth + 1);
  if (scaled && magnitude != 1) text += fmt::format("*{}", magnitude);
  if (!scaled) text += fmt::format("{}", magnitude);
  if (level > kSum) text += ')';
}

void Printer::call(const Node& n, const char* name, int depth) {
  text += name;
  text += '(';
  for (uint32_t i = 0; i < n.src_count; i++) {
    if (i) text += ", ";
    print(*n.src(i), kOr, depth + 1);
  }
  text += ')';
}

bool Printer::not_of(const Node& n, int depth) {
  if (n.op != Op::CmpNe || n.src(0)->dtype != DType::Bool || !n.src(1)->is_const_int(1))
    return false;
  text += '!';
  print(*n.src(0), kUnary, depth + 1);
  return true;
}

void Printer::leaf(const Node& n, int depth) {
  switch (n.op) {
    case Op::Const: {
      const Scalar& v = n.get<Scalar>();
      if (v.dtype == DType::Bool)
        text += v.as_bool() ? "true" : "false";
      else
        text +=
            is_float(v.dtype) ? fmt::format("{}", v.as_double()) : fmt::format("{}", v.as_int());
      return;
    }
    case Op::Variable: text += n.get<VariableArg>().name; return;
    case Op::Range: text += fmt::format("r{}", n.get<RangeArg>().id); return;
    case Op::Special:
      text += fmt::format("{}{}", n.get<SpecialArg>().space, int(n.get<SpecialArg>().axis));
      return;
    case Op::Param: text += fmt::format("p{}", n.get<ParamArg>().slot); return;
    default: return call(n, name(n.op), depth);
  }
}

void Printer::print(const Node& n, int level, int depth) {
  if (text.size() > kMaxLength || depth > kMaxDepth) {
    text += "...";
    return;
  }
  if (n.op == Op::Add || n.op == Op::Sub) return sum(n, level, depth);
  if (not_of(n, depth)) return;
  const auto* sign = kInfix.find(n.op);
  return sign ? infix(n, sign->first, sign->second, level, depth) : leaf(n, depth);
}

}  // namespace

std::string expression(const UOp& x) {
  if (!x) return "(nothing)";
  Printer p;
  p.print(*x, kOr, 0);
  return std::move(p.text);
}

}  // namespace tuff::ir
