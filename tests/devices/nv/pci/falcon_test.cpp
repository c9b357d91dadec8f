// A falcon through the emulated bus and its IOMMU: what a program finds loaded, in which order
// registers are written, and a falcon that does not answer.
#include "devices/nv/pci/falcon.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include "base/error_of.h"
#include "emu/nv/pci/falcon_model.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kSlot = "0000:41:00.0";
constexpr uint32_t kBoot0Value = 0xb72000a1;

class FalconGpu final : public emu::pci::Function {
 public:
  uint32_t read(size_t, uint64_t offset) override {
    if (offset == 0) return kBoot0Value;
    return inside(offset) ? model->read(uint32_t(offset - kSec2Falcon)) : ~0u;
  }
  void write(size_t, uint64_t offset, uint32_t value) override {
    if (inside(offset)) model->write(uint32_t(offset - kSec2Falcon), value);
  }
  static bool inside(uint64_t offset) {
    return offset - kSec2Falcon < emu::nv::FalconModel::kBytes;
  }
  std::unique_ptr<emu::pci::HostMemory> memory;
  std::unique_ptr<emu::nv::FalconModel> model;
};

struct FalconScene {
  FalconScene() {
    bus->add({kSlot, 0x10de, 0x2204, 0x030000, "vfio-pci", "7", {1u << 24}, gpu});
    gpu->memory = bus->host_memory(kSlot);
    gpu->model = std::make_unique<emu::nv::FalconModel>(
        *gpu->memory, [this](const std::string& why) { mistakes.push_back(why); });
    device = std::make_unique<PciDevice>(bus, pci_function(*bus, kSlot));
    device->start_dma();
    memory = std::make_unique<DmaMemory>(*device, 0x4000);
    for (size_t i = 0; i < memory->size_bytes(); ++i)
      memory->host()[i] = std::byte(uint8_t(i / 256 + i));
  }
  ~FalconScene() {
    if (expect_mistakes) return;
    EXPECT_EQ(mistakes, std::vector<std::string>());
  }
  emu::nv::FalconModel& model() { return *gpu->model; }
  uint8_t byte(size_t i) const { return uint8_t(i / 256 + i); }
  FalconProgram program() const {
    FalconProgram p;
    p.code_address = memory->address() + 0x1000;
    p.code_bytes = 700;  // three transfers
    p.code_physical = 0x400;
    p.code_virtual = 0x300;
    p.data_address = memory->address() + 0x2000;
    p.data_bytes = 512;
    p.data_physical = 0x100;
    p.signature_offset = 0x40;
    p.engine_mask = 1;
    p.ucode_id = 3;
    return p;
  }

  std::vector<std::string> mistakes;
  bool expect_mistakes = false;
  emu::Reports reports{[this](const emu::Finding& f) { mistakes.push_back(to_text(f)); }};
  std::shared_ptr<FalconGpu> gpu = std::make_shared<FalconGpu>();
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
  std::unique_ptr<PciDevice> device;
  std::unique_ptr<DmaMemory> memory;
};

TEST(NvFalcon, LoadsAndRunsAProgram) {
  for (const bool riscv : {false, true}) {
    for (const bool alias : {false, true}) {
      FalconScene s;
      s.model().has_riscv = riscv;
      s.model().through_alias = alias;
      s.model().program = [&](emu::nv::FalconModel& m) {
        for (const size_t i : {0u, 255u, 256u, 699u})
          EXPECT_EQ(m.code[0x400 + i], s.byte(0x1000 + i)) << i;
        for (const size_t i : {0u, 511u}) EXPECT_EQ(m.data[0x100 + i], s.byte(0x2000 + i)) << i;
        EXPECT_EQ(m.code[0x3ff], 0);
        EXPECT_EQ(m.code[0x700], 0);
        EXPECT_EQ(m.tags, (std::map<uint32_t, uint32_t>{
                              {0x400, 0x300}, {0x500, 0x400}, {0x600, 0x500}}));
        EXPECT_EQ(m.get(0x84), kBoot0Value);
        EXPECT_EQ(m.get(0x1198), 3u);
        EXPECT_EQ(m.get(0x119c), 1u);
        EXPECT_EQ(m.get(0x1210), 0x40u);
        EXPECT_EQ(m.get(0x40), 0x89abcdefu);
        EXPECT_EQ(m.get(0x44), 0x1234567u);
        m.write(0x40, 0);
        m.write(0x44, 77);
        return true;
      };
      Falcon falcon(*s.device, kSec2Falcon, 1000);
      falcon.reset();
      const auto mailboxes = falcon.run(s.program(), 0x123456789abcdef);
      EXPECT_EQ(mailboxes, std::make_pair(0u, 77u));
      EXPECT_EQ(s.model().starts, 1u);
      falcon.reset();
      EXPECT_EQ(s.model().code[0x400], 0) << "emptied";
    }
  }
}

TEST(NvFalcon, ItsOtherCore) {
  FalconScene s;
  Falcon falcon(*s.device, kSec2Falcon, 1000);
  falcon.reset();
  EXPECT_FALSE(falcon.runs_riscv());
  falcon.reset_to_riscv();
  EXPECT_TRUE(s.model().riscv_chosen);
  EXPECT_FALSE(falcon.runs_riscv()) << "another processor starts it";
  s.model().riscv = true;
  EXPECT_TRUE(falcon.runs_riscv());
}

TEST(NvFalcon, OneThatDoesNotAnswerIsLost) {
  FalconScene s;
  s.model().program = [](emu::nv::FalconModel&) { return false; };
  Falcon falcon(*s.device, kSec2Falcon, 20);
  falcon.reset();
  const std::string said = error_of<DeviceLost>([&] { falcon.run(s.program(), 0); });
  EXPECT_EQ(said, "0000:41:00.0: the falcon at 0x840000 did not halt within 20 ms (register 0x100 "
                  "has 0x40)");
  s.model().slowness = ~0u;
  EXPECT_NE(error_of<DeviceLost>([&] { falcon.reset(); }).find("did not empty its memory"),
            std::string::npos);
}

// The model tells what a driver must not do.
TEST(NvFalcon, MistakesAreTold) {
  const auto mistake_of = [](const std::function<void(FalconScene&, Falcon&)>& act) {
    FalconScene s;
    s.expect_mistakes = true;
    Falcon falcon(*s.device, kSec2Falcon, 1000);
    act(s, falcon);
    return s.mistakes.empty() ? "" : s.mistakes[0];
  };
  EXPECT_EQ(mistake_of([](FalconScene& s, Falcon&) { s.model().write(0x40, 1); }),
            "0x40 is written before the end of a reset");
  EXPECT_EQ(mistake_of([](FalconScene& s, Falcon&) {
              s.model().write(0x3c0, 1);
              s.model().read(0xf4);
            }),
            "0xf4 is read in reset");
  EXPECT_EQ(mistake_of([](FalconScene& s, Falcon&) {
              s.model().write(0x3c0, 1);
              s.model().write(0x3c0, 0);
              s.model().write(0x40, 1);
            }),
            "0x40 is written while memory is emptied");
  EXPECT_EQ(mistake_of([](FalconScene& s, Falcon& falcon) {
              falcon.reset_to_riscv();
              falcon.run(s.program(), 0);
            }),
            "started before its core was chosen");
  EXPECT_EQ(mistake_of([](FalconScene& s, Falcon& falcon) {
              falcon.reset();
              FalconProgram p = s.program();
              p.code_physical = 0xff00;
              falcon.run(p, 0);
            }),
            "a transfer to 0x10000 of 0x10000 bytes");
  EXPECT_NE(mistake_of([](FalconScene& s, Falcon& falcon) {
              falcon.reset();
              FalconProgram p = s.program();
              p.data_address += 0x1f00;  // its second half lies behind the memory
              falcon.run(p, 0);
            }).find("the IOMMU has nothing there"),
            std::string::npos);
}

}  // namespace
}  // namespace tuff::devices::nv
