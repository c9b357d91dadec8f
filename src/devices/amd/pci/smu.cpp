#include "devices/amd/pci/smu.h"

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

enum SmuMessageNumber : uint32_t {
  kGetSmuVersion = 2,
  kEnableAllSmuFeatures = 6,
  kSetDriverDramAddrHigh = 0xe,
  kSetDriverDramAddrLow = 0xf,
};
constexpr uint32_t kDebugMode1Reset = 2;
constexpr uint32_t kSmuOk = 1;

const char* smu_answer(uint32_t answer) {
  switch (answer) {
    case 0xff: return "it has failed";
    case 0xfe: return "it does not know the message";
    case 0xfd: return "something has to come before";
    case 0xfc: return "it is busy";
    default: return "no answer that is known";
  }
}

}  // namespace

// A message that is not answered yet would be lost.
uint32_t Smu::send(const char* name, uint32_t message, uint32_t argument) const {
  registers_.wait_for_any("the SMU has not ended what it was asked before", reg::SmuAnswer);
  registers_.write(reg::SmuAnswer, 0);
  registers_.write(reg::SmuArgument, argument);
  registers_.write(reg::SmuMessage, message);
  const std::string late = fmt::format("the SMU does not answer {}", name);
  const uint32_t answer = registers_.wait_for_any(late.c_str(), reg::SmuAnswer);
  if (answer != kSmuOk)
    fail<DeviceLost>("{}: the SMU refuses {}({:#x}): {} ({:#x})",
                     registers_.device().function().address, name, argument, smu_answer(answer),
                     answer);
  return registers_.read(reg::SmuArgument);
}

void Smu::start(uint64_t table_address) {
  if (send("GetSmuVersion", kGetSmuVersion, 0) == 0)
    fail<DeviceLost>("{}: the SMU has no firmware", registers_.device().function().address);
  send("SetDriverDramAddrHigh", kSetDriverDramAddrHigh, uint32_t(table_address >> 32));
  send("SetDriverDramAddrLow", kSetDriverDramAddrLow, uint32_t(table_address));
  send("EnableAllSmuFeatures", kEnableAllSmuFeatures, 0);
}

bool Smu::is_alive() const {
  try {
    send("GetSmuVersion", kGetSmuVersion, 0);
    return true;
  } catch (const DeviceLost&) {
    return false;
  }
}

void Smu::reset() const {
  registers_.write(reg::SmuDebugArgument, 0);
  registers_.write(reg::SmuDebugMessage, kDebugMode1Reset);
  registers_.write(reg::SmuDebugAnswer, 0);
}

}  // namespace tuff::devices::amd
