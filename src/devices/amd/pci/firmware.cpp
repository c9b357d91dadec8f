#include "devices/amd/pci/firmware.h"

#include <algorithm>

#include "base/check.h"
#include "devices/byte_reader.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kHeaderBytes = 32;

// The header that all files begin with.
class Container {
 public:
  Container(std::span<const uint8_t> file, const std::string& name, uint16_t major)
      : in_(file, name) {
    const uint32_t size = word(0, "the file's size");
    if (size != file.size())
      in_.damaged("it says that it is {} bytes long, of {}", size, file.size());
    const uint16_t found = in_.u16(8, "the header's version");
    minor_ = in_.u16(10, "the header's version");
    if (found != major) in_.damaged("version {}.{} of its header is not known", found, minor_);
  }
  uint16_t minor() const { return minor_; }
  uint32_t word(uint64_t offset, const char* what) const { return in_.u32(offset, what); }
  uint32_t code_bytes() const { return word(20, "the size of what is loaded"); }
  uint32_t code_offset() const { return word(24, "the place of what is loaded"); }
  FirmwareBytes bytes(uint64_t offset, uint64_t size_bytes, const char* what) const {
    const auto found = in_.range(offset, size_bytes, what);
    if (found.empty()) in_.damaged("{} is empty", what);
    return {found.begin(), found.end()};
  }
  // Size and place lie there, one after the other.
  FirmwarePart part(FirmwareType type, uint64_t size_at, const char* what) const {
    return {type, bytes(word(size_at + 4, what), word(size_at, what), what)};
  }
  const ByteReader& in() const { return in_; }

 private:
  ByteReader in_;
  uint16_t minor_ = 0;
};

bool is_known(uint32_t type) {
  switch (SosType(type)) {
    case SosType::Sos:
    case SosType::SystemDriver:
    case SosType::KeyDatabase:
    case SosType::Toc:
    case SosType::Spl:
    case SosType::SocDriver:
    case SosType::InterfaceDriver:
    case SosType::DebugDriver:
    case SosType::RasDriver: return true;
  }
  return false;
}

}  // namespace

std::vector<SosComponent> read_sos(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 2);
  if (c.minor() != 0) c.in().damaged("version 2.{} of its header is not known", c.minor());
  const uint32_t count = c.word(kHeaderBytes, "the number of components");
  constexpr uint32_t most = 64;
  if (count > most) c.in().damaged("it has {} components", count);
  std::vector<SosComponent> out;
  for (uint32_t n = 0; n < count; ++n) {
    const uint64_t at = kHeaderBytes + 4 + 16 * n;
    const uint32_t type = c.word(at, "a component"), size = c.word(at + 12, "a component's size");
    const uint64_t offset = uint64_t{c.code_offset()} + c.word(at + 8, "a component's place");
    FirmwareBytes bytes = c.bytes(offset, size, "a component");
    if (is_known(type)) out.push_back({SosType(type), std::move(bytes)});
  }
  const auto has = [&](SosType type) {
    return std::any_of(out.begin(), out.end(), [&](const auto& s) { return s.type == type; });
  };
  for (const SosType type :
       {SosType::KeyDatabase, SosType::SystemDriver, SosType::Sos, SosType::Toc})
    if (!has(type)) c.in().damaged("it has no component {}", uint32_t(type));
  return out;
}

FirmwarePart read_smu(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 1);
  return {FirmwareType::Smu, c.bytes(c.code_offset(), c.code_bytes(), "the program")};
}

std::vector<FirmwarePart> read_sdma(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 2);
  constexpr const char* thread0 = "the program of thread 0";
  constexpr const char* thread1 = "the program of thread 1";
  return {{FirmwareType::SdmaThread1, c.bytes(c.word(48, thread1), c.word(52, thread1), thread1)},
          {FirmwareType::SdmaThread0, c.bytes(c.code_offset(), c.word(36, thread0), thread0)}};
}

MecFirmware read_mec(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 2);
  MecFirmware out;
  out.parts.push_back(
      {FirmwareType::Mec, c.bytes(c.code_offset(), c.word(36, "the code's size"), "the code")});
  for (const FirmwareType stack : {FirmwareType::MecStack0, FirmwareType::MecStack1,
                                   FirmwareType::MecStack2, FirmwareType::MecStack3})
    out.parts.push_back(c.part(stack, 44, "the data"));
  out.start = uint64_t{c.word(56, "the start")} << 32 | c.word(52, "the start");
  if (out.start % 4 != 0) c.in().damaged("it starts at {:#x}", out.start);
  return out;
}

std::vector<FirmwarePart> read_imu(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 1);
  const uint32_t code = c.word(32, "the code's size"), data = c.word(40, "the data's size");
  return {{FirmwareType::ImuI, c.bytes(c.code_offset(), code, "the code")},
          {FirmwareType::ImuD, c.bytes(uint64_t{c.code_offset()} + code, data, "the data")}};
}

// Each version has what those before have: the lists since 2.1, which may be empty.
std::vector<FirmwarePart> read_rlc(std::span<const uint8_t> file, const std::string& name) {
  const Container c(file, name, 2);
  if (c.minor() > 3) c.in().damaged("version 2.{} of its header is not known", c.minor());
  std::vector<FirmwarePart> out;
  const auto list = [&](FirmwareType type, uint64_t size_at) {
    if (c.word(size_at, "a list's size") > 0) out.push_back(c.part(type, size_at, "a list"));
  };
  if (c.minor() >= 1) {
    list(FirmwareType::RlcRestoreListCntl, 116);
    list(FirmwareType::RlcRestoreListGpm, 132);
    list(FirmwareType::RlcRestoreListSrm, 148);
  }
  if (c.minor() >= 2) {
    out.push_back(c.part(FirmwareType::RlcIram, 156, "RLC's IRAM"));
    out.push_back(c.part(FirmwareType::RlcDramBoot, 164, "RLC's DRAM"));
  }
  if (c.minor() >= 3) {
    out.push_back(c.part(FirmwareType::RlcP, 180, "RLC's P"));
    out.push_back(c.part(FirmwareType::RlcV, 196, "RLC's V"));
  }
  out.push_back({FirmwareType::RlcG, c.bytes(c.code_offset(), c.code_bytes(), "the program")});
  return out;
}

const SosComponent* AmdFirmware::find(SosType type) const {
  const auto found =
      std::find_if(sos.begin(), sos.end(), [&](const auto& s) { return s.type == type; });
  return found == sos.end() ? nullptr : &*found;
}

}  // namespace tuff::devices::amd
