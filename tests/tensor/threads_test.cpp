// Threads that share tensors nobody has realized yet: each value is computed rightly, each random
// number drawn once and each assignment made once, whoever is first.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include <tuff/jit.h>
#include <tuff/optim.h>
#include <tuff/tensor.h>

namespace tuff {
namespace {

constexpr int kThreads = 4;
const TensorOptions kCpu{.device = "CPU"};

// `work` on each of several threads, which begin together.
void on_threads(const std::function<void(int)>& work) {
  std::barrier<> start(kThreads);
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; k++) {
    threads.emplace_back([&, k] {
      start.arrive_and_wait();
      work(k);
    });
  }
  for (std::thread& t : threads) t.join();
}

std::vector<float> ramp(size_t count, float first) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; i++) out[i] = first + float(i);
  return out;
}

TEST(SharedTensors, AreRealizedByWhoeverComes) {
  for (int round = 0; round < 150; round++) {
    const Tensor x = Tensor::from(ramp(64, float(round)), {8, 8}, kCpu);
    const Tensor twice = x * 2, sum = twice.sum({1}), both = twice + sum.reshape({8, 1});
    std::vector<float> want(64);
    for (size_t i = 0; i < 64; i++) {
      const float row = 2 * (8 * (float(round) + float(i / 8 * 8)) + 28);
      want[i] = 2 * (float(round) + float(i)) + row;
    }
    std::vector<std::vector<float>> got(kThreads), own(kThreads);
    on_threads([&](int k) {
      const auto mine = size_t(k);
      if (k == 1) Tensor::realize({sum, twice});
      const Tensor more = both + float(k);
      if (k == 2) Tensor(twice).realize();
      got[mine] = both.to_vector<float>();
      own[mine] = (more - twice).to_vector<float>();
    });
    for (size_t k = 0; k < kThreads; k++) {
      EXPECT_EQ(got[k], want) << "thread " << k;
      for (size_t i = 0; i < 64; i++)
        EXPECT_EQ(own[k][i], want[i] + float(k) - 2 * (float(round) + float(i)));
    }
    if (HasFailure()) return;
  }
}

TEST(SharedTensors, AssignmentsAreMadeOnce) {
  constexpr int kRounds = 150;
  Tensor w = Tensor::from(ramp(16, 0), {16}, kCpu).realize();
  for (int round = 1; round <= kRounds; round++) {
    const Tensor before = w * 1;
    w.assign(w + 1);
    const Tensor after = w * 2;
    std::vector<std::vector<float>> got(kThreads);
    on_threads([&](int k) {
      const Tensor& first = k % 2 ? w : after;
      const Tensor later = after + w;
      if (k != 3) first.to_vector<float>();
      got[size_t(k)] = (later + before).to_vector<float>();
    });
    for (size_t k = 0; k < kThreads; k++) {
      for (size_t i = 0; i < 16; i++)
        EXPECT_EQ(got[k][i], 3 * float(int(i) + round) + float(int(i) + round - 1))
            << "thread " << k << " round " << round;
    }
    EXPECT_EQ(w.to_vector<float>(), ramp(16, float(round)));
    if (HasFailure()) return;
  }
}

TEST(SharedTensors, WritesToViewsAreMadeOnce) {
  for (int round = 0; round < 50; round++) {
    const Tensor w = Tensor::zeros({4, 4}, kCpu).realize();
    std::vector<Tensor> rows = w.unbind(0);
    for (size_t i = 0; i < 4; i++) rows[i] += float(i + 1);
    Tensor column = w.T()[0];
    column *= 2;
    std::vector<std::vector<float>> got(kThreads);
    on_threads([&](int k) {
      const auto mine = size_t(k);
      if (k % 2 == 1) rows[mine].to_vector<float>();
      got[mine] = (k < 2 ? w.sum({1}) : column * 2.5).to_vector<float>();
    });
    for (const std::vector<float>& sums : got)
      EXPECT_EQ(sums, (std::vector<float>{5, 10, 15, 20})) << "round " << round;
  }
}

TEST(SharedTensors, RandomNumbersAreDrawnOnce) {
  constexpr int kDraws = 30;
  const auto draw = [] { return Tensor::rand({16}, kCpu); };
  Tensor::manual_seed(5);
  std::vector<std::vector<float>> want;
  for (int i = 0; i < kThreads * kDraws; i++) want.push_back(draw().to_vector<float>());
  for (int round = 0; round < 5; round++) {
    Tensor::manual_seed(5);
    std::vector<std::vector<std::vector<float>>> by_thread(kThreads);
    on_threads([&](int k) {
      for (int i = 0; i < kDraws; i += 2) {
        const Tensor one = draw(), other = draw();
        for (const Tensor& t : {other, one}) by_thread[size_t(k)].push_back(t.to_vector<float>());
      }
    });
    std::vector<std::vector<float>> got;
    for (const auto& mine : by_thread) got.insert(got.end(), mine.begin(), mine.end());
    std::sort(got.begin(), got.end());
    std::vector<std::vector<float>> sorted = want;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(got, sorted);
    if (HasFailure()) return;
  }
}

// Losses of a few captured and replayed steps.
std::vector<double> train(int seed) {
  const Tensor input = Tensor::from(ramp(16, float(seed)), {4, 4}, kCpu) / 16;
  Tensor weight = (Tensor::from(ramp(8, 1), {4, 2}, kCpu) / 8).realize().set_requires_grad();
  optim::SGD optimizer({weight}, {.lr = 0.01});
  Jit step([&](const std::vector<Tensor>& in) {
    const Tensor loss = in[0].matmul(weight).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return std::vector<Tensor>{loss};
  });
  std::vector<double> losses;
  const Tensor given = (input + 0).realize();
  for (int i = 0; i < 6; i++) losses.push_back(step({given})[0].item());
  return losses;
}

TEST(ThreadsOfTheirOwn, TrainAsOneDoes) {
  std::vector<std::vector<double>> want;
  for (int k = 0; k < kThreads; k++) want.push_back(train(k));
  for (int round = 0; round < 20; round++) {
    std::vector<std::vector<double>> got(kThreads);
    on_threads([&](int k) { got[size_t(k)] = train(k); });
    EXPECT_EQ(got, want);
    if (HasFailure()) return;
  }
}

TEST(ThreadsOfTheirOwn, AStepIsCapturedWithoutTheOthersAssignments) {
  Tensor w = Tensor::from(ramp(4, 0), {4}, kCpu).realize();
  const Tensor given = Tensor::from(ramp(4, 0), {4}, kCpu).realize();
  std::vector<float> doubled;
  std::thread other([&] {
    Tensor own = Tensor::from(ramp(4, 0), {4}, kCpu).realize();
    Jit step([&](const std::vector<Tensor>& in) {
      own.assign(own + in[0]);
      return std::vector<Tensor>{in[0] * 2};
    });
    step({given});
    std::thread([&] { w.assign(w + 1); }).join();
    for (int i = 0; i < 3; i++) step({given});
    doubled = own.to_vector<float>();
  });
  other.join();
  EXPECT_EQ(doubled, (std::vector<float>{0, 5, 10, 15}));
  EXPECT_EQ(w.to_vector<float>(), ramp(4, 1));
}

}  // namespace
}  // namespace tuff
