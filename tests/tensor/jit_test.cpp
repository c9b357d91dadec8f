// Results of a Jit: a replay does not overwrite what somebody holds, and uses again what nobody
// does.
#include <gtest/gtest.h>

#include "engine/device.h"
#include "tensor/devices.h"
#include "tensor/impl.h"
#include "tuff/jit.h"

namespace tuff {
namespace {

class JitResults : public testing::TestWithParam<std::string> {
 protected:
  Tensor numbers(std::vector<float> v) const {
    const int64_t n = int64_t(v.size());
    return Tensor::from(v, {n}, {.device = GetParam()});
  }
  static std::vector<float> values(const Tensor& t) {
    std::vector<float> out(size_t(t.numel()));
    t.copy_to(out.data(), out.size() * sizeof(float));
    return out;
  }
  uint64_t live_bytes() const {
    return engine::Device::get(GetParam())->hcq().allocator().stats().live_bytes;
  }
};
using Floats = std::vector<float>;

TEST_P(JitResults, AreKeptForWhoeverHoldsThem) {
  Jit twice(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2, in[0] + 1}; });
  std::vector<std::vector<Tensor>> kept;
  for (int i = 0; i < 8; i++) kept.push_back(twice({numbers({float(i), 10})}));
  ASSERT_TRUE(twice.captured());
  for (int i = 0; i < 8; i++) {
    EXPECT_EQ(values(kept[size_t(i)][0]), (Floats{float(2 * i), 20})) << i;
    EXPECT_EQ(values(kept[size_t(i)][1]), (Floats{float(i + 1), 11})) << i;
  }
}

// Whether memory was given to it before or not.
TEST_P(JitResults, StateThatTheFunctionWritesInPlaceIsKept) {
  using indexing::Ellipsis;
  for (const bool realized : {true, false}) {
    Tensor state = Tensor::zeros({3}, {.device = GetParam()});
    if (realized) state.realize();
    Jit add([&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      Tensor own = in[0] * 2;  // which no later call sees
      own.index_put_({0}, 5);
      state.index_put_({Ellipsis}, state + own);
      return {own};
    });
    for (int i = 0; i < 5; i++) EXPECT_EQ(values(add({numbers({1, 1, 1})})[0]), (Floats{5, 2, 2}));
    EXPECT_EQ(values(state), (Floats{25, 10, 10})) << realized;
  }
}

TEST_P(JitResults, AreKeptForWhatIsStillToBeComputed) {
  Jit square([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * in[0]}; });
  std::vector<Tensor> lazy;
  for (int i = 0; i < 6; i++) {
    const std::vector<Tensor>& out = square({numbers({float(i), 3})});
    lazy.push_back(i % 2 ? out[0] + 0.5 : out[0].reshape({2, 1}).T().slice(1, 0, 1));
  }
  for (int i = 0; i < 6; i++)
    EXPECT_EQ(values(lazy[size_t(i)])[0], float(i * i) + (i % 2 ? 0.5f : 0)) << i;
}

TEST_P(JitResults, MayBeTheNextArguments) {
  Jit step([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] * 2 + in[1], in[1] + 1};
  });
  Tensor h = numbers({1, 2}), n = numbers({0, 0});
  Floats expected_h{1, 2}, expected_n{0, 0};
  for (int i = 0; i < 7; i++) {
    const std::vector<Tensor>& out = step({h, n});
    h = out[0];
    n = out[1];
    for (size_t k = 0; k < 2; k++) {
      expected_h[k] = expected_h[k] * 2 + expected_n[k];
      expected_n[k] += 1;
    }
    EXPECT_EQ(values(h), expected_h) << i;
    EXPECT_EQ(values(n), expected_n) << i;
  }
  // The Jit's own vector, which nobody else holds.
  Jit fold([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 1}; });
  const std::vector<Tensor>* last = &fold({numbers({5})});
  for (int i = 1; i < 6; i++) last = &fold({(*last)[0]});
  EXPECT_EQ(values((*last)[0]), (Floats{11}));
}

TEST_P(JitResults, UseTheSameMemoryAgainWhereNobodyHoldsThem) {
  Jit twice([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; });
  const Tensor x = numbers(Floats(4096, 1.5f));
  for (int i = 0; i < 3; i++) EXPECT_EQ(twice({x})[0].sum().item(), 4096 * 3.0);
  const auto memory = [&] { return detail::buffer_of(twice({x})[0])->span().address(); };
  const uint64_t first = memory(), before = live_bytes();
  for (int i = 0; i < 5; i++) EXPECT_EQ(memory(), first);
  EXPECT_EQ(live_bytes(), before);
}

// One result is made of another one, which is then copied to where it is returned.
TEST_P(JitResults, MayBeComputedFromEachOther) {
  Jit jit([](const std::vector<Tensor>& in) {
    const Tensor product = in[0].reshape({2, 2}).matmul(in[0].reshape({2, 2}));
    return std::vector<Tensor>{product, product.mean(), product.sum({0})};
  });
  std::vector<std::vector<Tensor>> kept;
  for (int i = 0; i < 5; i++) kept.push_back(jit({numbers({1, 2, 3, float(i)})}));
  ASSERT_TRUE(jit.captured());
  for (int i = 0; i < 5; i++) {
    const float n = float(i);
    const Floats product{7, 2 + 2 * n, 3 + 3 * n, 6 + n * n};
    EXPECT_EQ(values(kept[size_t(i)][0]), product);
    EXPECT_EQ(values(kept[size_t(i)][1])[0], (18 + 5 * n + n * n) / 4);
    EXPECT_EQ(values(kept[size_t(i)][2]), (Floats{10 + 3 * n, 8 + 2 * n + n * n}));
  }
}

TEST_P(JitResults, ThatAreStateStayTheTensorTheyAre) {
  Tensor counter = numbers({0});
  counter.realize();
  Jit count([&](const std::vector<Tensor>& in) {
    counter.assign(counter + in[0]);
    return std::vector<Tensor>{counter};
  });
  const Tensor one = numbers({1});
  Tensor held;
  for (int i = 0; i < 5; i++) held = count({one})[0];
  EXPECT_EQ(values(counter), (Floats{5}));
  EXPECT_EQ(values(held), (Floats{5})) << "the tensor that is assigned to, not a copy";
}

INSTANTIATE_TEST_SUITE_P(Devices, JitResults, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tuff
