#include "devices/nv/pci/installed_firmware.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

// The kernel's folders for firmware; a kernel may be told another one (firmware_class.path).
constexpr const char* kFolders[] = {"/lib/firmware", "/usr/lib/firmware"};
constexpr const char* kVersions[] = {"570.144", "535.113.01"};  // by preference

std::string file_name(const char* part, const std::string& version) {
  return fmt::format("{}-{}.bin", part, version);
}

std::string read_file(os::Kernel& kernel, const std::string& path) {
  std::string bytes;
  const int result = kernel.read_text(path, bytes);
  if (result < 0) fail<Unsupported>("NV: {} cannot be read: {}", path, std::strerror(-result));
  return bytes;
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct Place {
  std::string folder, version;
};

// The first version that has its main file somewhere.
Place find_place(os::Kernel& kernel, const std::string& chip) {
  std::vector<std::string> folders, others;
  for (const char* root : kFolders) folders.push_back(fmt::format("{}/nvidia/{}/gsp", root, chip));
  for (const char* version : kVersions) {
    for (const std::string& folder : folders) {
      std::vector<std::string> names;
      if (kernel.list_directory(folder, names) < 0) continue;
      const auto has = [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      const std::string main = file_name("gsp", version);
      if (has(main)) return {folder, version};
      for (const char* packed : {".xz", ".zst"})
        if (has(main + packed)) others.push_back(folder + "/" + main + packed);
    }
  }
  if (!others.empty())
    fail<Unsupported>("NV: {} is compressed; it is needed as it is (unxz -k, unzstd)", others[0]);
  fail<Unsupported>(
      "NV: no firmware of versions {} is in {}; Debian has it in firmware-nvidia-graphics "
      "(non-free-firmware)",
      fmt::join(kVersions, ", "), fmt::join(folders, ", "));
}

}  // namespace

Firmware load_firmware(os::Kernel& kernel, const ChipFamily& family) {
  const Place place = find_place(kernel, family.firmware);
  Firmware f;
  f.version = place.version;
  f.folder = place.folder;
  const auto with = [&](const char* part, auto read) {
    const std::string path = place.folder + "/" + file_name(part, place.version);
    const std::string bytes = read_file(kernel, path);
    return read(bytes_of(bytes), path);
  };
  f.gsp = with("gsp", [&](auto bytes, const std::string& path) {
    return read_gsp_image(bytes, path, family.name);
  });
  if (!f.gsp.version.empty() && f.gsp.version != f.version)
    fail<IoError>("{}/{}: it says that its version is {}", f.folder, file_name("gsp", f.version),
                  f.gsp.version);
  f.bootloader = with("bootloader", read_bootloader);
  if (family.starter == GspStarter::Fsp) {
    f.fmc = with("fmc", read_fmc);
  } else {
    f.load = with("booter_load", read_booter);
    f.unload = with("booter_unload", read_booter);
  }
  return f;
}

}  // namespace tuff::devices::nv
