// Reading of the text form: what text.cpp prints, one node per line. Everything that is wrong is an
// InvalidArgument naming the line and the reason.
#include <cctype>
#include <unordered_map>

#include "base/parse_number.h"
#include "ir/custom_kernel.h"
#include "ir/op_table.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

const std::unordered_map<std::string_view, Op>& ops_by_name() {
  static const std::unordered_map<std::string_view, Op> map = [] {
    std::unordered_map<std::string_view, Op> m;
    for (size_t i = 0; i < op_rows().size(); i++) m.emplace(op_rows()[i].text, Op(i));
    return m;
  }();
  return map;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
 public:
  explicit Parser(const std::string& text) : rest_(text) {}
  std::vector<UOp> parse();

 private:
  template <class... Args>
  [[noreturn]] void error(fmt::format_string<Args...> f, Args&&... args) const {
    fail<InvalidArgument>("line {}: {}", line_number_, fmt::format(f, std::forward<Args>(args)...));
  }
  void skip_blanks() {
    while (at_ < line_.size() && line_[at_] == ' ') at_++;
  }
  bool peek(char c) {
    skip_blanks();
    return at_ < line_.size() && line_[at_] == c;
  }
  bool accept(char c) { return peek(c) && (at_++, true); }
  void expect(char c) {
    if (!accept(c)) error("'{}' expected at column {}", c, at_ + 1);
  }
  bool accept_word(std::string_view w);
  void expect_word(std::string_view w) {
    if (!accept_word(w)) error("'{}' expected at column {}", w, at_ + 1);
  }
  std::string_view word(const char* what);
  std::string_view number_text();
  int64_t integer();
  int64_t integer_within(int64_t low, int64_t high, const char* what);
  std::string string();
  UOp reference();
  Dim dim();
  IntVec int_list();
  template <class T>
  std::vector<T> list(char open, T (Parser::*item)(), char close);
  Pairs pairs_arg();
  Scalar scalar(DType t);
  Arg arg(Op op);
  void skip_arg();
  Arg arg_and_dtype(Op op);
  Arg word_arg();
  Arg scatter_arg();
  Arg loop_arg();
  Arg named_arg(std::string_view w);
  Arg storage_arg();
  Arg matrix_arg();
  AxisKind axis_kind();
  DType dtype();
  void check_arg(Op op, const Arg& a) const;
  void check_shape(const UOp& u, std::string_view given);
  void parse_line();
  std::string_view given_shape();

  std::string_view rest_, line_;
  size_t at_ = 0, line_number_ = 0;
  std::unordered_map<int64_t, size_t> positions_;  // number -> index in nodes_
  std::vector<UOp> nodes_;
  std::vector<bool> used_;
  DType arg_dtype_ = DType::Void;  // of the line: a Const's and a Buffer's arg need it
  std::unordered_map<int64_t, Ref<Storage>> storages_;
};

bool Parser::accept_word(std::string_view w) {
  skip_blanks();
  if (line_.substr(at_, w.size()) != w) return false;
  if (at_ + w.size() < line_.size() && is_word(line_[at_ + w.size()])) return false;
  at_ += w.size();
  return true;
}

std::string_view Parser::word(const char* what) {
  skip_blanks();
  const size_t begin = at_;
  while (at_ < line_.size() && is_word(line_[at_])) at_++;
  if (begin == at_) error("{} expected at column {}", what, at_ + 1);
  return line_.substr(begin, at_ - begin);
}

std::string_view Parser::number_text() {
  skip_blanks();
  const size_t begin = at_;
  while (at_ < line_.size() &&
         (is_word(line_[at_]) || line_[at_] == '-' || line_[at_] == '+' || line_[at_] == '.')) {
    if (line_.substr(at_, 2) == "..") break;
    at_++;
  }
  return line_.substr(begin, at_ - begin);
}

int64_t Parser::integer() {
  const std::string_view t = number_text();
  const std::optional<int64_t> v = parse_number<int64_t>(t);
  if (!v) error("'{}' is no 64-bit integer", t);
  return *v;
}

int64_t Parser::integer_within(int64_t low, int64_t high, const char* what) {
  const int64_t v = integer();
  if (v < low || v > high) error("{} {} is outside {}..{}", what, v, low, high);
  return v;
}

std::string Parser::string() {
  expect('"');
  std::string out;
  while (at_ < line_.size() && line_[at_] != '"') {
    if (line_[at_] == '\\' && at_ + 1 < line_.size()) {
      at_++;
      out += line_[at_] == 'n' ? '\n' : line_[at_];
    } else {
      out += line_[at_];
    }
    at_++;
  }
  expect('"');
  return out;
}

UOp Parser::reference() {
  expect('%');
  const int64_t n = integer();
  auto at = positions_.find(n);
  if (at == positions_.end()) error("%{} is used before it is defined", n);
  used_[at->second] = true;
  return nodes_[at->second];
}

Dim Parser::dim() {
  if (!peek('%')) return Dim(integer());
  const UOp u = reference();
  if (u->dtype != DType::Index) error("an extent must be an index, not {}", name(u->dtype));
  return Dim(u);
}

template <class T>
std::vector<T> Parser::list(char open, T (Parser::*item)(), char close) {
  std::vector<T> out;
  expect(open);
  while (!accept(close)) {
    if (!out.empty()) expect(',');
    out.push_back((this->*item)());
  }
  return out;
}

IntVec Parser::int_list() { return list('[', &Parser::integer, ']'); }

Pairs Parser::pairs_arg() {
  Pairs out;
  expect('<');
  while (!accept('>')) {
    const Dim a = dim();
    expect(':');
    out.push_back({a, dim()});
  }
  return out;
}

Scalar Parser::scalar(DType t) {
  if (t == DType::Void) error("void has no values");
  if (accept_word("bits")) {
    const std::string_view digits = number_text();
    const auto bits = parse_number<uint64_t>(digits.substr(digits.starts_with("0x") ? 2 : 0), 16);
    if (!bits) error("'{}' is no hexadecimal number", digits);
    return {t, *bits};
  }
  if (t == DType::U64) {
    const std::string_view digits = number_text();
    const auto v = parse_number<uint64_t>(digits);
    if (!v) error("'{}' is no {}", digits, name(t));
    return {t, *v};
  }
  if (!is_float(t)) {
    const int64_t v = integer();
    const Scalar s = Scalar::of_int(t, v);
    if (s.as_int() != v) error("{} does not fit {}", v, name(t));
    return s;
  }
  const std::string_view digits = number_text();
  const auto v = parse_number<double>(digits);
  if (!v) error("'{}' is no {}", digits, name(t));
  return Scalar::of_double(t, *v);
}

AxisKind Parser::axis_kind() {
  const std::string_view w = word("an axis kind");
  for (int k = 0; k <= int(AxisKind::Ordered); k++) {
    if (w == name(AxisKind(k))) return AxisKind(k);
  }
  error("'{}' is no axis kind", w);
}

DType Parser::dtype() {
  const std::string_view w = word("a dtype");
  try {
    return parse_dtype(w);
  } catch (const InvalidArgument&) {
    error("'{}' is no dtype", w);
  }
}

// The arg of a Buffer; its dtype follows after the brace and was looked up ahead.
Arg Parser::storage_arg() {
  const int64_t id = integer();
  expect_word("count");
  const int64_t n = integer_within(0, INT64_MAX, "count");
  std::string device = string();
  Ref<Storage>& s = storages_[id];
  if (!s)
    s = make_ref<Storage>(std::move(device), arg_dtype_, n);
  else if (s->dtype != arg_dtype_ || s->count != n || s->device != device)
    error("storage {} was another one before", id);
  return s;
}

Arg Parser::named_arg(std::string_view w) {
  if (w == "r") {
    const int32_t id = int32_t(integer_within(INT32_MIN, INT32_MAX, "range"));
    return RangeArg{id, axis_kind()};
  }
  if (w == "slot") {
    ParamArg p;
    p.slot = int32_t(integer_within(INT32_MIN, INT32_MAX, "slot"));
    expect_word("count");
    p.count = integer_within(0, INT64_MAX, "count");
    if (peek('"')) p.device = string();
    return p;
  }
  if (w == "special") {
    const std::string_view space = word("g, l or s");
    if (space != "g" && space != "l" && space != "s")
      error("launch coordinate '{}' is neither g nor l nor s", space);
    return SpecialArg{space[0], int8_t(integer_within(0, 2, "axis"))};
  }
  if (w == "shared") {
    const int32_t n = int32_t(integer_within(INT32_MIN, INT32_MAX, "shared"));
    expect_word("count");
    return SharedArg{n, integer_within(0, INT64_MAX, "count")};
  }
  if (w == "matrix") return matrix_arg();
  if (w == "by") return scatter_arg();
  if (w == "steps") return loop_arg();
  if (w == "rule") {  // rules are code: what is read from text has no gradient there
    word("a name");
    return {};
  }
  if (w == "on") {
    Placement p;
    while (peek('"')) p.devices.push_back(string());
    if (p.devices.empty()) error("a placement names at least one device");
    expect_word("axis");
    p.shard_axis = int(integer_within(-1, INT32_MAX, "axis"));
    return p;
  }
  if (auto op = ops_by_name().find(w); op != ops_by_name().end())
    return ReduceArg{op->second, int_list()};
  error("'{}' starts no arg", w);
}

Arg Parser::scatter_arg() {
  const std::string_view w = word("an op");
  const auto op = ops_by_name().find(w);
  if (op == ops_by_name().end()) error("'{}' is no op", w);
  expect_word("axis");
  ScatterArg s{op->second, integer_within(0, INT64_MAX, "axis")};
  const std::string_view named = word("any, once, all or unordered");
  for (const Named n : {Named::Once, Named::All, Named::Unordered}) {
    if (named == name(n)) s.named = n;
  }
  if (named != name(s.named)) error("'{}' is none of any, once, all, unordered", named);
  return s;
}

// The body is a text of its own, of a Sink of its places and of the next states.
Arg Parser::loop_arg() {
  LoopArg loop{.body = make_ref<LoopBody>()};
  loop.steps = dim();
  if (loop.steps.uop()->min < 1) error("a loop has {} steps", loop.steps.uop()->min);
  const std::string_view way = word("forwards or backwards");
  if (way != "forwards" && way != "backwards")
    error("'{}' is neither forwards nor backwards", way);
  loop.reverse = way == "backwards";
  expect_word("rows");
  loop.rows = integer_within(2, INT64_MAX, "rows");
  expect_word("states");
  const auto states = size_t(integer_within(1, INT32_MAX, "states"));
  expect_word("sequences");
  loop.body->sequences = size_t(integer_within(0, INT32_MAX, "sequences"));
  expect_word("body");
  const std::vector<UOp> roots = parse_text(string());
  const size_t places = roots.size() == 1 ? roots[0]->src_count - states : 0;
  if (roots.size() != 1 || roots[0]->op != Op::Sink || roots[0]->src_count < states ||
      places < states + loop.body->sequences)
    error("a loop's body is a sink of its places and of {} states", states);
  const auto nodes = roots[0]->src();
  loop.body->places.assign(nodes.begin(), nodes.begin() + ptrdiff_t(places));
  loop.body->next.assign(nodes.begin() + ptrdiff_t(places), nodes.end());
  return loop;
}

Arg Parser::matrix_arg() {
  MatrixArg m{MatrixUse::Sum, 0, 0};
  const std::string_view use = word("a, b or sum");
  for (const MatrixUse u : {MatrixUse::A, MatrixUse::B}) {
    if (use == name(u)) m.use = u;
  }
  if (use != name(m.use)) error("'{}' is neither a nor b nor sum", use);
  m.rows = int32_t(integer_within(1, INT32_MAX, "rows"));
  m.columns = int32_t(integer_within(1, INT32_MAX, "columns"));
  expect_word("stride");
  m.stride = integer_within(0, INT64_MAX, "stride");
  const std::string_view order = word("rows or columns");
  if (order != "rows" && order != "columns") error("'{}' is neither rows nor columns", order);
  m.by_columns = order == "columns";
  if (accept_word("interleaved")) m.interleaved = int32_t(integer_within(2, INT32_MAX, "interleaved rows"));
  expect_word("number");
  m.number = integer_within(0, INT64_MAX, "number");
  return m;
}

Arg Parser::word_arg() {
  const std::string_view w = word("an arg");
  if (w == "storage") return storage_arg();
  for (int t = 0; t < kDTypeCount; t++) {
    if (w == short_name(DType(t))) return scalar(DType(t));
  }
  return named_arg(w);
}

Arg Parser::arg(Op op) {
  if (op == Op::Const) return scalar(arg_dtype_);
  if (peek('[')) return int_list();
  if (peek('(')) return list('(', &Parser::dim, ')');
  if (peek('<')) return pairs_arg();
  if (peek('"')) {
    VariableArg v{string(), 0, 0};
    v.min = integer();
    if (line_.substr(at_, 2) != "..") error("'..' expected at column {}", at_ + 1);
    at_ += 2;
    v.max = integer();
    if (v.min > v.max) error("lower bound {} is above upper bound {}", v.min, v.max);
    return v;
  }
  skip_blanks();
  if (at_ < line_.size() &&
      (line_[at_] == '-' || std::isdigit(static_cast<unsigned char>(line_[at_]))))
    return integer();
  return word_arg();
}

// The printed shape, up to its closing parenthesis (symbolic extents contain parentheses).
std::string_view Parser::given_shape() {
  if (!peek('(')) return {};
  const size_t begin = at_;
  int depth = 0;
  for (; at_ < line_.size(); at_++) {
    depth += (line_[at_] == '(') - (line_[at_] == ')');
    if (depth == 0) return line_.substr(begin, ++at_ - begin);
  }
  error("the shape has no ')'");
}

void Parser::skip_arg() {
  bool in_string = false;
  while (at_ < line_.size() && (in_string || line_[at_] != '}')) {
    if (line_[at_] == '\\' && in_string)
      at_++;
    else if (line_[at_] == '"')
      in_string = !in_string;
    at_++;
  }
  expect('}');
}

// The dtype stands behind the arg, but the args of Const and Buffer need it: it is read first.
Arg Parser::arg_and_dtype(Op op) {
  if (!accept('{')) {
    arg_dtype_ = dtype();
    return {};
  }
  const size_t begin = at_;
  skip_arg();
  arg_dtype_ = dtype();
  const size_t end = at_;
  at_ = begin;
  Arg a = arg(op);
  expect('}');
  at_ = end;
  return a;
}

void Parser::parse_line() {
  expect('%');
  const int64_t number = integer();
  if (positions_.contains(number)) error("%{} is defined twice", number);
  expect('=');
  const std::string_view op_name = word("an op");
  auto op = ops_by_name().find(op_name);
  if (op == ops_by_name().end()) error("'{}' is no op", op_name);
  Arg a = arg_and_dtype(op->second);
  const DType t = arg_dtype_;
  check_arg(op->second, a);
  const std::string_view shape = given_shape();
  std::vector<UOp> src;
  while (peek('%')) src.push_back(reference());
  skip_blanks();
  if (at_ != line_.size()) error("'{}' is left over", line_.substr(at_));
  const OpRow& r = row(op->second);
  if (r.arity < 0 && r.rule == DTypeRule::Same && src.empty()) error("{} needs a source", op_name);
  UOp u;
  try {
    u = make(op->second, t, src, std::move(a));
  } catch (const std::bad_variant_access&) {
    error("{} has another kind of arg", op_name);
  } catch (const Error& e) {
    error("{}", e.what());
  }
  if (u->dtype != t) error("{} gives {}, not {}", op_name, name(u->dtype), name(t));
  check_shape(u, shape);
  positions_.emplace(number, nodes_.size());
  nodes_.push_back(std::move(u));
  used_.push_back(false);
}

template <class... T>
bool holds(const Arg& a) {
  return (std::holds_alternative<T>(a) || ...);
}
struct ArgForm {
  bool (*fits)(const Arg&) = nullptr;
  const char* text = nullptr;
};
constexpr ArgForm kMatrix{holds<MatrixArg>,
                          "{matrix a|b|sum ROWS COLUMNS stride N rows|columns [interleaved N] number N}"};
// Ops whose meaning needs one kind of arg; make() looks at those of the others.
constexpr OpTable<ArgForm> kArgForms{{
    {Op::Range, {holds<RangeArg>, "{r NUMBER KIND}"}},
    {Op::Special, {holds<SpecialArg>, "{special g|l|s AXIS}"}},
    {Op::Shared, {holds<SharedArg>, "{shared NUMBER count N}"}},
    {Op::Param, {holds<ParamArg>, "{slot NUMBER count N}"}},
    {Op::Buffer, {holds<Ref<Storage>>, "{storage NUMBER count N DEVICE}"}},
    {Op::Variable, {holds<VariableArg>, "{NAME MIN..MAX}"}},
    {Op::Reduce, {holds<ReduceArg>, "{OP [AXES]}"}},
    {Op::Copy, {holds<Placement>, "{on DEVICE axis N}"}},
    {Op::Scatter, {holds<ScatterArg>, "{by OP axis N any|once|all|unordered}"}},
    {Op::Loop, {holds<LoopArg>, "{steps N forwards|backwards rows N states N sequences N body TEXT}"}},
    {Op::CustomKernel, {holds<CustomKernelArg>, "a user's kernel: text has its hash alone"}},
    {Op::Flip, {holds<IntVec>, "{[AXES]}"}},
    {Op::Mark, {holds<int64_t>, "{NUMBER}"}},
    {Op::Ruled, {holds<int64_t>, "{NUMBER}"}},
    {Op::Shards, {holds<std::monostate, int64_t>, "{AXIS} or nothing"}},
    {Op::Rule, {holds<IntVec>, "{[VALUES, ARGUMENTS, SLOT, NUMBERS]}"}},
    {Op::Register, {holds<int64_t, MatrixArg>, "{NUMBER} or {matrix ...}"}},
    {Op::MatrixFill, kMatrix}, {Op::MatrixLoad, kMatrix},
    {Op::MatrixMulAdd, kMatrix}, {Op::MatrixStore, kMatrix},
}};

void Parser::check_arg(Op op, const Arg& a) const {
  const ArgForm* form = kArgForms.find(op);
  if (form && !form->fits(a)) error("{} needs {}", name(op), form->text);
}

void Parser::check_shape(const UOp& u, std::string_view given) {
  const std::string own = u->shape.empty() ? "" : to_string(u->shape);
  if (given != own)
    error("the shape is {}, not {}", own.empty() ? "()" : own, given.empty() ? "()" : given);
}

std::vector<UOp> Parser::parse() {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    line_number_++;
    at_ = 0;
    skip_blanks();
    if (at_ == line_.size() || line_[at_] == '#') continue;
    parse_line();
  }
  std::vector<UOp> roots;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (!used_[i]) roots.push_back(nodes_[i]);
  }
  return roots;
}

}  // namespace

std::vector<UOp> parse_text(const std::string& text) { return Parser(text).parse(); }

}  // namespace tuff::ir
