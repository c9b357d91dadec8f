#include "emu/amd/pci/smu_model.h"

#include <fmt/format.h>

#include "emu/amd/pci/register_names.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kGetSmuVersion = 2, kEnableAllSmuFeatures = 6, kSetDriverDramAddrHigh = 0xe,
                   kSetDriverDramAddrLow = 0xf;
constexpr uint32_t kOk = 1, kUnknownMessage = 0xfe, kVersion = 0x004e8200, kMode1Reset = 2;

}  // namespace

bool SmuModel::has(uint64_t at) {
  return at == place::SmuMessage || at == place::SmuArgument || at == place::SmuAnswer ||
         at == place::SmuDebugArgument || at == place::SmuDebugAnswer ||
         at == place::SmuDebugMessage;
}

// Its firmware begins with an answer, so that a first message finds the mailbox free.
uint32_t SmuModel::read(uint64_t at, bool has_firmware) {
  if (at == place::SmuAnswer && has_firmware && !hung_ && !words_.count(at)) return kOk;
  return words_[at];
}

bool SmuModel::write(uint64_t at, uint32_t value, bool has_firmware) {
  if (at == place::SmuMessage && has_firmware && read(place::SmuAnswer, true) != 0 && !hung_)
    told_("a message to the SMU whose answer of before was not cleared");
  words_[at] = value;
  if (hung_) return false;
  if (at == place::SmuMessage) take(value, has_firmware);
  if (at != place::SmuDebugMessage || !has_firmware) return false;
  if (value != kMode1Reset) told_(fmt::format("the SMU knows no debug message {:#x}", value));
  return value == kMode1Reset;
}

void SmuModel::take(uint32_t message, bool has_firmware) {
  if (!has_firmware) return told_("a message to the SMU, which has no firmware");
  uint32_t& answer = words_[place::SmuAnswer];
  answer = kOk;
  switch (message) {
    case kGetSmuVersion: words_[place::SmuArgument] = kVersion; break;
    case kSetDriverDramAddrHigh:
    case kSetDriverDramAddrLow: break;
    case kEnableAllSmuFeatures: has_features_ = true; break;
    default:
      answer = kUnknownMessage;
      told_(fmt::format("the SMU knows no message {:#x}", message));
  }
}

}  // namespace tuff::emu::amd
