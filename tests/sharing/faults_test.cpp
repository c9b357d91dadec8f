// The sanitizers' runs of the tests of sharing would find mistakes about lifetimes: here are some,
// in memory of the host.
#include <memory>

#include "faults.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
const TensorOptions kCpu{.device = "CPU"};

class HostFaults : public Faults {};

TEST_F(HostFaults, MemoryThatItsOwnerFreedTooSoonIsFound) {
  const auto fault = [] {
    auto values = std::make_unique<Floats>(1000, 1.0f);
    const Tensor t = Tensor::from_blob(values->data(), {1000}, {}, kCpu);
    values.reset();
    (void)t.to_vector<float>();
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: heap-use-after-free");
}

TEST_F(HostFaults, ADeleterThatIsCalledTwiceIsFound) {
  const auto fault = [] {
    auto* values = new Floats(1000, 1.0f);
    const BlobOptions blob{.deleter = [values](void*) { delete values; }};
    (void)Tensor::from_blob(values->data(), {1000}, blob, kCpu);
    settle(kCpu);
    blob.deleter(nullptr);
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: (heap-use-after-free|attempting double-free)");
}

TEST_F(HostFaults, ADeleterThatIsNeverCalledIsFound) {
  const auto fault = [] {
    auto* values = new Floats(1000, 1.0f);
    const BlobOptions blob{.deleter = [values](void*) { delete values; }};
    forget(Tensor::from_blob(values->data(), {1000}, blob, kCpu));
    settle(kCpu);
    look_for_leaks();
  };
  EXPECT_DEATH(fault(), kForgotten);
}

TEST_F(HostFaults, MemoryOfATensorThatIsGoneIsFound) {
  const auto fault = [] {
    Tensor t = Tensor::ones({1000}, kCpu).realize();
    auto* values = static_cast<float*>(t.data_ptr());
    t = Tensor();
    settle(kCpu);
    values[999] = 2;
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: use-after-poison");
}

}  // namespace
}  // namespace tuff::test
