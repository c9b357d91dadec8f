// A process may end while its devices still work: it waits for them, and nothing crashes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/device.h"
#include "tensor/devices.h"
#include "tuff/tensor.h"

namespace tuff {
namespace {

class Exit : public testing::TestWithParam<std::string> {};

// New kernels, so that a software driver compiles them in a thread of its own, where it may be
// while this one ends.
void leave_work_behind(const std::string& device) {
  const TensorOptions here{.device = device};
  Tensor x = Tensor::rand({64, 64}, here);
  x.sum().item();  // the driver's compiler has been at work
  for (int64_t n = 1; n < 12; n++) x = (x.matmul(x) * double(n)).softmax(n % 2).sin();
  x.realize();
}

TEST_P(Exit, WithWorkInFlightIsClean) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 5; i++) {
    EXPECT_EXIT(
        {
          leave_work_behind(GetParam());
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Exit, testing::ValuesIn(test::devices()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace tuff
