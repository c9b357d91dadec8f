// Sequences that the GSP asks for: each command, its effect on registers and on the core, and
// sequences that are damaged.
#include "devices/nv/pci/gsp_sequence.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <cstring>

#include "base/error_of.h"
#include "emu/pci/bus.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kSequenceSlot = "0000:41:00.0";
using Words = std::vector<uint32_t>;

// Keeps what is written; a register counts its reads, and one does what it is told.
class CountingRegisters final : public emu::pci::Function {
 public:
  uint32_t read(size_t, uint64_t offset) override {
    return offset == 0x20 ? ++reads : values[offset];
  }
  void write(size_t, uint64_t offset, uint32_t value) override { values[offset] = value; }
  std::map<uint64_t, uint32_t> values;
  uint32_t reads = 0;
};

struct CalledCore final : GspCore {
  void reset() override { calls += 'r'; }
  void start() override { calls += 's'; }
  void wait_until_halted() override { calls += 'w'; }
  void resume() override { calls += 'R'; }
  std::string calls;
};

struct SequenceScene {
  SequenceScene() {
    bus->add({kSequenceSlot, 0x10de, 0x2204, 0x030000, "vfio-pci", "7", {1u << 16}, gpu});
    device = std::make_unique<PciDevice>(bus, pci_function(*bus, kSequenceSlot));
  }
  // A message with these commands, `room` words being what there is room for.
  SavedRegisters run(const Words& commands, uint32_t room = 100, size_t cut = 0) {
    Words words(10);
    words[0] = room;
    words[1] = uint32_t(commands.size());
    words.insert(words.end(), commands.begin(), commands.end());
    std::vector<uint8_t> bytes(4 * words.size());
    std::memcpy(bytes.data(), words.data(), bytes.size());
    bytes.resize(bytes.size() - cut);
    return run_sequence(bytes, *device, core);
  }

  emu::Reports reports{[](const emu::Finding& f) { ADD_FAILURE() << to_text(f); }};
  std::shared_ptr<CountingRegisters> gpu = std::make_shared<CountingRegisters>();
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
  std::unique_ptr<PciDevice> device;
  CalledCore core;
};

TEST(NvGspSequence, EveryCommand) {
  SequenceScene s;
  s.gpu->values[8] = 0xabcd1234;
  const SavedRegisters saved = s.run({
      0, 4, 0x11111111,          // write
      1, 8, 0xff00, 0x5600,      // modify
      2, 0x20, 0xf, 3, 0, 99,    // poll until the third read
      3, 1,                      // pause
      4, 8, 7,                   // save
      5, 6, 7, 8,                // the core
      0, 12, 0x22222222,
  });
  EXPECT_EQ(s.gpu->values[4], 0x11111111u);
  EXPECT_EQ(s.gpu->values[8], 0xabcd5634u);
  EXPECT_EQ(s.gpu->reads, 3u);
  EXPECT_EQ(saved, (SavedRegisters{0, 0, 0, 0, 0, 0, 0, 0xabcd5634}));
  EXPECT_EQ(s.core.calls, "rswR");
  EXPECT_EQ(s.gpu->values[12], 0x22222222u);
}

TEST(NvGspSequence, ARegisterThatDoesNotChangeIsALostDevice) {
  SequenceScene s;
  s.gpu->values[8] = 5;
  EXPECT_EQ(error_of<DeviceLost>([&] { s.run({2, 8, 0xff, 6, 1000, 0x77}); }),
            "NV: a sequence of the GSP waited 1000 us in vain for register 0x8 (it has 0x5, error "
            "0x77)");
}

TEST(NvGspSequence, DamagedOnesAreRefused) {
  SequenceScene s;
  const auto refused = [&](const Words& commands, uint32_t room = 100, size_t cut = 0) {
    const std::string text = error_of<DeviceLost>([&] { s.run(commands, room, cut); });
    EXPECT_TRUE(text.starts_with("NV: a sequence of the GSP ")) << text;
    return text;
  };
  EXPECT_NE(refused({9}).find("has command 9 with 0 words behind it"), std::string::npos);
  refused({0, 4});                 // an argument is missing
  refused({2, 0x20, 0xf, 3, 0});
  refused({0, 6, 1});              // no register
  refused({0, 1u << 16, 1});       // beyond the BAR
  refused({1, ~0u, 1, 1});
  refused({4, 8, 8});              // no place
  refused({3, 20'000'000});        // a pause of 20 s
  refused({0, 4, 1}, 3);           // no room
  refused({0, 4, 1}, 100, 4);      // cut off
  refused({}, 100, 4);
  refused({}, 100, 40);            // nothing at all
  EXPECT_TRUE(s.gpu->values.empty()) << "nothing was written";
  EXPECT_EQ(s.core.calls, "");
}

}  // namespace
}  // namespace tuff::devices::nv
