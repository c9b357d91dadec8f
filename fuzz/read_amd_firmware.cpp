// libFuzzer's entry point for the firmware files of AMD's GPUs: whatever the bytes, every reader
// gives its parts or an IoError. The file's size is made right first.
#include <tuff/error.h>

#include <cstring>

#include "devices/amd/pci/firmware.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace amd = tuff::devices::amd;
  std::vector<uint8_t> file(data, data + size);
  const auto bytes = uint32_t(size);
  if (size >= sizeof bytes) std::memcpy(file.data(), &bytes, sizeof bytes);
  const auto with = [&](auto read) {
    try {
      read(file, "file");
    } catch (const tuff::IoError&) {  // what damaged ones are answered with; all else is a finding
    }
  };
  with(amd::read_sos);
  with(amd::read_smu);
  with(amd::read_sdma);
  with(amd::read_mec);
  with(amd::read_imu);
  with(amd::read_rlc);
  return 0;
}
