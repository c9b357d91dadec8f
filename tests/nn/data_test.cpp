// Loaders: what is in batches, their order, threads, errors.
#include <gtest/gtest.h>

#include <tuff/data.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace tuff::data::tests {
namespace {

const TensorOptions kCpu{.device = "CPU"};
using Floats = std::vector<float>;

std::shared_ptr<const Dataset> numbers(int64_t count) {
  const Tensor x = Tensor::arange(0, count * 2, 1, kCpu).reshape({count, 2});
  return std::make_shared<TensorDataset>(
      std::vector<Tensor>{x, Tensor::arange(0, count, 1, {DType::I32, "CPU"})});
}

std::vector<int32_t> labels(DataLoader& loader) {
  std::vector<int32_t> out;
  for (const Batch& batch : loader)
    for (const int32_t y : batch.at(1).to_vector<int32_t>()) out.push_back(y);
  return out;
}

TEST(Loaders, GiveRowsInOrder) {
  for (const int64_t workers : {0, 2}) {
    DataLoader loader(numbers(5), {.batch_size = 2, .num_workers = workers, .device = "CPU"});
    EXPECT_EQ(loader.size(), 3);
    std::vector<Batch> got;
    for (const Batch& b : loader) got.push_back(b);
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[1][0].to_vector<float>(), (Floats{4, 5, 6, 7}));
    EXPECT_EQ(got[2][0].sizes(), (Sizes{1, 2}));
    EXPECT_EQ(got[2][1].dtype(), DType::I32);
    EXPECT_TRUE(got[0][0].is_realized());
  }
  DataLoader whole(numbers(5), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_EQ(labels(whole), (std::vector<int32_t>{0, 1, 2, 3}));
  DataLoader none(numbers(0), {});
  EXPECT_TRUE(labels(none).empty());
}

TEST(Loaders, ShuffleBySeedAndEpoch) {
  const auto loader = [](uint64_t seed, int64_t workers) {
    return DataLoader(numbers(50), {.batch_size = 7, .shuffle = true, .seed = seed,
                                    .num_workers = workers});
  };
  DataLoader one = loader(3, 0), two = loader(3, 3), other = loader(4, 0), resumed = loader(3, 0);
  const std::vector<int32_t> first = labels(one), second = labels(one);
  std::vector<int32_t> sorted = first;
  std::ranges::sort(sorted);
  for (int32_t i = 0; i < 50; i++) EXPECT_EQ(sorted[size_t(i)], i);
  EXPECT_NE(first, sorted);
  EXPECT_NE(first, second);
  EXPECT_EQ(labels(two), first);
  EXPECT_EQ(labels(two), second);
  EXPECT_NE(labels(other), first);
  resumed.set_epoch(1);
  EXPECT_EQ(labels(resumed), second);
}

// Says who reads, and fails at one item.
class Watched : public Dataset {
 public:
  explicit Watched(int64_t broken = -1) : broken_(broken) {}
  int64_t size() const override { return 12; }
  Batch batch(std::span<const int64_t> indices) const override {
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
    reading_++;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (indices[0] == broken_) throw IoError("broken");
    return {Tensor::from({float(indices[0])}, {1}, kCpu)};
  }
  std::set<std::thread::id> threads() const { return threads_; }
  int reading() const { return reading_; }

 private:
  int64_t broken_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> threads_;
  mutable std::atomic<int> reading_{0};
};

TEST(Loaders, ReadInThreadsOfTheirOwn) {
  const auto dataset = std::make_shared<Watched>();
  DataLoader loader(dataset, {.num_workers = 3});
  int count = 0;
  for (const Batch& b : loader) {
    EXPECT_EQ(b[0].item(), count);
    count++;
    EXPECT_LE(dataset->reading(), count + 3);
  }
  EXPECT_EQ(count, 12);
  EXPECT_FALSE(dataset->threads().contains(std::this_thread::get_id()));
}

TEST(Loaders, ThrowWhereTheBatchWouldCome) {
  for (const int64_t workers : {0, 2}) {
    DataLoader loader(std::make_shared<Watched>(4), {.num_workers = workers});
    int count = 0;
    EXPECT_THROW(
        {
          for (const Batch& b : loader) count += int(b.size());
        },
        IoError);
    EXPECT_EQ(count, 4);
  }
}

TEST(Loaders, SayWhatIsWrong) {
  EXPECT_THROW(DataLoader(nullptr, {}), InvalidArgument);
  EXPECT_THROW(DataLoader(numbers(2), {.batch_size = 0}), InvalidArgument);
  EXPECT_THROW(DataLoader(numbers(2), {.num_workers = -1}), InvalidArgument);
  EXPECT_THROW(TensorDataset({}), InvalidArgument);
  EXPECT_THROW(TensorDataset({Tensor::ones({2}, kCpu), Tensor::ones({3}, kCpu)}), ShapeError);
  EXPECT_THROW(TensorDataset({Tensor::ones({}, kCpu)}), ShapeError);
  const std::vector<int64_t> outside{2};
  EXPECT_THROW(numbers(2)->batch(outside), IndexError);
}

}  // namespace
}  // namespace tuff::data::tests
