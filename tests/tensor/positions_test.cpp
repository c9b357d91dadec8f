// One rule for positions: one outside is an IndexError wherever the host knows the values, and
// without waiting for a device; what devices have computed picks zeros (engine/bounds_test has what
// TUFF_CHECK_OOB adds).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff {
namespace {

using indexing::Slice;
using ::testing::HasSubstr;
using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;

// What an IndexError says, or "".
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.kind(), "IndexError");
    return e.what();
  }
  return "";
}

class Positions : public ::testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {.dtype = t, .device = GetParam()}; }
  Tensor ints(const Ints& v, const Sizes& s) const { return Tensor::from(v, s, on()); }
  Tensor rows() const { return Tensor::arange(0, 12, 1, on()).reshape({4, 3}); }
};

TEST_P(Positions, EveryFunctionNamesItselfValuePlaceAndRange) {
  const Tensor x = rows(), at = ints({0, 3, 4, 1}, {2, 2}), flat = ints({0, 4}, {2});
  EXPECT_EQ(error_of([&] { Tensor::embedding(x, at); }),
            "embedding: index 4 at (1, 0) is outside 0..3");
  EXPECT_EQ(error_of([&] { x.index_select(0, flat); }),
            "index_select: index 4 at (1,) is outside -4..3");
  EXPECT_EQ(error_of([&] { x.index_select(1, ints({3}, {})); }),
            "index_select: index 3 is outside -3..2");
  EXPECT_EQ(error_of([&] { x.gather(0, at); }), "gather: index 4 at (1, 0) is outside -4..3");
  EXPECT_EQ(error_of([&] { x.take(ints({11, -12, 12}, {3})); }),
            "take: index 12 at (2,) is outside -12..11");
  EXPECT_EQ(error_of([&] { x.index({flat}); }), "index: index 4 at (1,) is outside -4..3");
  EXPECT_EQ(error_of([&] { x.index({Slice(), ints({-3, -4}, {2})}); }),
            "index: index -4 at (1,) is outside -3..2");
  EXPECT_EQ(error_of([&] { x.index_put({flat}, 1); }),
            "index_put: index 4 at (1,) is outside -4..3");
  EXPECT_EQ(error_of([&] { at.one_hot(4); }), "one_hot: class 4 at (1, 0) is outside 0..3");
  EXPECT_EQ(error_of([&] { x.cross_entropy(ints({0, 2, 3, 1}, {4})); }),
            "cross_entropy: class 3 at (2,) is outside 0..2 and is not ignore_index -100");
  EXPECT_EQ(error_of([&] { Tensor::empty({0, 3}, on()).index({ints({0}, {1})}); }),
            "index: index 0 at (0,) is outside an axis without elements");
}

TEST_P(Positions, NegativeOnesCountFromTheEnd) {
  const Tensor x = rows(), last = ints({-1}, {1});
  EXPECT_EQ(x.index({last}).to_vector<float>(), (Floats{9, 10, 11}));
  EXPECT_EQ(x.take(last).to_vector<float>(), (Floats{11}));
  EXPECT_EQ(x.index_select(0, last).to_vector<float>(), (Floats{9, 10, 11}));
  EXPECT_EQ(x.gather(0, last.reshape({1, 1})).to_vector<float>(), (Floats{9}));
  EXPECT_THAT(error_of([&] { x.gather(0, ints({-5}, {1, 1})); }), HasSubstr("-5 at (0, 0)"));
  // Classes have no end.
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, last); }), HasSubstr("-1 at (0,)"));
  EXPECT_THAT(error_of([&] { last.one_hot(3); }), HasSubstr("-1 at (0,)"));
}

TEST_P(Positions, OnlyTheIgnoredClassIsIgnored) {
  const Tensor x = rows();
  const auto loss = [&](const Ints& classes, int64_t ignored) {
    return error_of([&] { x.cross_entropy(ints(classes, {4}), {}, ignored); });
  };
  EXPECT_EQ(loss({0, -100, 2, -100}, -100), "");
  EXPECT_EQ(loss({-100, -100, -100, -100}, -100), "");
  EXPECT_EQ(loss({255, 1, 255, 2}, 255), "");
  EXPECT_EQ(loss({-7, 1, 0, 2}, -7), "");
  EXPECT_THAT(loss({0, -100, -1, 2}, -100), HasSubstr("class -1 at (2,)"));
  EXPECT_THAT(loss({-101, -100, 1, 2}, -100), HasSubstr("class -101 at (0,)"));
  EXPECT_THAT(loss({0, -100, 2, 3}, -100), HasSubstr("class 3 at (3,)"));
  EXPECT_THAT(loss({255, 254, 255, 2}, 255), HasSubstr("class 254 at (1,)"));
}

TEST_P(Positions, AreCheckedWithoutTheDevice) {
  const Tensor x = rows().realize(), at = ints({3, 0, -100, 1}, {4});
  const uint64_t scheduled = engine::counters().schedule_ns, submits = engine::counters().submits;
  x.cross_entropy(ints({2, 0, -100, 1}, {4}));
  x.index({ints({3, -4}, {2})});
  Tensor::embedding(x, at.slice(0, 0, 2));
  EXPECT_NE(error_of([&] { Tensor::embedding(x, at); }), "");
  EXPECT_EQ(engine::counters().schedule_ns, scheduled);
  EXPECT_EQ(engine::counters().submits, submits);
}

TEST_P(Positions, PartsAndCopiesOfWhatIsKnownAreKnown) {
  const Tensor x = rows(), at = ints({0, 9, 3, 1, -5, 2}, {2, 3});
  EXPECT_EQ(Tensor::embedding(x, at.slice(1, 2, 3)).to_vector<float>(),
            (Floats{9, 10, 11, 6, 7, 8}));
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at.select(0, 0)); }), HasSubstr("9 at (1,)"));
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at.T().flip({0})); }), HasSubstr("9 at (1, 0)"));
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at + 1); }), HasSubstr("10 at (0, 1)"));
  const Tensor wide = at.cast(DType::I64);
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, wide); }), HasSubstr("9 at (0, 1)"));
  Tensor copy = (at.slice(1, 1, 2) + 0).realize();
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, copy); }), HasSubstr("9 at (0, 0)"));
  Tensor there = Tensor::from(Ints{1, 4}, {2}, {.device = "CPU"}).to(GetParam());
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, there); }), HasSubstr("4 at (1,)"));
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, there.realize()); }), HasSubstr("4 at (1,)"));
}

TEST_P(Positions, NumbersAndRangesAreKnown) {
  const Tensor x = rows();
  EXPECT_EQ(error_of([&] { x.index_select(0, Tensor::arange(0, 4, 1, on(DType::I32))); }), "");
  EXPECT_THAT(error_of([&] { x.index_select(0, Tensor::arange(1, 5, 1, on(DType::I32))); }),
              HasSubstr("4 at (3,)"));
  EXPECT_THAT(error_of([&] { x.index_select(0, Tensor::full({2}, 7, on(DType::I64))); }),
              HasSubstr("7 at (0,)"));
}

// Where the device has computed them, and nobody has asked for TUFF_CHECK_OOB.
TEST_P(Positions, ComputedOnesOutsidePickZerosAndPutNothing) {
  const Tensor x = Tensor::from({1, 2, 3}, {3}, on());
  const Tensor at = Tensor::from({5.f, -1.f, -4.f, 2.f}, {4}, on()).cast(DType::I32);
  EXPECT_EQ(x.index({at}).to_vector<float>(), (Floats{0, 3, 0, 3}));
  EXPECT_EQ(x.take(at).to_vector<float>(), (Floats{0, 3, 0, 3}));
  EXPECT_EQ(x.gather(0, at).to_vector<float>(), (Floats{0, 3, 0, 3}));
  const Tensor m = x.unsqueeze(0).expand({2, 3}).contiguous();
  const Tensor row = Tensor::from({0.f, 2.f}, {2}, on()).cast(DType::I32),
               column = Tensor::from({3.f, 1.f}, {2}, on()).cast(DType::I32);
  EXPECT_EQ(m.index({row, column}).to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(x.index_put({at.slice(0, 0, 3)}, Tensor::from({5, 6, 7}, {3}, on())).to_vector<float>(),
            (Floats{1, 2, 6}));
}

TEST_P(Positions, WhatIsWrittenLaterCounts) {
  const Tensor x = rows();
  Tensor at = ints({0, 9}, {2});
  const Ints good{3, 1}, bad{0, 4};
  at.copy_from(good.data(), sizeof(int32_t) * 2);
  EXPECT_EQ(Tensor::embedding(x, at).slice(1, 0, 1).to_vector<float>(), (Floats{9, 3}));
  at.copy_from(bad.data(), sizeof(int32_t) * 2);
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at); }), HasSubstr("4 at (1,)"));
  at.assign(Tensor::from({2.f, 1.f}, {2}, on()).cast(DType::I32)).realize();
  EXPECT_EQ(Tensor::embedding(x, at).slice(1, 0, 1).to_vector<float>(), (Floats{6, 3}));
  at.assign(ints({1, 5}, {2})).realize();
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at); }), HasSubstr("5 at (1,)"));
  Tensor part = ints({0, 1, 2, 8}, {4});
  part.index_put_({Slice(3)}, 3);
  part.realize();
  EXPECT_EQ(error_of([&] { Tensor::embedding(x, part); }), "");
}

TEST_P(Positions, MemoryThatWasHandedOutIsNotKnown) {
  if (GetParam() != "CPU") GTEST_SKIP() << "data_ptr() is the CPU's";
  const Tensor x = rows(), at = ints({0, 9}, {2});
  static_cast<int32_t*>(at.data_ptr())[1] = 2;
  EXPECT_EQ(Tensor::embedding(x, at).slice(1, 0, 1).to_vector<float>(), (Floats{0, 6}));
  Ints memory{0, 9};
  const Tensor over = Tensor::from_blob(memory.data(), {2}, {}, on(DType::I32));
  EXPECT_EQ(error_of([&] { Tensor::embedding(x, over); }), "");
}

// Blocks that values are looked at in, and the most that are looked at.
TEST_P(Positions, ManyValues) {
  const Tensor x = rows();
  const auto bytes = [&](int64_t count) {
    std::vector<uint8_t> values(size_t(count), 3);
    values[size_t(count) - 2] = 9;
    return Tensor::from(values, {count}, on());
  };
  const int64_t most = 1 << 20;
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, bytes(most)); }), HasSubstr("9 at (1048574,)"));
  EXPECT_EQ(error_of([&] { Tensor::embedding(x, bytes(most + 1)); }), "") << "pictures, rather";
  Ints values(100'000, 2);
  EXPECT_EQ(error_of([&] { Tensor::embedding(x, ints(values, {100'000})); }), "");
  values[70'000] = -100;
  const Tensor at = ints(values, {100'000});
  EXPECT_EQ(error_of([&] { Tensor::empty({100'000, 3}, on()).cross_entropy(at); }), "");
  EXPECT_THAT(error_of([&] { Tensor::embedding(x, at); }), HasSubstr("-100 at (70000,)"));
}

TEST_P(Positions, ReplaysCheckTheirArguments) {
  const Tensor x = rows();
  Jit step([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{Tensor::embedding(x, in[0]).sum(),
                               x.cross_entropy(in[1].slice(0, 0, 4))};
  });
  const Tensor classes = ints({0, 2, -100, 1, 9}, {5}).realize();
  for (int i = 0; i < 4; i++)
    EXPECT_EQ(step({ints({1, 2}, {2}), classes})[0].item(), 3 + 4 + 5 + 6 + 7 + 8);
  ASSERT_TRUE(step.captured());
  const uint64_t replays = step.stats().replays;
  EXPECT_EQ(error_of([&] { step({ints({1, 4}, {2}), classes}); }),
            "embedding: index 4 at (1,) is outside 0..3");
  EXPECT_EQ(error_of([&] { step({ints({1, 1}, {2}), ints({0, 3, 1, 1, 1}, {5})}); }),
            "cross_entropy: class 3 at (1,) is outside 0..2 and is not ignore_index -100");
  EXPECT_EQ(step.stats().replays, replays) << "nothing ran";
  EXPECT_EQ(step({ints({3, 3}, {2}), classes})[0].item(), 60);
}

// The same tensors as at the replay before, with other contents.
TEST_P(Positions, ReplaysCheckWhatIsCopiedIntoTheirArguments) {
  const Tensor x = rows();
  Tensor argument = ints({1, 2}, {2}).realize(), outside = ints({0}, {1}).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{
        Tensor::embedding(x, in[0]).sum() + Tensor::embedding(x, outside).sum()};
  });
  for (int i = 0; i < 5; i++) EXPECT_EQ(step({argument})[0].item(), 33 + 3) << i;
  const auto write = [](Tensor& t, const Ints& values) {
    t.copy_from(values.data(), values.size() * sizeof(values[0]));
  };
  for (int i = 0; i < 2; i++) {
    write(argument, {3, 4});
    for (int again = 0; again < 2; again++)
      EXPECT_EQ(error_of([&] { step({argument}); }), "embedding: index 4 at (1,) is outside 0..3");
    write(argument, {3, 3});
    EXPECT_EQ(step({argument})[0].item(), 60 + 3);
    write(outside, {-1});
    EXPECT_EQ(error_of([&] { step({argument}); }), "embedding: index -1 at (0,) is outside 0..3");
    write(outside, {0});
    EXPECT_EQ(step({argument})[0].item(), 60 + 3);
  }
}

// Memory that a replay has written is no longer what the host gave.
TEST_P(Positions, ReplaysForgetWhatTheyWrite) {
  const Tensor x = rows();
  Tensor state = ints({9}, {1});
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor given = in[0];
    given.assign(in[0] - 8);
    given.realize();
    state.assign(in[0].slice(0, 0, 1) * 0 + 1);
    return std::vector<Tensor>{Tensor::embedding(x, given).sum()};
  });
  for (int i = 0; i < 4; i++) {
    Tensor at = ints({9, 10}, {2});
    EXPECT_EQ(step({at})[0].item(), 3 + 4 + 5 + 6 + 7 + 8);
    EXPECT_EQ(Tensor::embedding(x, at).slice(1, 0, 1).to_vector<float>(), (Floats{3, 6})) << i;
    EXPECT_EQ(Tensor::embedding(x, state).slice(1, 0, 1).to_vector<float>(), (Floats{3})) << i;
  }
}

// A part of more than the host has room for is not computed to look at it.
TEST_P(Positions, PartsOfHugeRangesAreLeftToTheDevice) {
  const Tensor some = Tensor::arange(0, int64_t(1) << 42, 1, {DType::I64, GetParam()}).slice(0, 0, 6);
  const Tensor table = Tensor::ones({4}, on());
  EXPECT_EQ(error_of([&] { table.take(some); }), "");
}

// Through every integer dtype and some movement: an error if, and only if, a value is outside.
TEST_P(Positions, RandomOnesAreWhatALoopSays) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  const DType dtypes[] = {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32};
  int outside = 0;
  for (int round = 0; round < 60; round++) {
    const int n = 1 + below(40), extent = 1 + below(6), count = 6;
    Ints values(count);
    for (int& v : values) v = below(40) == 0 ? below(90) : below(extent);
    const int begin = below(count), end = begin + 1 + below(count - begin);
    const Tensor given = ints(values, {count}).cast(dtypes[below(6)]),
                 at = (below(2) ? given.contiguous().realize() : given).slice(0, begin, end);
    const bool wrong = std::any_of(values.begin() + begin, values.begin() + end,
                                   [&](int v) { return v >= extent; });
    outside += wrong;
    const Tensor table = Tensor::ones({extent, n}, on());
    EXPECT_EQ(error_of([&] { Tensor::embedding(table, at); }) != "", wrong) << round;
  }
  EXPECT_GT(outside, 3);
}

INSTANTIATE_TEST_SUITE_P(Devices, Positions, ::testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff
