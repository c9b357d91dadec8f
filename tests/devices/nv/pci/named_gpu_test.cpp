// Which GPU NV_IFACE=PCI touches: the one that is named, is NVIDIA's and that VFIO has; what it
// says of all others.
#include "devices/nv/pci/named_gpu.h"

#include <tuff/error.h>

#include "devices/nv/nv.h"
#include "devices/pci/pci_scene.h"

namespace tuff::devices::nv {
namespace {

using namespace pci_test;

TEST(NvPciGpu, IsTheOneThatIsNamed) {
  Scene scene;
  EXPECT_EQ(named_gpu(*scene.bus, kFree).address, kFree);
  EXPECT_EQ(named_gpu(*scene.bus, "41:00.0").device, 0x2684);
}

TEST(NvPciGpu, NoneIsChosenForTheUser) {
  Scene scene;
  const std::string said = error_of<Unsupported>([&] { named_gpu(*scene.bus, ""); });
  EXPECT_NE(said.find("touches no GPU but the one that NV_PCI names"), std::string::npos) << said;
  EXPECT_NE(said.find("0000:01:00.0 (10de:2204, driver nvidia), 0000:41:00.0 (10de:2684, driver "
                      "vfio-pci)"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find(kFreeAudio), std::string::npos) << said;
  for (const char* address : {kHeld, kFree})
    scene.bus->files.erase(scene.path(address, "vendor"));
  const std::string none = error_of<Unsupported>([&] { named_gpu(*scene.bus, ""); });
  EXPECT_NE(none.find("none of NVIDIA's"), std::string::npos) << none;
}

TEST(NvPciGpu, OthersAreRefused) {
  Scene scene;
  const auto said = [&](const char* address) {
    return error_of<Unsupported>([&] { named_gpu(*scene.bus, address); });
  };
  EXPECT_NE(said(kHeld).find("NV_PCI=0000:01:00.0: the driver nvidia holds it"),
            std::string::npos);
  EXPECT_NE(said(kNetwork).find("0000:02:00.0 (8086:1533, driver igb) is not NVIDIA's (10de)"),
            std::string::npos);
  EXPECT_NE(said(kFreeAudio).find("of class 0x040300 is no GPU"), std::string::npos);
  EXPECT_NE(said("0000:05:00.0").find("0000:05:00.0/vendor cannot be read"), std::string::npos);
  EXPECT_THROW(named_gpu(*scene.bus, "GPU 1"), InvalidArgument);
  EXPECT_EQ(scene.bus->stats().calls, 0u) << "sysfs alone was looked at";
}

// Until the way to the first kernel is whole, nothing is opened, and it says what is missing.
TEST(NvPciGpu, IsNotOpenedYet) {
  Scene scene;
  NvIface iface;
  iface.kernel = scene.bus;
  iface.pci = true;
  const std::vector<Candidate> found = nv_probe(iface);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].usable);
  EXPECT_NE(found[0].reason.find("touches no GPU but the one"), std::string::npos);
  EXPECT_THROW(nv_open(iface, ""), Unsupported);
  EXPECT_EQ(scene.bus->stats().calls, 0u);
}

}  // namespace
}  // namespace tuff::devices::nv
