// libFuzzer's entry point for the firmware files of NVIDIA's GPUs: whatever the bytes, each reader
// gives its parts or an IoError.
#include <tuff/error.h>

#include "devices/nv/pci/firmware.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace nv = tuff::devices::nv;
  const auto tried = [](auto read) {
    try {
      read();
    } catch (const tuff::IoError&) {  // what damaged files are answered with; all else is a finding
    }
  };
  tried([&] {
    const nv::Booter booter = nv::read_booter({data, size}, "damaged");
    for (uint32_t version = 0; version < 4; ++version)
      tried([&] { nv::signed_image(booter, version); });
  });
  tried([&] { nv::read_bootloader({data, size}, "damaged"); });
  tried([&] { nv::read_gsp_image({data, size}, "damaged", "ga10x"); });
  tried([&] { nv::read_fmc({data, size}, "damaged"); });
  return 0;
}
