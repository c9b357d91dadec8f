// What sysfs says of PCI functions, whole and damaged, and which of them may be taken.
#include "devices/pci_functions.h"

#include <tuff/error.h>

#include "devices/pci/pci_scene.h"

namespace tuff::devices {
namespace {

using namespace pci_test;
using Texts = std::vector<std::string>;

TEST(PciFunctions, AreListedByVendor) {
  Scene scene;
  const auto all = pci_functions(*scene.bus, 0x10de);
  ASSERT_EQ(all.size(), 4u);
  const PciFunction& f = all[0];
  EXPECT_EQ(f.address, kHeld);
  EXPECT_EQ(f.device, 0x2204);
  EXPECT_EQ(f.class_code, 0x030000u);
  EXPECT_EQ(f.driver, "nvidia");
  EXPECT_EQ(f.iommu_group, "16");
  EXPECT_EQ(f.bar_bytes, (std::array<uint64_t, 6>{kRegisterBytes, kApertureBytes}));
  EXPECT_EQ(f.bar_address, (std::array<uint64_t, 6>{0x200000000, 0x202000000}));
  EXPECT_EQ(describe(f), "0000:01:00.0 (10de:2204, driver nvidia)");
  EXPECT_EQ(pci_functions(*scene.bus, 0x1002).size(), 0u);
}

TEST(PciFunctions, NoBusIsNoFunction) {
  emu::Reports reports([](const emu::Finding&) {});
  emu::pci::Bus bus(reports);
  EXPECT_TRUE(pci_functions(bus, 0x10de).empty());
}

// Each file missing, empty, garbage, or out of range: an error that names file and contents, and
// the function is not listed.
TEST(PciFunctions, DamagedFilesAreNamed) {
  const std::string huge = "0x" + std::string(40, 'f') + "\n";
  for (const char* file : {"vendor", "device", "class", "uevent", "resource"}) {
    Scene scene;
    scene.bus->files.erase(scene.path(kFree, file));
    const std::string said = error_of<Unsupported>([&] { pci_function(*scene.bus, kFree); });
    EXPECT_NE(said.find(scene.path(kFree, file) + " cannot be read: No such file"),
              std::string::npos)
        << said;
    EXPECT_EQ(pci_functions(*scene.bus, 0x10de).size(), 3u) << file;
  }
  for (const char* file : {"vendor", "device", "class"}) {
    for (const std::string& text : Texts{"", "\n", "0x", "10de\n", "0x10dg\n", "-0x1\n",
                                         "0x1000000\n", huge}) {
      Scene scene;
      scene.bus->files[scene.path(kFree, file)] = text;
      const std::string said = error_of<Unsupported>([&] { pci_function(*scene.bus, kFree); });
      EXPECT_NE(said.find(scene.path(kFree, file) + " has '"), std::string::npos) << said;
      EXPECT_LT(said.size(), 200u);
    }
  }
}

TEST(PciFunctions, DamagedResourcesAreNamed) {
  const std::string line = "0x0000000000000000 0x0000000000000000 0x0\n";
  const std::string five = line + line + line + line + line;
  for (const std::string& text :
       Texts{"", five, five + "0x0 0x0\n", five + "0x2 0x1 0x0\n", five + "a b c\n",
             five + "0x0000000000000000 0x0000000000000000 0x0",
             five + "0x0 0xffffffffffffffff 0x0\n"}) {
    Scene scene;
    scene.bus->files[scene.path(kFree, "resource")] = text;
    const std::string said = error_of<Unsupported>([&] { pci_function(*scene.bus, kFree); });
    EXPECT_NE(said.find("resource is no table of 6 address ranges"), std::string::npos) << said;
  }
  Scene scene;
  scene.bus->files[scene.path(kFree, "resource")] = five + "0x1000 0x1fff 0x40200\n" + line;
  EXPECT_EQ(pci_function(*scene.bus, kFree).bar_bytes[5], 0x1000u);
}

TEST(PciFunctions, AddressesAsUsersWriteThem) {
  EXPECT_EQ(pci_address("0000:01:00.0", "X"), "0000:01:00.0");
  EXPECT_EQ(pci_address("C1:1f.7", "X"), "0000:c1:1f.7");
  for (const std::string& text :
       Texts{"", "1:00.0", "0000:01:00", "0000:01:00.8", "0000:01:20.0", "0000:0g:00.0",
             "0000-01:00.0", "00000:01:00.0", "../../../etc", "0000:01:00.0 ", "GPU-1234"}) {
    const std::string said = error_of<InvalidArgument>([&] { pci_address(text, "NV_PCI"); });
    EXPECT_NE(said.find("NV_PCI='" + text + "' is not the address of a PCI function"),
              std::string::npos)
        << said;
  }
}

// ---- refusals

std::string refusal(Scene& scene, const char* address) {
  return pci_refusal(*scene.bus, pci_function(*scene.bus, address));
}

TEST(PciFunctions, OneThatVfioHasMayBeTaken) {
  Scene scene;
  EXPECT_EQ(refusal(scene, kFree), "");
}

TEST(PciFunctions, OneThatADriverHoldsIsRefused) {
  Scene scene;
  EXPECT_NE(refusal(scene, kHeld).find("the driver nvidia holds it: give it to vfio-pci first"),
            std::string::npos);
  EXPECT_NE(refusal(scene, kHeld).find("driverctl set-override 0000:01:00.0 vfio-pci"),
            std::string::npos);
  scene.bus->files[scene.path(kHeld, "uevent")] = "PCI_CLASS=30000\n";
  EXPECT_NE(refusal(scene, kHeld).find("no driver is bound to it: give it"), std::string::npos);
  // A name that only begins alike, or a line that only ends alike.
  scene.bus->files[scene.path(kFree, "uevent")] = "DRIVER=vfio-pci-core\n";
  EXPECT_NE(refusal(scene, kFree).find("vfio-pci-core holds it"), std::string::npos);
  scene.bus->files[scene.path(kFree, "uevent")] = "OLD_DRIVER=vfio-pci\n";
  EXPECT_NE(refusal(scene, kFree).find("no driver is bound"), std::string::npos);
}

TEST(PciFunctions, WithoutAnIommuItIsRefused) {
  Scene scene;
  scene.bus->files.erase("/sys/kernel/iommu_groups/31/devices/" + std::string(kFree));
  EXPECT_NE(refusal(scene, kFree).find("no IOMMU translates its memory accesses"),
            std::string::npos);
}

TEST(PciFunctions, OthersOfItsGroupAreLookedAt) {
  Scene scene;
  scene.bus->files[scene.path(kFreeAudio, "uevent")] = "DRIVER=snd_hda_intel\n";
  const std::string said = refusal(scene, kFree);
  EXPECT_NE(said.find("snd_hda_intel holds 0000:41:00.1, which shares its IOMMU group 31"),
            std::string::npos)
      << said;
  scene.bus->files[scene.path(kFreeAudio, "uevent")] = "DRIVER=pcieport\n";
  EXPECT_EQ(refusal(scene, kFree), "");
  scene.bus->files.erase(scene.path(kFreeAudio, "uevent"));
  EXPECT_NE(refusal(scene, kFree).find("its IOMMU group 31 is not known"), std::string::npos);
}

}  // namespace
}  // namespace tuff::devices
