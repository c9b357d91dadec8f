// Contents of files are read beside other work: realize() returns before they have arrived, queues
// wait for them, and whoever waits for what was made of them is told what went wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/io.h>
#include <tuff/jit.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "engine/device.h"
#include "io/scratch_folder.h"
#include "tensor/impl.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kCount = 1 << 18;

std::vector<float> weight(size_t which) {
  std::vector<float> out(kCount);
  std::iota(out.begin(), out.end(), float(which + 1) * 1000);
  return out;
}

// Stops what has been read on its way to whoever asked, or fails it.
class Gate {
 public:
  Gate() {
    os::transfers().tamper = [this](const os::Request&, int64_t result) {
      std::unique_lock lock(mutex_);
      waiting_++;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_; });
      return error_ ? -error_ : result;
    };
  }
  ~Gate() {
    open();
    engine::wait_for_reads();
    os::transfers().tamper = nullptr;
  }
  void open(int64_t error = 0) {
    std::lock_guard lock(mutex_);
    open_ = true;
    error_ = error;
    changed_.notify_all();
  }
  void close() {
    std::lock_guard lock(mutex_);
    open_ = false;
    waiting_ = 0;
  }
  // Until something has been read that may not pass.
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return waiting_ > 0; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
  int64_t error_ = 0;
};

// Devices whose memory the host reaches and whose queues can wait.
std::vector<std::string> devices_to_test() {
  std::vector<std::string> out;
  const std::string given = system_env("TUFF_TEST_DEVICES");
  for (const devices::Candidate& c : engine::list_devices()) {
    if (!given.empty() ? c.name != given : !c.usable || c.rank == 0) continue;
    const auto device = engine::Device::get(c.name);
    const Ref<engine::Buffer> b = engine::Buffer::make(device, DType::F32, 4);
    if (device->read_signal() && b->span().host()) out.push_back(c.name);
  }
  return out;
}

class Overlap : public testing::TestWithParam<std::string> {
 protected:
  Overlap() {
    TensorDict out;
    for (size_t i = 0; i < 6; i++)
      out.set(fmt::format("w{}", i), Tensor::from<float>(weight(i), {kCount}, {.device = "CPU"}));
    save(path, out);
    dict = load(path, {.device = GetParam()});
    // Kernels are compiled, so that nothing below waits for that.
    other = Tensor::full({kCount}, 2.0f, {.device = GetParam()}).realize();
    EXPECT_EQ((other + 1).sum().item(), 3 * kCount);
    EXPECT_EQ(plus_one(other), std::vector<float>(kCount, 3));
  }
  static std::vector<float> plus_one(const Tensor& t) { return (t + 1).to_vector<float>(); }
  static std::vector<float> plus_one(std::vector<float> v) {
    for (float& x : v) x += 1;
    return v;
  }
  static std::string refused(const Tensor& t) {
    return error_text<IoError>([&] { t.to_vector<float>(); });
  }

  ScratchFolder folder;
  const std::string path = folder.path("w.safetensors");
  TensorDict dict;
  Tensor other;
  Gate gate;
};
INSTANTIATE_TEST_SUITE_P(Devices, Overlap, testing::ValuesIn(devices_to_test()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

TEST_P(Overlap, RealizeReturnsAndOtherWorkGoesOn) {
  gate.close();
  Tensor w = dict["w0"];
  w.realize();
  EXPECT_TRUE(w.is_realized());
  gate.wait_for_somebody();
  EXPECT_EQ((other + 1).sum().item(), 3 * kCount) << "computed while the bytes are on their way";
  EXPECT_EQ(plus_one(other), std::vector<float>(kCount, 3));
  Tensor y = (w + 1).realize();  // neither does what needs them hold anybody up
  gate.open();
  EXPECT_EQ(y.to_vector<float>(), plus_one(weight(0)));
  EXPECT_EQ(w.to_vector<float>(), weight(0));
}

TEST_P(Overlap, SeveralListsOnTheirWay) {
  gate.close();
  std::vector<Tensor> sums;
  for (size_t i = 0; i < 6; i++) sums.push_back((dict[fmt::format("w{}", i)] + 1).realize());
  gate.open();
  for (size_t i = 0; i < 6; i++) EXPECT_EQ(sums[i].to_vector<float>(), plus_one(weight(i)));
}

TEST_P(Overlap, ReplaysTakeWhatIsOnItsWay) {
  Jit step([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 1}; });
  for (int i = 0; i < 3; i++) step({other});
  Tensor w = dict["w2"];
  gate.close();
  w.realize();
  const Tensor y = step({w})[0];
  gate.open();
  EXPECT_EQ(y.to_vector<float>(), plus_one(weight(2)));
}

TEST_P(Overlap, WritesComeAfterWhatIsRead) {
  Tensor a = dict["w0"], b = dict["w1"];
  gate.close();
  Tensor::realize({a, b});
  Tensor old = a * 1;
  a.assign(other);
  a.realize();
  std::thread opens([&] {
    gate.wait_for_somebody();
    gate.open();
  });
  const std::vector<float> ones(kCount, 1);
  b.copy_from(ones.data(), ones.size() * 4);
  opens.join();
  EXPECT_EQ(b.to_vector<float>(), ones);
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(kCount, 2));
  EXPECT_EQ(old.to_vector<float>(), weight(0));
}

TEST_P(Overlap, AReadThatFailsIsToldToWhoeverWaitsAndTriedAgain) {
  gate.close();
  Tensor w = dict["w3"];
  w.realize();
  Tensor y = (w + 1).realize();
  const Tensor z = y.sum();
  gate.open(EIO);
  EXPECT_THAT(refused(y), AllOf(HasSubstr(path), HasSubstr("at byte"), HasSubstr("output error"),
                                HasSubstr("the disk or the network below it has failed")));
  EXPECT_THAT(error_text<IoError>([&] { z.item(); }), HasSubstr(path));
  EXPECT_THAT(refused(w), HasSubstr(path));
  EXPECT_FALSE(w.is_realized());
  EXPECT_EQ((other + 1).sum().item(), 3 * kCount) << "the device is as it was";
  gate.open();
  EXPECT_EQ(w.to_vector<float>(), weight(3)) << "the next use reads again";
  EXPECT_EQ(plus_one(w), plus_one(weight(3)));
  EXPECT_THAT(refused(y), HasSubstr(path)) << "what was made of it is not made again";
}

TEST_P(Overlap, ATensorMayGoWhileItIsRead) {
  gate.close();
  Tensor y;
  {
    Tensor w = dict["w4"], unused = dict["w5"];
    dict = {};
    Tensor::realize({w, unused});
    y = (w + 1).realize();
    gate.wait_for_somebody();
    gate.open();
  }
  EXPECT_EQ(y.to_vector<float>(), plus_one(weight(4)));
}

TEST_P(Overlap, ASlowDiskIsNoLostDevice) {
  ::setenv("TUFF_TIMEOUT_MS", "300", 1);
  gate.close();
  Tensor y = (dict["w0"] + 1).realize();
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    gate.open();
  });
  EXPECT_EQ(y.to_vector<float>(), plus_one(weight(0)));
  opens.join();
  ::unsetenv("TUFF_TIMEOUT_MS");
}

TEST_P(Overlap, ThreadsWaitForTheSameRead) {
  gate.close();
  const Tensor w = dict["w1"];
  Tensor(w).realize();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      if (t % 2)
        EXPECT_EQ(w.to_vector<float>(), weight(1));
      else
        EXPECT_EQ(plus_one(w), plus_one(weight(1)));
    });
  gate.wait_for_somebody();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  gate.open();
  for (std::thread& t : threads) t.join();
}

TEST_P(Overlap, TheFileIsClosedOnceItsTensorsAreRead) {
  const auto is_open = [&] {
    for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(e.path(), gone) == path) return true;
    }
    return false;
  };
  Tensor w = dict["w0"];
  dict = {};
  EXPECT_TRUE(is_open());
  w.realize();
  EXPECT_EQ(w.to_vector<float>(), weight(0));
  EXPECT_FALSE(is_open());
}

}  // namespace
}  // namespace tuff::io
