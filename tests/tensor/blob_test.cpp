// Tensors over memory of somebody else: what is shared, when it goes back, what is refused.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include <tuff/jit.h>
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
const TensorOptions kCpu{.device = "CPU"};

// Memory that counts how often it was given back.
struct Lent {
  explicit Lent(size_t count) : values(count) { std::iota(values.begin(), values.end(), 0.0f); }
  BlobOptions options(std::vector<int64_t> strides = {}) {
    return {.strides = std::move(strides), .deleter = [this](void* p) {
              EXPECT_EQ(p, given);
              returned++;
            }};
  }
  Tensor tensor(const Sizes& sizes, std::vector<int64_t> strides = {}, size_t at = 0) {
    given = &values[at];
    return Tensor::from_blob(given, sizes, options(std::move(strides)), kCpu);
  }
  alignas(64) Floats values;
  float* given = nullptr;
  std::atomic<int> returned{0};
};

// Lets go of what the device has finished with: its next tensor that is read does.
void settle() { (void)(Tensor::ones({1}, kCpu) + 1).item(); }

TEST(Blob, SharesMemoryBothWays) {
  Lent lent(6);
  Tensor t = lent.tensor({2, 3});
  EXPECT_TRUE(t.is_realized());
  EXPECT_EQ(t.data_ptr(), lent.values.data());
  EXPECT_EQ((t * 2).to_vector<float>(), (Floats{0, 2, 4, 6, 8, 10}));
  lent.values[5] = 50;
  EXPECT_EQ((t * 2).to_vector<float>(), (Floats{0, 2, 4, 6, 8, 100}));
  t.assign(t + 1);
  EXPECT_EQ(t.data_ptr(), lent.values.data());
  EXPECT_EQ(lent.values, (Floats{1, 2, 3, 4, 5, 51}));
  const Floats sevens(6, 7);
  t.copy_from(sevens.data(), 24);
  EXPECT_EQ(lent.values, sevens);
  EXPECT_EQ(lent.returned, 0);
  t = Tensor();
  settle();
  EXPECT_EQ(lent.returned, 1);
}

TEST(Blob, GoesBackWithTheLastOfTensorsAndPendingGraphs) {
  Lent lent(4);
  Tensor t = lent.tensor({4});
  Tensor view = t.reshape({2, 2}), pending = view.T() + 1;
  t = Tensor();
  settle();
  EXPECT_EQ(lent.returned, 0);
  view = Tensor();
  settle();
  EXPECT_EQ(lent.returned, 0) << "a graph that nobody realized still reads it";
  pending.realize();
  settle();
  EXPECT_EQ(lent.returned, 1) << "what was computed is memory of its own";
  EXPECT_EQ(pending.to_vector<float>(), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(lent.returned, 1);
}

TEST(Blob, GoesBackWithoutADeleter) {
  Floats values{1, 2};
  EXPECT_EQ(Tensor::from_blob(values.data(), {2}, {}, kCpu).sum().item(), 3);
}

// A kernel that takes a while reads memory whose tensor is gone; giving the memory back takes it
// away, so that a late access would fault.
TEST(Blob, WaitsForWorkInFlight) {
  const int64_t n = 512;
  const size_t bytes = size_t(n * n) * 4;
  for (int round = 0; round < 4; round++) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::fill_n(static_cast<float*>(memory), n * n, 0.5f);
    std::atomic<int> returned{0};
    const auto take_away = [&returned, bytes](void* p) {
      munmap(p, bytes);
      returned++;
    };
    Tensor out;
    {
      const Tensor t = Tensor::from_blob(memory, {n, n}, {.deleter = take_away}, kCpu);
      out = t.matmul(t).matmul(t);
      out.realize();  // does not wait
    }
    EXPECT_LE(returned, 1);
    EXPECT_EQ(out.sum().item(), double(n) * n * (n * n * 0.125));
    EXPECT_EQ(returned, 1);
  }
}

TEST(Blob, ACapturedGraphHoldsWhatItReads) {
  Lent lent(3);
  Tensor x = Tensor::from({1, 1, 1}, {3}, kCpu);
  {
    Tensor t = lent.tensor({3});
    Jit add([t](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + t}; });
    t = Tensor();
    for (int i = 0; i < 4; i++) {
      lent.values[0] = float(i);
      EXPECT_EQ(add({x})[0].to_vector<float>(), (Floats{float(i) + 1, 2, 3}));
      EXPECT_EQ(lent.returned, 0);
    }
  }
  settle();
  EXPECT_EQ(lent.returned, 1);
}

TEST(Blob, IsAnArgumentOfAJit) {
  std::array<Lent, 4> lent{Lent(3), Lent(3), Lent(3), Lent(3)};
  Jit twice([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; });
  for (Lent& l : lent) {
    l.values[1] = float(&l - lent.data()) + 10;
    EXPECT_EQ(twice({l.tensor({3})})[0].to_vector<float>(), (Floats{0, l.values[1] * 2, 4}));
  }
  // The last arguments are the Jit's until its next call.
  settle();
  EXPECT_EQ(lent[0].returned + lent[1].returned, 2);
  twice({Tensor::from({1, 2, 3}, {3}, kCpu)});
  twice({Tensor::from({1, 2, 3}, {3}, kCpu)});
  settle();
  for (const Lent& l : lent) EXPECT_EQ(l.returned, 1);
}

TEST(Blob, OldReadersSeeWhatWasThereBeforeAnAssign) {
  Lent lent(3);
  Tensor t = lent.tensor({3});
  const Tensor before = t * 10, same = t.reshape({3, 1});
  t.assign(t + 5);
  t.realize();
  EXPECT_EQ(before.to_vector<float>(), (Floats{0, 10, 20}));
  EXPECT_EQ(same.to_vector<float>(), (Floats{0, 1, 2}));
  settle();
  EXPECT_EQ(lent.values, (Floats{5, 6, 7}));
}

TEST(Blob, ReadOnlyMemoryIsNotWritten) {
  const Floats values{1, 2, 3};
  Tensor t = Tensor::from_blob(static_cast<const void*>(values.data()), {3}, {}, kCpu);
  const auto text_of = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(text_of([&] { t.assign(t * 2); }).find("read-only"), std::string::npos);
  EXPECT_NE(text_of([&] { t.copy_from(values.data(), 12); }).find("read-only"), std::string::npos);
  Tensor flat = t.reshape({1, 3});
  EXPECT_THROW(flat.assign(flat * 2), InvalidArgument);
  EXPECT_EQ((t * 2).to_vector<float>(), (Floats{2, 4, 6}));
  Tensor own = (t + 0).realize();
  own.assign(own * 2);
  EXPECT_EQ(own.to_vector<float>(), (Floats{2, 4, 6}));
  EXPECT_EQ(values, (Floats{1, 2, 3}));
}

// Every layout is compared with the elements that its strides name.
TEST(Blob, StridesNameTheElements) {
  struct Case {
    std::vector<int64_t> extents, strides;
    size_t at = 0;
  };
  const std::vector<Case> cases = {
      {{2, 3}, {3, 1}},       {{3, 2}, {1, 3}},
      {{2, 3}, {5, 1}},       {{4}, {3}},
      {{4}, {-3}, 9},         {{2, 3}, {-3, -1}, 5},
      {{2, 3}, {0, 1}},       {{2, 3}, {1, 0}},
      {{3, 3}, {5, 2}},       {{2, 2, 2}, {7, 3, 1}},
      {{2, 2, 2}, {1, 3, 7}}, {{2, 1, 3}, {4, 999, 1}},
      {{2, 3, 2}, {1, 2, 6}}, {{2, 3, 2}, {0, -2, 1}, 4},
      {{1, 1}, {5, 5}},       {{3, 2, 2}, {-8, 3, -1}, 17},
      {{5, 4}, {4, 1}, 3},    {{2, 2}, {11, 4}, 1},
  };
  for (const Case& c : cases) {
    Lent lent(40);
    {
      const Tensor t = lent.tensor(c.extents, c.strides, c.at);
      Floats expected;
      std::vector<int64_t> at(c.extents.size());
      const int64_t count = int64_t(t.numel());
      for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, element = int64_t(c.at);
        for (size_t d = c.extents.size(); d-- > 0; rest /= c.extents[d])
          element += rest % c.extents[d] * c.strides[d];
        expected.push_back(lent.values[size_t(element)]);
      }
      EXPECT_EQ(t.sizes(), Sizes(c.extents));
      EXPECT_EQ(t.to_vector<float>(), expected) << testing::PrintToString(c.strides);
    }
    settle();
    EXPECT_EQ(lent.returned, 1);
  }
}

struct Pages {
  explicit Pages(size_t size) : bytes(size) {
    memory = static_cast<std::byte*>(
        mmap(nullptr, 3 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + bytes, bytes, PROT_READ | PROT_WRITE);
  }
  ~Pages() { munmap(memory, 3 * bytes); }
  std::byte* begin() const { return memory + bytes; }
  std::byte* end() const { return memory + 2 * bytes; }
  size_t bytes;
  std::byte* memory;
};

// Memory between pages that nobody may touch, at its end and at its beginning, at addresses that
// are aligned to an element and to nothing more: kernels touch what is theirs.
TEST(Blob, KernelsStayInsideMemoryOfAnyAlignment) {
  const Pages pages(size_t(sysconf(_SC_PAGESIZE)));
  using Shape = std::vector<int64_t>;
  for (const Shape& s : {Shape{1}, Shape{3}, Shape{17}, Shape{5, 7}, Shape{33, 3}, Shape{8, 64},
                         Shape{2, 3, 29}, Shape{16, 61}}) {
    const int64_t n = std::accumulate(s.begin(), s.end(), int64_t(1), std::multiplies<>());
    for (const bool at_end : {false, true}) {
      auto* p = reinterpret_cast<float*>(at_end ? pages.end() - n * 4 : pages.begin());
      for (int64_t i = 0; i < n; i++) p[i] = float(i % 13) - 6;
      const Floats copy(p, p + n);
      const Tensor own = Tensor::from(copy, s, kCpu);
      Tensor t = Tensor::from_blob(p, s, {}, kCpu);
      const auto same = [&](const char* what, const std::function<Tensor(const Tensor&)>& f) {
        EXPECT_EQ(f(t).to_vector<float>(), f(own).to_vector<float>()) << what;
      };
      same("element-wise", [](const Tensor& x) { return x * 2 + 1; });
      same("sum", [](const Tensor& x) { return x.sum(); });
      same("rows", [](const Tensor& x) { return x.softmax(-1); });
      same("columns", [](const Tensor& x) { return x.sum({0}); });
      same("turned", [](const Tensor& x) {
        return x.flip({0}).permute([&] {
          Axes a(size_t(x.dim()));
          std::iota(a.rbegin(), a.rend(), int64_t(0));
          return a;
        }()) + 1;
      });
      same("padded", [](const Tensor& x) { return x.pad({2, 3}) + x.pad({5, 0}); });
      same("every second", [](const Tensor& x) { return x.slice(-1, {}, {}, 2).contiguous(); });
      same("products", [](const Tensor& x) {
        const Tensor m = x.flatten().reshape({1, -1});
        return m.T().matmul(m);
      });
      t.assign(t.flip({-1}) * 3);
      t.realize();
      t.data_ptr();  // waits
      Floats turned;
      for (int64_t i = 0; i < n; i++) {
        const int64_t last = s.back(), row = i / last;
        turned.push_back(copy[size_t(row * last + last - 1 - i % last)] * 3);
      }
      EXPECT_EQ(Floats(p, p + n), turned);
      settle();
    }
  }
}

// Long transposes are stored past the caches, in whole lines: not where lines do not begin so.
TEST(Blob, TransposesIntoMemoryThatBeginsInsideALine) {
  const int64_t rows = 1024, cols = 4096;
  const size_t n = size_t(rows * cols);
  std::vector<float> memory(n + 64);
  const Tensor source = Tensor::arange(rows * cols).to(DType::F32).to("CPU").reshape({rows, cols});
  for (const size_t inside : {0, 1, 4}) {
    const size_t lead = (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) / 4 % 16;
    float* p = memory.data() + lead + inside;
    std::fill_n(p, n, -1.0f);
    Tensor t = Tensor::from_blob(p, {cols, rows}, {}, kCpu);
    t.assign((source + 1).realize().T());
    t.realize();
    settle();
    for (size_t i = 0; i < n; i += 997)
      ASSERT_EQ(p[i], float(int64_t(i) % rows * cols + int64_t(i) / rows + 1)) << i;
  }
}

TEST(Blob, RefusesWhatItCannotLieOver) {
  Lent lent(8);
  float* p = lent.given = lent.values.data();
  const auto blob = [&](std::vector<int64_t> strides = {}) { return lent.options(strides); };
  EXPECT_THROW(Tensor::from_blob(static_cast<void*>(nullptr), {2}, blob(), kCpu), InvalidArgument);
  EXPECT_THROW(Tensor::from_blob(reinterpret_cast<std::byte*>(p) + 1, {2}, blob(), kCpu),
               InvalidArgument);
  EXPECT_THROW(Tensor::from_blob(p, {2, -1}, blob(), kCpu), ShapeError);
  EXPECT_THROW(Tensor::from_blob(p, {2, 2}, blob({1}), kCpu), ShapeError);
  EXPECT_THROW(Tensor::from_blob(p, {3, 3}, blob({1, 1}), kCpu), ShapeError) << "overlap";
  EXPECT_THROW(Tensor::from_blob(p, {3, 3}, blob({2, 1}), kCpu), ShapeError) << "overlap";
  EXPECT_THROW(Tensor::from_blob(p, {2, 2}, blob({INT64_MIN, 1}), kCpu), ShapeError);
  EXPECT_THROW(Tensor::from_blob(p, {4, 2}, blob({INT64_MAX / 2, 1}), kCpu), ShapeError);
  EXPECT_THROW(Tensor::from_blob(p, {2}, blob(), {.dtype = DType::Void, .device = "CPU"}),
               InvalidArgument);
  EXPECT_THROW(Tensor::from_blob(p, {2}, blob(), {.device = "NOWHERE"}), InvalidArgument);
  EXPECT_THROW(Tensor::from_blob(p, {2}, blob(),
                                 {.dtype = DType::I32, .device = "CPU", .requires_grad = true}),
               InvalidArgument);
  settle();
  EXPECT_EQ(lent.returned, 0) << "memory that was not taken stays its owner's";
  const Tensor none = Tensor::from_blob(static_cast<void*>(nullptr), {0, 3}, {}, kCpu);
  EXPECT_EQ(none.sum().item(), 0);
}

TEST(Blob, GradientsReachIt) {
  Lent lent(3);
  Tensor t = lent.tensor({3});
  t.set_requires_grad();
  (t * t).sum().backward();
  EXPECT_EQ(t.grad().to_vector<float>(), (Floats{0, 2, 4}));
}

TEST(Blob, EveryElementTypeIsSharedAsItIs) {
  for (const DType d :
       {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32,
        DType::I64, DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64}) {
    alignas(8) std::array<std::byte, 24> memory{};
    for (int i = 0; i < 3; i++)
      store_scalar(Scalar::of_int(d, i % 2), &memory[size_t(i) * size_bytes(d)]);
    const Tensor t = Tensor::from_blob(memory.data(), {3}, {}, {.dtype = d, .device = "CPU"});
    EXPECT_EQ(t.cast(DType::F32).to_vector<float>(), (Floats{0, 1, 0})) << name(d);
  }
}

TEST(Blob, ThreadsMakeUseAndLetGo) {
  constexpr int kThreads = 4, kRounds = 50;
  std::atomic<int> returned{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; k++) {
    threads.emplace_back([&returned, k] {
      for (int i = 0; i < kRounds; i++) {
        auto* values = new Floats(100, float(k));
        const auto take_back = [&returned, values](void*) {
          delete values;
          returned++;
        };
        const Tensor t = Tensor::from_blob(values->data(), {100}, {.deleter = take_back}, kCpu);
        const Tensor sum = (t + float(i)).sum();
        EXPECT_EQ(sum.item(), 100.0 * (k + i));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  settle();
  EXPECT_EQ(returned, kThreads * kRounds);
}

class BlobOn : public testing::TestWithParam<std::string> {};

// On another device: a copy, made when it is realized.
TEST_P(BlobOn, IsReadWhenItIsRealized) {
  Lent lent(3);
  lent.given = lent.values.data();
  Tensor t = Tensor::from_blob(lent.given, {3}, lent.options(), {.device = GetParam()});
  EXPECT_EQ(t.device(), GetParam());
  EXPECT_FALSE(t.is_realized());
  lent.values[0] = 9;
  t.realize();
  settle();
  EXPECT_EQ(lent.returned, 1);
  EXPECT_EQ(t.to_vector<float>(), (Floats{9, 1, 2}));
  EXPECT_THROW(t.data_ptr(), InvalidArgument);
  t.assign(t + 1);
  EXPECT_EQ(t.to_vector<float>(), (Floats{10, 2, 3}));
  EXPECT_EQ(lent.values, (Floats{9, 1, 2}));
}

std::vector<std::string> other_devices() {
  std::vector<std::string> all = devices();
  std::erase(all, "CPU");
  return all;
}
// More of files: tests/devices/disk.
TEST(FromFile, IsAFileReadOnlyOrNot) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7};
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("tuff_from_file_{}", getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), std::streamsize(4 * numbers.size()));
  const Tensor t = Tensor::from_file(path, {3, 2}, DType::F32, 4);
  EXPECT_EQ(t.to("CPU").to_vector<float>(), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  std::filesystem::remove(path);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  // A program that runs cannot be opened for writing.
  const std::vector<uint8_t> program =
      Tensor::from_file("/proc/self/exe", {4}, DType::U8).to_vector<uint8_t>();
  EXPECT_EQ(program, (std::vector<uint8_t>{0x7f, 'E', 'L', 'F'}));
}

INSTANTIATE_TEST_SUITE_P(Devices, BlobOn, testing::ValuesIn(other_devices()),
                         [](const auto& info) { return named_by_device(info); });

}  // namespace
}  // namespace tuff::test
