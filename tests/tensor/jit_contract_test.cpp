// What a Jit's function may return and do: results that are arguments, parts of them or of one
// another, reads and writes by the host, what it leaves behind, calls of itself.
#include <gtest/gtest.h>

#include "engine/realize/capture.h"
#include "tensor/devices.h"
#include "tensor/impl.h"
#include "tuff/jit.h"

namespace tuff {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

class JitContract : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on() const { return {.device = GetParam()}; }
  Tensor numbers(const Floats& v) const { return Tensor::from(v, {int64_t(v.size())}, on()); }
  static Floats values(const Tensor& t) {
    Floats out(size_t(t.numel()));
    t.copy_to(out.data(), out.size() * sizeof(float));
    return out;
  }
  // The same results as without a Jit, of every call, looked at when all calls are over.
  void expect_as_without(const std::function<Tensors(const Tensors&)>& f, const char* what) const {
    Jit jit(f);
    std::vector<Tensors> got;
    std::vector<std::vector<Floats>> wanted;
    for (int i = 0; i < 6; i++) {
      const auto arguments = [&] {
        return Tensors{numbers({float(i), 2, 3, 4, 5, -6}), numbers({float(10 * i), 7, 8, 9})};
      };
      got.push_back(jit(arguments()));
      std::vector<Floats> values_of_call;
      for (const Tensor& t : f(arguments())) values_of_call.push_back(values(t.cast(DType::F32)));
      wanted.push_back(values_of_call);
    }
    ASSERT_TRUE(jit.captured()) << what;
    for (size_t i = 0; i < got.size(); i++) {
      ASSERT_EQ(got[i].size(), wanted[i].size()) << what;
      for (size_t k = 0; k < got[i].size(); k++)
        EXPECT_EQ(values(got[i][k].cast(DType::F32)), wanted[i][k])
            << what << ": call " << i << ", result " << k;
    }
  }
  static std::string refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.kind()) + ": " + e.what();
    }
    return "nothing was refused";
  }
  // What the second call says, whose function reads or writes as f does.
  std::string refused_at_capture(const std::function<Tensors(const Tensors&)>& f) const {
    Jit jit(f);
    const Tensor x = numbers({1, 2, 3});
    jit({x});
    const std::string first = refusal([&] { jit({x}); });
    EXPECT_FALSE(jit.captured()) << first;
    EXPECT_EQ(refusal([&] { jit({x}); }), first) << "each further call says the same";
    return first;
  }
};

TEST_P(JitContract, ResultsThatAreArguments) {
  expect_as_without([](const Tensors& in) { return Tensors{in[0]}; }, "the argument");
  expect_as_without([](const Tensors& in) { return Tensors{in[1], in[0], in[1]}; }, "both, twice");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].reshape({2, 3})}; }, "reshape");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].detach()}; }, "detach");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].contiguous()}; }, "contiguous");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].cast(DType::F32)}; }, "cast");
  expect_as_without([](const Tensors& in) { return Tensors{in[0] * 1, in[1] / 1}; }, "times 1");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].dropout(0.5)}; }, "dropout");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].to(in[0].device())}; }, "to");
  expect_as_without([](const Tensors& in) { return Tensors{in[0] + 1, in[0], in[0] * in[1].sum()}; },
                    "beside computed ones");
}

TEST_P(JitContract, ResultsThatArePartsOfArguments) {
  expect_as_without([](const Tensors& in) { return Tensors{in[0].slice(0, 2, 5)}; }, "a slice");
  expect_as_without([](const Tensors& in) { return Tensors{in[0][3], in[1].slice(0, 1, 2)}; },
                    "an element");
  expect_as_without([](const Tensors& in) { return Tensors{in[0].bitcast(DType::U32)}; }, "bits");
  expect_as_without(
      [](const Tensors& in) {
        return Tensors{in[0].reshape({2, 3}).slice(0, 1, 2).contiguous(), in[0].flip({0})};
      },
      "rows");
  expect_as_without(
      [](const Tensors& in) {
        Tensor x = in[0];
        x.realize();
        return Tensors{x.slice(0, 1, 3) + 0, x.expand({2, 6})};
      },
      "repeated");
}

// The argument's own memory is written: what is given has the new contents, as without a Jit.
TEST_P(JitContract, ArgumentsThatAreAssignedTo) {
  const auto add = [](const Tensors& in) {
    Tensor t = in[0];
    t.assign(t + in[1]);
    return Tensors{t, t.reshape({2, 1})};
  };
  Jit jit(add);
  for (int i = 0; i < 5; i++) {
    const Tensor mine = numbers({float(i), 2}).realize(), plus = numbers({1, 1});
    const Tensors out = jit({mine, plus});
    EXPECT_EQ(values(out[0]), (Floats{float(i) + 1, 3})) << i;
    EXPECT_EQ(values(out[1]), (Floats{float(i) + 1, 3})) << i;
    EXPECT_EQ(values(mine), (Floats{float(i) + 1, 3})) << i;
  }
  ASSERT_TRUE(jit.captured());
}

// Several results in one memory, and parts of memory that is no result as a whole.
TEST_P(JitContract, ResultsThatShareMemory) {
  expect_as_without(
      [](const Tensors& in) {
        const Tensor y = in[0] * 2;
        return Tensors{y, y.reshape({3, 2}), y, y.slice(0, 2, 4)};
      },
      "one computation");
  expect_as_without(
      [](const Tensors& in) {
        Tensor y = in[0] + in[1].sum();
        y.realize();
        return Tensors{y.slice(0, 3, 6), y.reshape({2, 3})[1]};
      },
      "parts of what is no result");
}

TEST_P(JitContract, ResultsThatDependOnNothing) {
  expect_as_without(
      [this](const Tensors& in) {
        return Tensors{numbers({1, 2, 3}), Tensor::full({4}, 7, on()), in[0] + 1};
      },
      "numbers of the host, and computed ones");
  const Tensor outside = numbers({5, 6});
  expect_as_without([&](const Tensors& in) { return Tensors{outside, in[0] * 3}; }, "a constant");
}

TEST_P(JitContract, ArgumentsWhoseExtentsVary) {
  Jit jit(
      [](const Tensors& in) {
        return Tensors{in[0].reshape({in[0].size(0) * 2}), in[0], in[0].slice(0, 0, 1), in[0] + 1};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = 8}}});
  std::vector<Tensors> kept;
  const int64_t sizes[] = {3, 3, 8, 1, 5, 5};
  for (const int64_t n : sizes)
    kept.push_back(jit({(Tensor::arange(0, n * 2, 1, {DType::F32, GetParam()}).reshape({n, 2}) +
                         double(kept.size()))
                            .realize()}));
  ASSERT_TRUE(jit.captured());
  for (size_t i = 0; i < kept.size(); i++) {
    Floats wanted, more;
    for (int64_t k = 0; k < 2 * sizes[i]; k++) {
      wanted.push_back(float(k) + float(i));
      more.push_back(float(k) + float(i) + 1);
    }
    EXPECT_EQ(kept[i][0].sizes(), (Sizes{2 * sizes[i]})) << i;
    EXPECT_EQ(values(kept[i][0]), wanted) << i;
    EXPECT_EQ(values(kept[i][1]), wanted) << i;
    EXPECT_EQ(values(kept[i][2]), (Floats{wanted[0], wanted[1]})) << i;
    EXPECT_EQ(values(kept[i][3]), more) << i;
  }
}

TEST_P(JitContract, ReadsByTheHostAreRefused) {
  const Tensor state = numbers({1, 2, 3}).realize();
  const std::string end = ": a Jit's function reads a value that depends on its arguments or on state";
  EXPECT_TRUE(refused_at_capture([](const Tensors& in) {
                return Tensors{in[0] * in[0].sum().item()};
              }).starts_with("InvalidArgument: item" + end));
  EXPECT_TRUE(refused_at_capture([](const Tensors& in) {
                return Tensors{in[0] + double(in[0].to_vector<float>()[0])};
              }).starts_with("InvalidArgument: copy_to" + end));
  EXPECT_TRUE(refused_at_capture([&](const Tensors& in) {
                return Tensors{in[0] * (state[0].item() > 0 ? 2 : 3)};
              }).starts_with("InvalidArgument: item" + end));
  EXPECT_TRUE(refused_at_capture([&](const Tensors& in) {
                return Tensors{in[0] * Tensor::rand({}, on()).item()};
              }).starts_with("InvalidArgument: item" + end));
  EXPECT_TRUE(refused_at_capture([&](const Tensors& in) {
                Tensor y = in[0] * 2;
                y.realize();
                return Tensors{in[0] + (y + Tensor::ones({3}, on()))[1].item()};
              }).starts_with("InvalidArgument: item" + end));
  if (GetParam() == "CPU") {
    EXPECT_TRUE(refused_at_capture([](const Tensors& in) {
                  return Tensors{in[0] + double(*static_cast<const float*>(in[0].data_ptr()))};
                }).starts_with("InvalidArgument: data_ptr" + end));
  }
}

// Values that no replay would compute otherwise, and what is printed.
TEST_P(JitContract, ReadsOfConstantsAreNot) {
  Jit jit([this](const Tensors& in) {
    const double largest = (numbers({3, 9, 4}) * 2).max().item();
    EXPECT_EQ(largest, 18);
    EXPECT_NE(in[0].str(), "");
    return Tensors{in[0] * largest};
  });
  for (int i = 0; i < 4; i++) EXPECT_EQ(values(jit({numbers({float(i)})})[0]), Floats{18.0f * float(i)});
  EXPECT_TRUE(jit.captured());
}

TEST_P(JitContract, WritesByTheHostAreRefused) {
  Tensor state = numbers({1, 2, 3}).realize();
  const Floats other{4, 5, 6};
  const std::string end = "copy_from: a Jit's function writes from host memory";
  EXPECT_NE(refused_at_capture([&](const Tensors& in) {
              state.copy_from(other.data(), 3 * sizeof(float));
              return Tensors{in[0] + state};
            }).find(end),
            std::string::npos);
  EXPECT_NE(refused_at_capture([&](const Tensors& in) {
              Tensor y = (in[0] * 2).realize();
              y.copy_from(other.data(), 3 * sizeof(float));
              return Tensors{y + 1};
            }).find(end),
            std::string::npos);
  EXPECT_NE(refused_at_capture([&](const Tensors& in) {
              Tensor::rand({3}, on()).realize();
              Tensor::manual_seed(3);
              return Tensors{in[0] + Tensor::rand({3}, on())};
            }).find(end),
            std::string::npos);
}

TEST_P(JitContract, WhatIsLeftBehindIsRefusedLater) {
  const Tensor w = numbers({1, 2, 3}).realize();
  Tensor weight = w * 1.5;
  weight.realize().set_requires_grad();
  Tensor kept, constant;
  Jit jit([&](const Tensors& in) {
    kept = in[0] * 2;
    constant = Tensor::full({2}, 4, on());
    const Tensor loss = (in[0] * weight).sum();
    weight.set_grad({});
    loss.backward();
    return Tensors{loss};
  });
  jit({numbers({1, 1, 1})});
  EXPECT_EQ(values(kept), (Floats{2, 2, 2})) << "of a call that ran";
  EXPECT_EQ(values(weight.grad()), (Floats{1, 1, 1}));
  for (int i = 0; i < 3; i++) jit({numbers({float(i), 1, 1})});
  const std::string said = refusal([&] { kept.sum().item(); });
  EXPECT_TRUE(said.starts_with("InvalidArgument: a tensor was used that a Jit's function computed"))
      << said;
  EXPECT_EQ(refusal([&] { values(weight.grad()); }), said);
  EXPECT_EQ(refusal([&] { weight.sum().backward(); }), said) << "which would add to it";
  EXPECT_EQ(values(constant), (Floats{4, 4}));
  weight.set_grad({});
  weight.sum().backward();
  EXPECT_EQ(values(weight.grad()), (Floats{1, 1, 1}));
}

TEST_P(JitContract, ThatCallsItselfIsRefused) {
  std::unique_ptr<Jit> jit, other;
  jit = std::make_unique<Jit>([&](const Tensors& in) { return (*jit)({in[0] + 1}); });
  const std::string said =
      "InvalidArgument: Jit: the function calls the Jit that runs it: call the function itself";
  EXPECT_EQ(refusal([&] { (*jit)({numbers({1})}); }), said);
  EXPECT_EQ(refusal([&] { (*jit)({numbers({1})}); }), said) << "and again";
  jit = std::make_unique<Jit>([&](const Tensors& in) { return (*other)(in); });
  other = std::make_unique<Jit>([&](const Tensors& in) { return (*jit)(in); });
  EXPECT_EQ(refusal([&] { (*jit)({numbers({1})}); }), said) << "by way of another";
}

INSTANTIATE_TEST_SUITE_P(Devices, JitContract, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tuff
