// Writes the seeds of the fuzz targets of NVIDIA's firmware: make_nv_corpus FOLDER, one folder in
// it per reader.
#include <filesystem>
#include <fstream>
#include <string>

#include "emu/nv/pci/sample_firmware.h"

using namespace tuff::emu::nv::samples;

namespace {

void write(const std::filesystem::path& folder, size_t number, const Rom& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ("seed-" + std::to_string(number)), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  for (uint32_t i = 0; i < 16; ++i) {
    VbiosForm form;
    form.descriptor_version = 2 + i % 2;
    form.before = i / 2 % 4;
    form.image_between = i / 8 % 2;
    form.counted_anew = i % 3 == 0;
    form.signatures = 1 + i % 3;
    form.application = i % 5 ? 0x85 : 0x05;
    write(folder / "nv_vbios", i, sample_vbios(form));
  }
  write(folder / "nv_firmware", 0, sample_booter(1));
  write(folder / "nv_firmware", 1, sample_booter(3));
  write(folder / "nv_firmware", 2, sample_bootloader());
  write(folder / "nv_firmware", 3, sample_gsp());
  write(folder / "nv_firmware", 4, sample_fmc());
  return 0;
}
