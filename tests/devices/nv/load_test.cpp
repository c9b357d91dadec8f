// Object files: damaged ones, those of another GPU, and the assembler that the driver brings along.
#include "base/split_mix.h"
#include "devices/nv/fixture.h"
#include "devices/nv/load/driver_assembler.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

std::string ptx() {
  const std::vector<uint8_t>& bytes = *binaries()[0].bytes;
  return {bytes.begin(), bytes.end()};
}

TEST(NvLoad, DamagedObjectFilesAreErrorsAndNothingElse) {
  SplitMix64 random(1);
  size_t refused = 0;
  for (const bool modern : {false, true}) {
    const std::vector<uint8_t> whole = emu::nv::assemble(ptx(), 86, modern);
    Cubin(whole, ampere()).kernel("fill", 1 << 20, {32, 1, 1});
    for (int round = 0; round < 2000; ++round) {
      std::vector<uint8_t> bytes = whole;
      if (round % 4 == 0) bytes.resize(random.below(bytes.size()));
      // The headers, or the tables behind the text.
      const size_t text = ptx().size();
      for (int k = 0; k < 3 && !bytes.empty(); ++k) {
        const size_t at = random.below(2u) ? random.below(64u)
                                           : bytes.size() - 1 - random.below(bytes.size() - text / 2);
        bytes[std::min(at, bytes.size() - 1)] = uint8_t(random.below(256u));
      }
      try {
        const Cubin cubin(bytes, ampere());
        cubin.image(1 << 20);
        cubin.kernel("fill", 1 << 20, {32, 1, 1});
      } catch (const CompileError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(NvLoad, OfAnotherGpuIsRefused) {
  const std::string said =
      error_of<CompileError>([] { Cubin(emu::nv::assemble(ptx(), 90), ampere()); });
  EXPECT_NE(said.find("for sm_90; the GPU is sm_86"), std::string::npos) << said;
}

TEST(NvLoad, TheDriversAssembler) {
  const std::vector<uint8_t> object = assemble_by_driver(ptx(), 86, TUFF_FAKE_PTX_COMPILER);
  EXPECT_EQ(object, emu::nv::assemble(ptx(), 86));
  const std::string said = error_of<CompileError>(
      [] { assemble_by_driver(".version 7.8\nnonsense", 86, TUFF_FAKE_PTX_COMPILER); });
  EXPECT_NE(said.find("--gpu-name=sm_86"), std::string::npos) << said;
  EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
  const std::string none =
      error_of<Unsupported>([] { assemble_by_driver(ptx(), 86, "/nonexistent/libcompiler.so"); });
  EXPECT_NE(none.find("/nonexistent/libcompiler.so"), std::string::npos) << none;
  EXPECT_NE(none.find("libnvidia-ptxjitcompiler1"), std::string::npos) << none;
}

// The machine's kernel driver with the driver's assembler: all of iface NVK but the hardware.
TEST(NvLoad, KernelsOfTheDriversAssemblerRun) {
  Machine machine("sm:90");
  machine.iface.assemble = [](const std::string& text, uint32_t sm) {
    return assemble_by_driver(text, sm, TUFF_FAKE_PTX_COMPILER);
  };
  Opened gpu(machine);
  const Span a = gpu.words(32);
  gpu.run({gpu.dispatch(kTurn, {a}, 1, 1)});
  EXPECT_EQ(gpu.read(a)[31], 1u);
}

}  // namespace
}  // namespace tuff::devices::nv
