// What goes wrong on a CUDA device: faults of kernels, hangs, and every call of the driver in turn.
#include <tuff/error.h>

#include "devices/cuda/api.h"
#include "devices/cuda/fixture.h"

namespace tuff::devices::cuda {
namespace {

using namespace test;

class CudaFaults : public CudaFixture {};

TEST_F(CudaFaults, AKernelsFaultIsDeviceLostAndNamesWhatRan) {
  open();
  const Span a = words(32);
  // The kernel may have run before its submission ends, whose next call then fails.
  const std::string said = error_of<DeviceLost>(
      [&] { queue().wait(submit({dispatch(kFar, {a}, 900, 1)})); });
  for (const char* part : {"CUDA:0", "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "compute queue", "far"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  const uint64_t before = calls();
  EXPECT_THROW(submit({}), DeviceLost);
  EXPECT_THROW(words(1 << 25), DeviceLost);
  EXPECT_EQ(calls(), before) << "later calls ask nobody";
  programs.clear();
  device.reset();
  open();  // the last user of a context takes what was wrong with it along
  const Span b = words(32);
  run({dispatch(kFill, {b}, 2, 1)});
  EXPECT_EQ(read(b), Words(32, 2));
}

TEST_F(CudaFaults, AGraphsFaultToo) {
  open();
  const Span a = words(32);
  const auto list = queue().encode(
      list_of({dispatch(kFill, {a}, 1, 1), dispatch(kFar, {a}, 900, 1)}), EncodeUse::Replay);
  EXPECT_THROW(queue().wait(queue().submit(*list, {})), DeviceLost);
}

// What may run for ever is not waited for when the device is closed, and what it names stays.
TEST_F(CudaFaults, AHangIsDeviceLostAndClosingDoesNotWaitForIt) {
  const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "100");
  open();
  auto never = device->create_signal();
  const uint64_t one = 1;
  const CommandList list =
      list_of({{WaitCmd{never.get(), 0}, {}, ""}, dispatch(kFill, {words(32)}, 1, 1)}, 1);
  const uint64_t value = queue().submit_once(queue().encode(list, EncodeUse::Once), {&one, 1});
  const std::string said = error_of<DeviceLost>([&] { queue().wait(value); });
  EXPECT_NE(said.find("no progress"), std::string::npos) << said;
  EXPECT_NE(said.find("fill"), std::string::npos) << said;
  never.reset();
  programs.clear();
  device.reset();
  EXPECT_GT(held(), 0u);
}

// Opens, allocates, copies, launches, replays, takes times, adopts, closes.
void use_everything(std::vector<std::string>& errors) {
  const auto device = cuda_open("");
  const auto programs = device->load(binaries());
  Queue& queue = device->compute_queue();
  const Span a = device->allocator().allocate(128, MemoryKind::Device);
  Words values(32, 1);
  device->upload(a, values.data());
  const Span block = device->allocator().allocate(32, MemoryKind::Args);
  uint64_t words_of[4] = {a.address(), 7, 0, 0};
  device->upload(block, words_of);
  const Command fill{DispatchCmd{programs[kFill].get(), block, {1, 1, 1}, {0, 0}, {0, -1, -1}},
                     {{block, false}, {a, true}}, ""};
  CommandList list;
  list.slot_count = 1;
  list.commands = {fill, fill};
  for (const EncodeUse use : {EncodeUse::Once, EncodeUse::Replay}) {
    const uint64_t groups = use == EncodeUse::Once ? 1 : 0;
    const auto encoded = queue.encode(list, use);
    queue.wait(queue.submit(*encoded, {&groups, 1}));
  }
  list.commands = {fill};
  add_timestamps(list);
  const auto timed = queue.encode(list, EncodeUse::Once);
  const uint64_t one = 1;
  queue.wait(queue.submit(*timed, {&one, 1}));
  queue.timestamps(*timed);
  device->download(a, values.data());
  if (values != Words(32, 7)) errors.push_back("a wrong result");
}

class CudaCallFails : public CudaFixture, public testing::WithParamInterface<CUresult> {};

// Whichever call it is: an error that names it, or what a destructor says; no hang, no crash, and
// the next device works.
TEST_P(CudaCallFails, EveryCallInTurn) {
  std::vector<std::string> errors;
  use_everything(errors);
  ASSERT_TRUE(errors.empty());
  set_options("");
  use_everything(errors);
  const uint64_t all = calls();
  ASSERT_GT(all, 50u);
  size_t thrown = 0;
  for (uint64_t n = 1; n <= all; ++n) {
    reset();
    set_options(fmt::format("fail:{},code:{}", n, GetParam()).c_str());
    try {
      use_everything(errors);
    } catch (const OutOfMemory& e) {
      ++thrown;
      EXPECT_EQ(GetParam(), CUDA_ERROR_OUT_OF_MEMORY) << e.what();
    } catch (const Error& e) {
      ++thrown;
      EXPECT_NE(std::string(e.what()).find("cu"), std::string::npos) << e.what();
    }
    ASSERT_TRUE(errors.empty()) << "call " << n << ": " << errors[0];
  }
  EXPECT_GT(thrown, all / 3);
  reset();
  set_options("");
  use_everything(errors);
  EXPECT_TRUE(errors.empty());
}

INSTANTIATE_TEST_SUITE_P(Codes, CudaCallFails,
                         testing::Values(CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS,
                                         CUDA_ERROR_INVALID_VALUE),
                         [](const auto& info) { return "C" + std::to_string(info.param); });

}  // namespace
}  // namespace tuff::devices::cuda
