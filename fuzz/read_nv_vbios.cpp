// libFuzzer's entry point for the VBIOS of NVIDIA's GPUs: whatever the bytes, FWSEC is found or an
// IoError, and so for its commands.
#include <tuff/error.h>

#include "devices/nv/pci/vbios.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace nv = tuff::devices::nv;
  try {
    const nv::Fwsec fwsec = nv::read_fwsec({data, size}, size % 2 == 1);
    for (uint32_t version = 0; version < 17; ++version) {
      try {
        nv::fwsec_data(fwsec, nv::FwsecCommand::Frts, 0x1000, version);
        nv::fwsec_data(fwsec, nv::FwsecCommand::Sb, 0, version);
      } catch (const tuff::IoError&) {  // no signature of that version, no room for commands
      }
    }
  } catch (const tuff::IoError&) {  // what damaged ones are answered with; all else is a finding
  }
  return 0;
}
