#include "devices/nv/pci/gsp_sequence.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

enum class SequenceCommand : uint32_t {
  Write,   // register, value
  Modify,  // register, mask, value
  Poll,    // register, mask, value, microseconds, what the failure is called
  Delay,   // microseconds
  Save,    // register, place
  ResetCore,
  StartCore,
  WaitForHalt,
  ResumeCore,
};
constexpr uint32_t kArguments[] = {2, 3, 5, 1, 2, 0, 0, 0, 0};
// Before the commands: room for them in words, how many words they have, what is saved.
constexpr size_t kHeaderWords = 2 + std::tuple_size_v<SavedRegisters>;
constexpr uint32_t kPollUs = 4'000'000, kMostDelayUs = 10'000'000;

class SequenceRun {
 public:
  SequenceRun(const PciDevice& device, GspCore& core) : device_(device), core_(core) {}
  void run(SequenceCommand command, const uint32_t* a) {
    switch (command) {
      case SequenceCommand::Write: return write(a[0], a[1]);
      case SequenceCommand::Modify: return write(a[0], (read(a[0]) & ~a[1]) | a[2]);
      case SequenceCommand::Poll: return poll(a[0], a[1], a[2], a[3] ? a[3] : kPollUs, a[4]);
      case SequenceCommand::Delay: return delay(a[0]);
      case SequenceCommand::Save:
        if (a[1] >= saved.size()) damaged("saves a register at place {}", a[1]);
        saved[a[1]] = read(a[0]);
        return;
      case SequenceCommand::ResetCore: return core_.reset();
      case SequenceCommand::StartCore: return core_.start();
      case SequenceCommand::WaitForHalt: return core_.wait_until_halted();
      case SequenceCommand::ResumeCore: return core_.resume();
    }
  }
  template <class... Args>
  [[noreturn]] static void damaged(fmt::format_string<Args...> text, Args&&... args) {
    fail<DeviceLost>("NV: a sequence of the GSP {}",
                     fmt::format(text, std::forward<Args>(args)...));
  }

  SavedRegisters saved{};

 private:
  void check(uint32_t offset) const {
    if (offset % 4 || offset >= device_.bar_bytes(0)) damaged("names register {:#x}", offset);
  }
  uint32_t read(uint32_t offset) const {
    check(offset);
    return device_.read(0, offset);
  }
  void write(uint32_t offset, uint32_t value) const {
    check(offset);
    device_.write(0, offset, value);
  }
  void poll(uint32_t offset, uint32_t mask, uint32_t value, uint32_t timeout_us,
            uint32_t error) const {
    check(offset);
    const AwaitedRegister r = wait_for_register(device_, 0, offset, mask, value,
                                                std::chrono::microseconds(timeout_us));
    if (!r.arrived)
      damaged("waited {} us in vain for register {:#x} (it has {:#x}, error {:#x})", timeout_us,
              offset, r.seen, error);
  }
  static void delay(uint32_t us) {
    if (us > kMostDelayUs) damaged("asks for a pause of {} us", us);
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  const PciDevice& device_;
  GspCore& core_;
};

}  // namespace

SavedRegisters run_sequence(std::span<const uint8_t> message, const PciDevice& device,
                            GspCore& core) {
  SequenceRun sequence(device, core);
  std::vector<uint32_t> words(message.size() / sizeof(uint32_t));
  if (words.size() < kHeaderWords) SequenceRun::damaged("has {} bytes", message.size());
  std::memcpy(words.data(), message.data(), words.size() * sizeof(uint32_t));
  const uint32_t room = words[0], count = words[1];
  if (count >= room || count > words.size() - kHeaderWords)
    SequenceRun::damaged("has {} words, in room for {}, of a message with {}", count, room,
                         words.size() - kHeaderWords);
  const std::span<const uint32_t> commands = std::span(words).subspan(kHeaderWords, count);
  for (size_t at = 0; at < count;) {
    const uint32_t command = commands[at++];
    if (command >= std::size(kArguments) || kArguments[command] > count - at)
      SequenceRun::damaged("has command {} with {} words behind it", command, count - at);
    sequence.run(SequenceCommand(command), commands.data() + at);
    at += kArguments[command];
  }
  return sequence.saved;
}

}  // namespace tuff::devices::nv
