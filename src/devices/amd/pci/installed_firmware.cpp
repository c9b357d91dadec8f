// Where distributions install firmware, and what is said of files that are not there.
#include <cstring>

#include "base/check.h"
#include "devices/amd/pci/firmware.h"

namespace tuff::devices::amd {
namespace {

// The kernel's folders for firmware; a kernel may be told another one (firmware_class.path).
constexpr const char* kFirmwareFolders[] = {"/lib/firmware/amdgpu", "/usr/lib/firmware/amdgpu"};

std::string file_of(const char* block, const IpVersion& v, const char* part) {
  return fmt::format("{}_{}_{}_{}{}.bin", block, v.major, v.minor, v.revision, part);
}

// The first folder that has the file, as it is or compressed.
std::string folder_with(os::Kernel& kernel, const std::string& file) {
  for (const char* folder : kFirmwareFolders) {
    std::vector<std::string> names;
    if (kernel.list_directory(folder, names) < 0) continue;
    for (const std::string& name : names) {
      if (name == file) return folder;
      if (name == file + ".xz" || name == file + ".zst")
        fail<Unsupported>("AMD: {}/{} is compressed; it is needed as it is (unxz -k, unzstd)",
                          folder, name);
    }
  }
  fail<Unsupported>(
      "AMD: there is no {} in {}; Debian has it in firmware-amd-graphics (non-free-firmware)", file,
      fmt::join(kFirmwareFolders, ", "));
}

}  // namespace

AmdFirmware load_amd_firmware(os::Kernel& kernel, const Discovery& discovery) {
  const IpVersion gc = discovery.block(Hwid::Gc).version;
  const std::string sos = file_of("psp", discovery.block(Hwid::Mp0).version, "_sos");
  AmdFirmware f;
  f.folder = folder_with(kernel, sos);
  const auto with = [&](const std::string& file, auto read) {
    const std::string path = f.folder + "/" + file;
    std::string bytes;
    const int result = kernel.read_text(path, bytes);
    if (result == -ENOENT) folder_with(kernel, file);
    if (result < 0) fail<Unsupported>("AMD: {} cannot be read: {}", path, std::strerror(-result));
    return read({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "AMD: " + path);
  };
  const auto add = [&](std::vector<FirmwarePart> parts) {
    for (FirmwarePart& p : parts) f.parts.push_back(std::move(p));
  };
  f.sos = with(sos, read_sos);
  f.smu = with(file_of("smu", discovery.block(Hwid::Mp1).version, ""), read_smu);
  add(with(file_of("sdma", discovery.block(Hwid::Sdma0).version, ""), read_sdma));
  MecFirmware mec = with(file_of("gc", gc, "_mec"), read_mec);
  f.mec_start = mec.start;
  add(std::move(mec.parts));
  add(with(file_of("gc", gc, "_imu"), read_imu));
  add(with(file_of("gc", gc, "_rlc"), read_rlc));
  return f;
}

}  // namespace tuff::devices::amd
