// The functions of Tensor in the dtypes that their rows of tensor_values.json are not stored in, on
// the CPU: floats against the interpreter and PyTorch's values (F64 backwards too), integers
// against the interpreter, and against PyTorch's values where nothing wraps. What needs a GPU's own
// arithmetic is conformance_test.cpp's and `tuff check`'s matter.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/check.h"
#include "check/functions.h"
#include "tensor/reference.h"
#include "tensor/stored_values.h"

namespace tuff::test {
namespace {

using check::Function;
using check::Precision;
using ir::HostArray;

constexpr const char* kDevice = "CPU";

bool all_of_dtype(const Row& row, bool (*is)(DType)) {
  bool any = false;
  for (const HostArray& a : row.inputs) {
    if (a.dtype == DType::Bool) continue;
    if (!is(a.dtype)) return false;
    any = true;
  }
  return any;
}
bool has_floats(const Row& row) {
  for (const HostArray& a : row.inputs) {
    if (is_float(a.dtype)) return true;
  }
  return false;
}

HostArray converted(const HostArray& a, DType t) {
  HostArray out{t, a.shape, std::vector<std::byte>(size_t(a.count()) * size_bytes(t))};
  for (int64_t i = 0; i < a.count(); i++)
    store_scalar(a.at(i).cast(t), out.bytes.data() + size_t(i) * size_bytes(t));
  return out;
}

std::vector<Tensor> inputs_as(const Row& row, DType t) {
  std::vector<Tensor> x;
  for (const HostArray& a : row.inputs) {
    const bool same_class = is_float(a.dtype) == is_float(t) && a.dtype != DType::Bool;
    const HostArray b = same_class ? converted(a, t) : a;
    Tensor v = Tensor::from_bytes(b.bytes.data(), b.shape, {b.dtype, kDevice});
    if (is_float(b.dtype)) v.set_requires_grad();
    x.push_back(v);
  }
  return x;
}

// Functions whose results depend on bits that the narrow types do not have.
const std::map<std::string, const char*> kNotNarrow{
    {"bitcast", "another size"},
    {"cos_far", "the arguments lie between the type's numbers"},
    {"cos_roots", "the arguments are roots of cos in F32"},
    {"fmod_exact", "the remainders depend on the operands' last bits"},
    {"fmod", "the quotients change with the operands' last bits"},
    {"remainder", "the quotients change with the operands' last bits"},
    {"floor_divide", "the quotients change with the operands' last bits"},
    {"tan", "near its pole it amplifies the rounding of the arguments"},
    {"erf_small", "quotients of numbers below F16's normal ones"},
    {"special_real", "2^100 is beyond F16"},
    {"special_elementary", "e^50 is beyond F16"},
    {"softplus_small", "1e6 is beyond F16"},
    {"pow_far", "2^100 is beyond F16"},
    {"cast_special", "2^31 is beyond F16"},
    {"max_pool2d_ceil", "values that differ in F32 are equal"},
    {"argmax_flat", "values that differ in F32 are equal"},
    {"argmax_keepdim", "values that differ in F32 are equal"},
};

// In parts of the largest magnitude: F64's inputs are stored with nine digits; in F16 and BF16 the
// inputs are rounded, which the functions amplify, and sums of products too.
double tolerance_of(DType t) {
  switch (t) {
    case DType::F64: return 2e-6;
    case DType::F16: return 24 * 0x1p-11;
    default: return 24 * 0x1p-8;
  }
}

// What a function gave, pending, and how it is compared with what it should be.
struct Pending {
  std::vector<Tensor> results;
  std::function<void()> compare;
};

Pending of_floats(const Function& f, const Row& row, DType t) {
  const Tensor out = f.run(inputs_as(row, t));
  const double own = f.precision == Precision::Exact ? 0
                     : t == DType::F64               ? 1e-13
                                                     : tolerance_of(t) / 6;
  return {{out}, [=, want = interpret({out}).at(0)] {
            const HostArray got = contents(out);
            EXPECT_EQ(difference(got, want, own), "") << "interpreter";
            EXPECT_EQ(difference(converted(got, row.out.dtype), row.out, tolerance_of(t)), "")
                << "PyTorch";
          }};
}

Pending of_gradients(const Function& f, const Row& row) {
  const std::vector<Tensor> x = inputs_as(row, DType::F64);
  const Tensor out = f.run(x);
  (out * weights(out)).sum().backward();
  Pending p;
  for (size_t i = 0; i < x.size(); i++)
    if (!row.gradients[i].empty() && x[i].grad().defined()) p.results.push_back(x[i].grad());
  p.compare = [=] {
    for (size_t i = 0; i < x.size(); i++) {
      if (row.gradients[i].empty() || !x[i].grad().defined()) continue;
      const HostArray torch = array_of(DType::F64, x[i].sizes(), row.gradients[i]);
      EXPECT_EQ(difference(contents(x[i].grad()), torch, tolerance_of(DType::F64)), "")
          << "gradient " << i;
    }
  };
  return p;
}

template <class F>
void reporting_errors(const std::string& name, const F& f) {
  SCOPED_TRACE(name);
  try {
    f();
  } catch (const Error& e) {
    ADD_FAILURE() << e.kind() << ": " << e.what();
  }
}

// Many at once, so that their kernels are compiled together.
void compare_all(std::map<std::string, Pending>& pending) {
  std::vector<Tensor> all;
  for (const auto& [name, p] : pending) all.insert(all.end(), p.results.begin(), p.results.end());
  try {
    Tensor::realize(all);
  } catch (const Error&) {
    // By itself each says what is wrong with it.
  }
  for (const auto& [name, p] : pending) reporting_errors(name, p.compare);
  pending.clear();
}

// `begin` gives nothing to compare where a function has no such row.
void for_each_row(bool (*chosen)(const Row&),
                  const std::function<Pending(const Function&, const Row&)>& begin) {
  constexpr size_t kTogether = 32;
  int run = 0;
  std::map<std::string, Pending> pending;
  for (const Function& f : check::functions()) {
    const Row& row = stored_row(f.name);
    if (!chosen(row)) continue;
    run++;
    reporting_errors(f.name, [&] {
      Pending p = begin(f, row);
      if (p.compare) pending.emplace(f.name, std::move(p));
    });
    if (pending.size() == kTogether) compare_all(pending);
  }
  compare_all(pending);
  EXPECT_GT(run, 30);
}

class FloatTypes : public testing::TestWithParam<DType> {};

TEST_P(FloatTypes, AgreeWithTheInterpreterAndPyTorch) {
  const DType t = GetParam();
  for_each_row(has_floats, [&](const Function& f, const Row& row) -> Pending {
    if (t != DType::F64 && kNotNarrow.count(f.name)) return {};
    // Another result in each dtype; `tuff check` compares them with the interpreter.
    if (f.name == "bitcast" || f.name == "nextafter") return {};
    if (check::refuses(f, t)) {
      EXPECT_THROW(f.run(inputs_as(row, t)), InvalidArgument);
      return {};
    }
    return of_floats(f, row, t);
  });
}
INSTANTIATE_TEST_SUITE_P(Types, FloatTypes, testing::Values(DType::F64, DType::F16, DType::BF16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(FloatGradients, AgreeWithPyTorchInF64) {
  for_each_row([](const Row& row) { return has_floats(row) && !row.gradients.empty(); },
               of_gradients);
}

// Whether every value of the row can be stored in t, so that nothing wraps on the way either.
bool fits(const Row& row, DType t) {
  auto inside = [&](const HostArray& a) {
    for (int64_t i = 0; i < a.count(); i++) {
      if (is_float(a.dtype)) continue;
      const Scalar v = a.at(i);
      if (is_unsigned(t) && v.as_int() < 0) return false;
      if (v.cast(t).as_int() != v.as_int()) return false;
    }
    return true;
  };
  for (const HostArray& a : row.inputs) {
    if (!inside(a)) return false;
  }
  return inside(row.out);
}

// Whose meaning is that of 32 bits, or that pass values that narrow types wrap.
const std::map<std::string, const char*> kOf32Bits{
    {"bitcast", "another size"},
    {"shift_beyond", "counts of 32 and more"},
    {"pow_int", "powers wrap in 8 and 16 bits"},
    {"pow_int_number", "powers wrap in 8 and 16 bits"},
    {"integer_arithmetic", "products wrap in 8 bits"},
    {"left_shift", "bits are shifted out"},
    {"bitwise_not", "of unsigned numbers another number"},
    {"shift_number", "of unsigned numbers another number"},
    {"number_remainder", "of unsigned numbers another number"},
};

class IntegerTypes : public testing::TestWithParam<DType> {};

TEST_P(IntegerTypes, AgreeWithTheInterpreterAndPyTorch) {
  const DType t = GetParam();
  for_each_row(
      [](const Row& row) { return all_of_dtype(row, is_int); },
      [&](const Function& f, const Row& row) -> Pending {
        if (f.name == "bitcast") return {};
        const Tensor out = f.run(inputs_as(row, t));
        return {{out}, [=, name = f.name, want = interpret({out}).at(0)] {
                  const HostArray got = contents(out);
                  EXPECT_EQ(difference(got, want, is_float(out.dtype()) ? 2e-6 : 0), "")
                      << "interpreter";
                  if (!fits(row, t) || kOf32Bits.count(name)) return;
                  EXPECT_EQ(difference(converted(got, row.out.dtype), row.out, 2e-6), "")
                      << "PyTorch";
                }};
      });
}
INSTANTIATE_TEST_SUITE_P(Types, IntegerTypes,
                         testing::Values(DType::I8, DType::U8, DType::I16, DType::U16, DType::U32,
                                         DType::I64, DType::U64),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tuff::test
