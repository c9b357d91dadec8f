// The conformance suite as a table: complete, reproducible, and its comparison right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "check/compare.h"
#include "check/function_values.h"
#include "check/functions.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::Op;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

HostArray floats(DType t, const std::vector<double>& values) {
  std::vector<Scalar> scalars;
  for (double v : values) scalars.push_back(Scalar::of_double(t, v));
  return array_of(t, {int64_t(values.size())}, scalars);
}

double distance(DType t, double a, double b) {
  return ulp_distance(Scalar::of_double(t, a), Scalar::of_double(t, b));
}

TEST(UlpDistance, CountsRepresentableSteps) {
  EXPECT_EQ(distance(DType::F32, 1, std::nextafterf(1, 2)), 1);
  EXPECT_EQ(distance(DType::F32, 1, 1), 0);
  EXPECT_EQ(distance(DType::F32, 0.0, -0.0), 0);
  EXPECT_EQ(distance(DType::F32, 0x1p-149, -0x1p-149), 2);
  EXPECT_EQ(distance(DType::F32, 0x1.fffffep127, kInfinite), 1);
  EXPECT_EQ(distance(DType::F16, 1, 1 + 0x1p-10), 1);
  EXPECT_EQ(distance(DType::BF16, 1, 1 + 0x1p-7), 1);
  EXPECT_EQ(distance(DType::F64, 1, 1 + 0x1p-52), 1);
  EXPECT_EQ(distance(DType::F32, kNaN, kNaN), 0);
  EXPECT_EQ(distance(DType::F32, kNaN, 1), kInfinite);
}

TEST(Compare, KeepsTheBudget) {
  const HostArray want = floats(DType::F32, {1, 2, 4}),
                  got = floats(DType::F32, {1, 2, 4 + 0x1p-20});
  EXPECT_TRUE(compare(got, want, 2).equal);
  EXPECT_EQ(compare(got, want, 2).error_ulp, 2);
  const Comparison c = compare(got, want, 1);
  EXPECT_FALSE(c.equal);
  EXPECT_NE(c.message.find("element 2"), std::string::npos) << c.message;
  EXPECT_FALSE(compare(floats(DType::F32, {1, 2}), want, 9).equal);
  EXPECT_FALSE(compare(floats(DType::F64, {1, 2, 4}), want, 9).equal);
  EXPECT_FALSE(compare(floats(DType::F32, {1, 2, kNaN}), want, 1e9).equal);
}

TEST(Compare, UnitsOfTheLargestMagnitude) {
  const HostArray want = floats(DType::F32, {0, 1024}), got = floats(DType::F32, {0x1p-13, 1024});
  EXPECT_FALSE(compare(got, want, 1e6).equal);
  EXPECT_TRUE(compare(got, want, 1, Scale::Largest).equal);
  EXPECT_FALSE(compare(got, want, 0.9, Scale::Largest).equal);
}

TEST(Compare, IntegersAreExact) {
  const HostArray a = array_of(DType::I32, {1}, {Scalar::of_int(DType::I32, 5)});
  const HostArray b = array_of(DType::I32, {1}, {Scalar::of_int(DType::I32, 6)});
  EXPECT_FALSE(compare(a, b, 100).equal);
  EXPECT_TRUE(compare(a, a, 0).equal);
}

TEST(Compare, DenormalsMayBeFlushedOnlyWhereThatIsSaid) {
  const HostArray want = floats(DType::F32, {0x1p-140, 1}), zero = floats(DType::F32, {0, 1});
  EXPECT_FALSE(compare(zero, want, 1).equal);
  EXPECT_TRUE(compare(zero, want, 1, Scale::Element, &want).equal);
  EXPECT_FALSE(compare(floats(DType::F32, {1, 1}), want, 1, Scale::Element, &want).equal);
  EXPECT_TRUE(compare(floats(DType::F32, {-0x1p-140, 1}), zero, 0, Scale::Element, &zero).equal);
  EXPECT_FALSE(compare(floats(DType::F32, {0x1p-126, 1}), zero, 0, Scale::Element, &zero).equal);
  EXPECT_TRUE(without_denormals(want).has_value());
  EXPECT_FALSE(without_denormals(zero).has_value());
}

// Every op of the tensor floor that stands for a value has a case in every dtype that memory holds,
// unless the op is not defined on it.
TEST(Suite, HasEveryOpOfTheTable) {
  std::set<std::string> ops;
  for (const Case& c : suite()) ops.insert(c.op);
  // Those of gradients and loops are cases of functions; shards are of several devices, and no
  // device's (tensor/shards_test.cpp), users' kernels are theirs (tensor/kernel_test.cpp).
  const std::set<std::string> elsewhere = {"buffer", "param", "var",       "sink",
                                           "reduce", "rule",  "checkpoint", "ruled",
                                           "shards", "loop", "custom_kernel"};
  for (size_t i = 0; i < ir::op_rows().size(); i++) {
    const ir::OpRow& r = ir::op_rows()[i];
    if (!(r.floors & ir::kFloorTensor) || elsewhere.count(r.text)) continue;
    EXPECT_TRUE(ops.count(r.text)) << r.text;
    const bool reduces = r.flags & ir::kReducible;
    EXPECT_TRUE(!reduces || ops.count(std::string("reduce_") + r.text)) << r.text;
  }
}

TEST(Suite, CoversEveryDType) {
  std::map<std::string, std::set<DType>> dtypes;
  for (const Case& c : suite())
    if (!is_float8(c.dtype)) dtypes[c.op].insert(c.dtype);
  for (const char* op : {"add", "mul", "max", "where", "cast", "reduce_add", "permute", "assign"})
    EXPECT_EQ(dtypes[op].size(), memory_dtypes().size()) << op;
  for (const char* op : {"sqrt", "exp2", "log2", "sin", "div"})
    EXPECT_EQ(dtypes[op].size(), 4u) << op;
  for (const char* op : {"idiv", "shl"}) EXPECT_EQ(dtypes[op].size(), 8u) << op;
}

TEST(Suite, HasEveryConversionOfFloatsOf8Bits) {
  for (const DType t : float8_dtypes()) {
    const char* narrow = short_name(t);
    for (const DType other : memory_dtypes()) {
      for (const auto& [from, to] : {std::pair(narrow, short_name(other)),
                                     std::pair(short_name(other), narrow)}) {
        const std::string name = fmt::format("cast/{}/to_{}_special", from, to);
        EXPECT_TRUE(find_case(name)) << name;
      }
    }
    for (const char* name : {"bitcast/{}/to_u8_odd", "add/{}/special", "reduce_add/{}/rows",
                             "reduce_max/{}/special", "Tensor.matmul/{}/forward"})
      EXPECT_TRUE(find_case(fmt::format(fmt::runtime(name), narrow))) << name << " " << narrow;
  }
}

TEST(Suite, HasEveryFunctionForwards) {
  std::set<std::string> names;
  for (const Case& c : suite()) names.insert(c.name);
  std::set<std::string> ops;
  for (const Case& c : suite()) ops.insert(c.op);
  for (const Function& f : functions()) EXPECT_TRUE(ops.count("Tensor." + f.name)) << f.name;
  EXPECT_TRUE(names.count("Tensor.softmax/bf16/backward"));
}

// The stored operands of a function with the floats among them, or else the integers, as dtype t.
std::vector<Tensor> zeros_like_operands(const nlohmann::json& row, DType t) {
  std::vector<DType> dtypes;
  for (const auto& j : row.at("inputs"))
    dtypes.push_back(parse_dtype(j.at("dtype").get<std::string>()));
  const bool floats = std::any_of(dtypes.begin(), dtypes.end(), is_float);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dtypes.size(); i++) {
    const bool changes = floats ? is_float(dtypes[i]) : is_int(dtypes[i]);
    out.push_back(Tensor::zeros(row.at("inputs")[i].at("shape").get<std::vector<int64_t>>(),
                                {.dtype = changes ? t : dtypes[i], .device = "NULL"}));
  }
  return out;
}

TEST(Suite, FunctionsRefuseWhatTheTableSaysAndNothingElse) {
  std::map<std::string, nlohmann::json> rows;
  const nlohmann::json all = nlohmann::json::parse(function_values());
  for (const auto& row : all.at("cases")) rows.emplace(row.at("name").get<std::string>(), row);
  for (const Function& f : functions()) {
    const nlohmann::json& row = rows.at(f.name);
    for (const DType t : memory_dtypes()) {
      if (is_float(t) || row.at("inputs").empty()) continue;
      const std::vector<Tensor> operands = zeros_like_operands(row, t);
      if (refuses(f, t)) {
        EXPECT_THROW(f.run(operands), Error) << f.name << " " << short_name(t);
      } else {
        EXPECT_NO_THROW(f.run(operands)) << f.name << " " << short_name(t);
      }
    }
  }
}

TEST(Suite, OperandsDependOnTheSeedAndOnNothingElse) {
  for (const char* name : {"add/f32/odd", "cast/i64/to_f16_odd", "Tensor.softmax/f32/forward"}) {
    const Case* c = find_case(name);
    ASSERT_TRUE(c) << name;
    EXPECT_EQ(c->inputs(1).at(0).bytes, c->inputs(1).at(0).bytes) << name;
    EXPECT_NE(c->inputs(1).at(0).bytes, c->inputs(2).at(0).bytes) << name;
  }
  EXPECT_EQ(find_case("no such case"), nullptr);
}

TEST(Suite, FiltersByPattern) {
  EXPECT_EQ(matching("add/f32/odd").size(), 1u);
  EXPECT_EQ(matching("add/f32/odd,add/f32/od?").size(), 1u);
  EXPECT_EQ(matching("*").size(), suite().size());
  EXPECT_EQ(matching("add/*/odd").size(), memory_dtypes().size());
  EXPECT_TRUE(matching("").empty());
}

// Float ops without a row are exact; those that round anywhere have one in every float type.
TEST(Budgets, StandForEveryFloatType) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Recip, Op::Sqrt, Op::Exp2, Op::Log2,
                Op::Sin, Op::Cast}) {
    for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      const Budget b = budget_of(op, t);
      EXPECT_GT(b.vulkan_ulp, 0) << ir::name(op) << " " << name(t);
      EXPECT_LE(b.host_ulp, b.vulkan_ulp);
      EXPECT_GT(b.source.size(), 5u);
    }
  }
  EXPECT_EQ(budget_of(Op::Max, DType::F32).vulkan_ulp, 0);
  EXPECT_EQ(budget_of(Op::Add, DType::I32).vulkan_ulp, 0);
}

}  // namespace
}  // namespace tuff::check
