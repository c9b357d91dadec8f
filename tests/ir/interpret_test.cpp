// The interpreter against tests/data/op_values.json, whose values scripts/op-values.py computed
// apart from tuff: bit for bit, exp2, log2 and sin within one ULP. A NaN equals any NaN; of two
// zeros max may give either.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/interpret.h"
#include "ir/scalar_eval.h"

namespace tuff::ir {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::byte>;

const json& data() {
  static const json values = [] {
    std::ifstream file(TUFF_SOURCE_DIR "/tests/data/op_values.json");
    return json::parse(file);
  }();
  return values;
}

Bytes from_hex(const json& text) {
  const std::string& s = text.get_ref<const std::string&>();
  Bytes out(s.size() / 2);
  for (size_t i = 0; i < out.size(); i++)
    out[i] = std::byte(std::stoi(s.substr(2 * i, 2), nullptr, 16));
  return out;
}

Op op_named(const std::string& text) {
  for (size_t i = 0; i < op_rows().size(); i++) {
    if (op_rows()[i].text == text) return Op(i);
  }
  ADD_FAILURE() << "no op " << text;
  return Op::Const;
}

// A leaf of the graph with its contents.
class Inputs {
 public:
  UOp add(DType t, Bytes bytes, const Shape& shape = {}) {
    const int64_t n = int64_t(bytes.size() / size_bytes(t));
    const UOp b = buffer(make_ref<Storage>("CPU", t, n));
    contents_.push_back(std::move(bytes));
    bindings.storages[b->get<Ref<Storage>>()->id] = contents_.back();
    return shape.empty() ? b : reshape(b, shape);
  }
  HostArray run(const UOp& u) const { return interpret(std::span(&u, 1), bindings).at(0); }
  Bindings bindings;

 private:
  std::deque<Bytes> contents_;
};

// Distance in units of the last place, through the order of the bit patterns.
int64_t ulps(const Scalar& a, const Scalar& b) {
  auto ordered = [](const Scalar& v) {
    uint64_t bits = 0;
    store_scalar(v, &bits);
    const int top = row(v.dtype).storage_bits - 1;
    const int64_t magnitude = int64_t(bits & ((uint64_t{1} << top) - 1));
    return bits >> top & 1 ? -magnitude : magnitude;
  };
  return std::abs(ordered(a) - ordered(b));
}

bool same(const Scalar& got, const Scalar& want, int64_t budget, bool zeros_equal) {
  if (got.dtype != want.dtype) return false;
  if (!is_float(got.dtype)) return got == want;
  if (std::isnan(want.as_double())) return std::isnan(got.as_double());
  if (zeros_equal && got.as_double() == 0 && want.as_double() == 0) return true;
  if (budget == 0) return got == want;
  return !std::isnan(got.as_double()) && ulps(got, want) <= budget;
}

void expect_values(const HostArray& got, DType t, const Bytes& want, const std::string& what, Op op,
                   const std::vector<HostArray>& in = {}) {
  ASSERT_EQ(got.dtype, t) << what;
  ASSERT_EQ(got.bytes.size(), want.size()) << what;
  const int64_t budget = op == Op::Exp2 || op == Op::Log2 || op == Op::Sin ? 1 : 0;
  for (int64_t i = 0; i < got.count(); i++) {
    const Scalar w = load_scalar(t, want.data() + size_t(i) * size_bytes(t));
    if (same(got.at(i), w, budget, op == Op::Max)) continue;
    std::string text = fmt::format("{} [{}]: got {} ({:x}), want {} ({:x})", what, i,
                                   got.at(i).as_double(), got.at(i).bits, w.as_double(), w.bits);
    for (const HostArray& x : in)
      text += fmt::format("; operand {} ({:x})", x.at(i).as_double(), x.at(i).bits);
    ADD_FAILURE() << text;
    return;
  }
}

bool on_tensor_floor(Op op) { return row(op).floors & kFloorTensor; }

// One ALU op over whole arrays, through the interpreter.
void check_op(const std::string& text, DType t, const std::vector<Bytes>& operands,
              const std::vector<DType>& types, DType out, const Bytes& want) {
  const Op op = op_named(text);
  ASSERT_TRUE(on_tensor_floor(op)) << text;
  Inputs inputs;
  std::vector<UOp> src;
  std::vector<HostArray> in;
  for (size_t i = 0; i < operands.size(); i++) {
    src.push_back(inputs.add(types[i], operands[i]));
    in.push_back({types[i], {src.back()->shape[0].value()}, operands[i]});
  }
  const HostArray got = inputs.run(make(op, out, src));
  expect_values(got, out, want, fmt::format("{} {}", text, short_name(t)), op, in);
}

bool compares(const std::string& op) { return op.starts_with("cmp"); }

TEST(InterpretValues, Binary) {
  for (const char* group : {"binary", "shift"}) {
    for (const auto& [name, table] : data().at(group).items()) {
      const DType t = parse_dtype(name);
      for (const auto& [op, want] : table.at("ops").items()) {
        check_op(op, t, {from_hex(table.at("x")), from_hex(table.at("y"))}, {t, t},
                 compares(op) ? DType::Bool : t, from_hex(want));
      }
    }
  }
}

TEST(InterpretValues, Unary) {
  for (const auto& [name, table] : data().at("unary").items()) {
    const DType t = parse_dtype(name);
    for (const auto& [op, want] : table.at("ops").items())
      check_op(op, t, {from_hex(table.at("x"))}, {t}, t, from_hex(want));
  }
}

TEST(InterpretValues, Casts) {
  for (const auto& [name, table] : data().at("cast").items()) {
    const DType t = parse_dtype(name);
    for (const char* op : {"cast", "bitcast"}) {
      for (const auto& [to, want] : table.at(op).items()) {
        check_op(op, t, {from_hex(table.at("x"))}, {t}, parse_dtype(to), from_hex(want));
      }
    }
  }
}

TEST(InterpretValues, Where) {
  for (const auto& [name, table] : data().at("where").items()) {
    const DType t = parse_dtype(name);
    check_op("where", t,
             {from_hex(table.at("condition")), from_hex(table.at("x")), from_hex(table.at("y"))},
             {DType::Bool, t, t}, t, from_hex(table.at("out")));
  }
}

Shape shape_from(const json& list) {
  Shape s;
  for (int64_t v : list.get<IntVec>()) s.push_back(v);
  return s;
}

TEST(InterpretValues, Reductions) {
  for (const json& r : data().at("reduce")) {
    const DType t = parse_dtype(r.at("dtype").get<std::string>());
    const std::string text = r.at("op");
    Inputs inputs;
    const UOp x = inputs.add(t, from_hex(r.at("x")), shape_from(r.at("shape")));
    const HostArray got = inputs.run(reduce(op_named(text), x, r.at("axes").get<IntVec>()));
    expect_values(got, t, from_hex(r.at("out")),
                  fmt::format("reduce {} {} {}", text, short_name(t), r.at("axes").dump()),
                  op_named(text));
  }
}

UOp moved(const std::string& op, const UOp& x, const json& arg) {
  if (op == "reshape") return make(Op::Reshape, x->dtype, {x}, shape_from(arg));
  if (op == "expand") return expand(x, shape_from(arg));
  if (op == "permute") return permute(x, arg.get<IntVec>());
  if (op == "flip") return flip(x, arg.get<IntVec>());
  Pairs pairs;
  for (const json& p : arg) pairs.push_back({p.at(0).get<int64_t>(), p.at(1).get<int64_t>()});
  return op == "pad" ? pad(x, pairs) : shrink(x, pairs);
}

TEST(InterpretValues, Movement) {
  for (const json& r : data().at("movement")) {
    const std::string op = r.at("op");
    Inputs inputs;
    const DType t = parse_dtype(r.at("dtype").get<std::string>());
    const UOp x = inputs.add(t, from_hex(r.at("x")), shape_from(r.at("shape")));
    const HostArray got = inputs.run(moved(op, x, r.at("arg")));
    EXPECT_EQ(got.shape, r.at("out_shape").get<IntVec>()) << op;
    // Exact, but for signaling NaNs among the bits, which may come out quiet.
    expect_values(got, t, from_hex(r.at("out")), op + r.at("arg").dump(), op_named(op));
  }
}

TEST(InterpretValues, Counters) {
  for (const auto& [name, want] : data().at("iota").items()) {
    const DType t = parse_dtype(name);
    Inputs inputs;
    expect_values(inputs.run(iota(300, t)), t, from_hex(want), "iota " + name, Op::Iota);
  }
}

// Every op of the tensor floor that computes or moves has values in every dtype it is defined on.
TEST(InterpretValues, CoverEveryDType) {
  std::map<std::string, std::set<std::string>> covered;
  for (const char* group : {"binary", "shift", "unary"}) {
    for (const auto& [dtype, table] : data().at(group).items()) {
      for (const auto& [op, want] : table.at("ops").items()) covered[op].insert(dtype);
    }
  }
  for (const char* group : {"reduce", "movement"}) {
    for (const json& r : data().at(group))
      covered[(group[0] == 'r' ? "reduce " : "") + r.at("op").get<std::string>()].insert(
          r.at("dtype").get<std::string>());
  }
  for (const auto& [dtype, table] : data().at("cast").items())
    EXPECT_EQ(table.at("cast").size(), 12u) << dtype;
  EXPECT_EQ(data().at("cast").size(), 13u);
  EXPECT_EQ(data().at("where").size(), 13u);
  EXPECT_EQ(data().at("iota").size(), 12u);
  const std::map<std::string, size_t> wanted = {
      {"add", 13},        {"sub", 13},     {"mul", 13},        {"max", 13},     {"cmplt", 13},
      {"cmpne", 13},      {"cmpeq", 13},   {"and", 9},         {"or", 9},       {"xor", 9},
      {"idiv", 8},        {"imod", 8},     {"shl", 8},         {"shr", 8},      {"div", 4},
      {"neg", 12},        {"recip", 4},    {"sqrt", 4},        {"exp2", 4},     {"log2", 4},
      {"sin", 4},         {"trunc", 4},    {"reduce add", 13}, {"reshape", 13}, {"reduce mul", 13},
      {"reduce max", 13}, {"permute", 13}, {"expand", 13},     {"pad", 13},     {"shrink", 13},
      {"flip", 13}};
  for (const auto& [op, count] : wanted) EXPECT_EQ(covered[op].size(), count) << op;
  EXPECT_EQ(covered.size(), wanted.size());
}

// The first three blocks are the known answers of Random123 (Salmon et al., SC 2011).
TEST(InterpretValues, Threefry) {
  for (const json& r : data().at("threefry")) {
    Scalar in[4];
    for (size_t i = 0; i < 4; i++) in[i] = Scalar{DType::U32, r.at("in").at(i).get<uint64_t>()};
    for (int64_t word = 0; word < 2; word++) {
      EXPECT_EQ(eval_scalar(Op::Threefry, DType::U32, in, word).bits,
                r.at("out").at(size_t(word)).get<uint64_t>());
    }
  }
  EXPECT_EQ(data().at("threefry").at(0).at("out").at(0), 0x6b200159u);
}

TEST(ScalarEval, FloorDivisionOfIndices) {
  const json& d = data().at("index");
  for (size_t i = 0; i < d.at("x").size(); i++) {
    const Scalar in[2] = {Scalar::of_int(DType::Index, d.at("x").at(i)),
                          Scalar::of_int(DType::Index, d.at("y").at(i))};
    EXPECT_EQ(eval_scalar(Op::FloorDiv, DType::Index, in).as_int(),
              d.at("floordiv").at(i).get<int64_t>());
    EXPECT_EQ(eval_scalar(Op::FloorMod, DType::Index, in).as_int(),
              d.at("floormod").at(i).get<int64_t>());
  }
}

TEST(ScalarEval, MulAddRoundsInTheDtype) {
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8, DType::U64}) {
    const Scalar in[3] = {Scalar::of_int(t, 7), Scalar::of_int(t, 9), Scalar::of_int(t, 5)};
    EXPECT_EQ(eval_scalar(Op::MulAdd, t, in), Scalar::of_int(t, 68)) << tuff::name(t);
  }
}

// Every ALU op of the table has values here, so that a new op cannot be forgotten.
TEST(InterpretValues, CoverEveryOp) {
  std::set<std::string> covered{"cast",     "bitcast",  "where", "threefry",
                                "floordiv", "floormod", "muladd"};
  for (const char* group : {"binary", "shift", "unary"}) {
    for (const auto& [name, table] : data().at(group).items()) {
      for (const auto& [op, want] : table.at("ops").items()) covered.insert(op);
    }
  }
  for (size_t i = 0; i < op_rows().size(); i++) {
    EXPECT_TRUE(!is_alu(Op(i)) || covered.count(op_rows()[i].text)) << op_rows()[i].text;
  }
}

TEST(Interpret, AssignReadsWhatWasThereAndWritesAtTheEnd) {
  Inputs inputs;
  const float old_values[3] = {1, 2, 3};
  Bytes bytes(sizeof old_values);
  std::memcpy(bytes.data(), old_values, sizeof old_values);
  const UOp x = inputs.add(DType::F32, bytes);
  const UOp one = constant(DType::F32, 1), doubled = alu(Op::Add, {x, x});
  const UOp next = make(Op::Assign, DType::F32, {x, alu(Op::Add, {x, one})});
  const UOp roots[2] = {next, doubled};
  const std::vector<HostArray> got = interpret(roots, inputs.bindings);
  for (int64_t i = 0; i < 3; i++) {
    EXPECT_EQ(got[0].at(i).as_double(), double(i) + 2);
    EXPECT_EQ(got[1].at(i).as_double(), 2.0 * double(i + 1));
    EXPECT_EQ(inputs.run(x).at(i).as_double(), double(i) + 2);
  }
}

TEST(Interpret, AnAssignToAPartLeavesTheRest) {
  Inputs inputs;
  const int32_t old_values[6] = {1, 2, 3, 4, 5, 6};
  Bytes bytes(sizeof old_values);
  std::memcpy(bytes.data(), old_values, sizeof old_values);
  const UOp flat = inputs.add(DType::I32, bytes), x = reshape(flat, {2, 3});
  const UOp at = variable("at", 0, 1);
  inputs.bindings.variables["at"] = 1;
  const UOp column = expand(reshape(constant(DType::I32, 9), {1, 1}), {1, 2});
  const UOp next =
      make(Op::Assign, DType::I32, {x, column}, Pairs{{Dim(at), Dim(at) + Dim(1)}, {1, 3}});
  const std::vector<HostArray> got = interpret({&next, 1}, inputs.bindings);
  const int64_t want[6] = {1, 2, 3, 4, 9, 9};
  for (int64_t i = 0; i < 6; i++) {
    EXPECT_EQ(got[0].at(i).as_int(), want[i]);
    EXPECT_EQ(inputs.run(flat).at(i).as_int(), want[i]);
  }
  EXPECT_THROW(make(Op::Assign, DType::I32, {x, column}, Pairs{{1, 3}, {1, 3}}), ShapeError);
  EXPECT_THROW(make(Op::Assign, DType::I32, {x, column}, Pairs{{0, 1}, {0, 3}}), ShapeError);
}

TEST(Interpret, AScatterStoresInTheOrderOfItsIndex) {
  Inputs inputs;
  const auto numbers = [&](const std::vector<int32_t>& v) {
    Bytes bytes(v.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), v.data(), bytes.size());
    return inputs.add(DType::I32, bytes);
  };
  const UOp target = reshape(numbers({1, 2, 3, 4, 5, 6}), {3, 2}),
            value = reshape(numbers({10, 20, 30, 40, 50, 60, 70, 80}), {4, 2}),
            index = reshape(numbers({2, 0, 2, -1, 3, 0, 0, 2}), {4, 2});
  const auto stored = [&](Op op) {
    std::vector<int64_t> out;
    const HostArray got = inputs.run(scatter(target, value, index, {op, 0}));
    for (int64_t i = 0; i < got.count(); i++) out.push_back(got.at(i).as_int());
    return out;
  };
  EXPECT_EQ(stored(Op::Assign), (std::vector<int64_t>{70, 60, 3, 4, 30, 80}));
  EXPECT_EQ(stored(Op::Add), (std::vector<int64_t>{71, 82, 3, 4, 45, 86}));
  EXPECT_EQ(stored(Op::Max), (std::vector<int64_t>{70, 60, 3, 4, 30, 80}));
  EXPECT_THROW(scatter(target, value, index, {Op::Add, 1}), ShapeError);
  EXPECT_THROW(scatter(target, value, target, {Op::Add, 0}), ShapeError);
  EXPECT_THROW(scatter(target, value, index, {Op::Add, 2}), IndexError);
}

// Random graph 21067 of `tuff check`: adding one number again and again rounds to the same side each
// time, which takes a sum in f32 further away than any order of distinct terms.
TEST(Interpret, SumsOfManyEqualTermsAreOffByOneRounding) {
  constexpr int32_t kTerms = 30'000;
  const float term = std::log2(2.75f);
  Bytes bytes(kTerms * sizeof term), zeros(kTerms * sizeof(int32_t)), target(sizeof term);
  for (size_t i = 0; i < kTerms; i++) std::memcpy(&bytes[i * sizeof term], &term, sizeof term);
  Inputs inputs;
  const UOp x = inputs.add(DType::F32, bytes), index = inputs.add(DType::I32, zeros);
  const auto wanted = double(float(double(term) * kTerms));
  EXPECT_EQ(inputs.run(reduce(Op::Add, x, {0})).at(0).as_double(), wanted);
  const UOp sums = scatter(inputs.add(DType::F32, target), x, index, {Op::Add, 0});
  EXPECT_EQ(inputs.run(sums).at(0).as_double(), wanted);
}

TEST(Interpret, SymbolicExtentsFollowTheBoundVariable) {
  Inputs inputs;
  const UOp n = variable("n", 1, 6);
  const UOp x = inputs.add(DType::I32, Bytes(6 * 4, std::byte{1}));
  const UOp part = shrink(x, Pairs{{0, Dim(n)}});
  EXPECT_THROW(inputs.run(part), InvalidArgument);
  inputs.bindings.variables["n"] = 4;
  EXPECT_EQ(inputs.run(part).shape, IntVec{4});
  EXPECT_EQ(inputs.run(reduce(Op::Add, part, {0})).at(0).as_int(), 4 * 0x01010101);
}

}  // namespace
}  // namespace tuff::ir
