// Writes the seeds of the fuzz targets of AMD's GPUs: make_amd_corpus FOLDER, one folder in it per
// reader.
#include <filesystem>
#include <fstream>
#include <string>

#include "emu/amd/pci/sample_firmware.h"

using namespace tuff::emu::amd::samples;

namespace {

void write(const std::filesystem::path& folder, size_t number, const Bytes& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ("seed-" + std::to_string(number)), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  for (uint16_t i = 0; i < 4; ++i) {
    SampleTable form;
    form.version = uint16_t(3 + i % 2);
    form.wide = i == 3;
    if (i > 1) form.harvested = {{43, 0}};
    write(folder / "amd_discovery", i, sample_discovery(form));
  }
  size_t n = 0;
  for (const Bytes& file : {sample_sos(), sample_smu(), sample_sdma(), sample_mec(), sample_imu(),
                            sample_rlc(0), sample_rlc(1, true), sample_rlc(3, true)})
    write(folder / "amd_firmware", n++, file);
  return 0;
}
