// Objects of clang's for every generation, loaded: their descriptors as LLVM reads them, their code
// where the descriptors enter it, and damaged ones refused.
#include "devices/amd/load/code_object.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include "base/check.h"
#include "base/os.h"
#include "kernel/pipeline.h"
#include "render/amdgpu_kernels.h"
#include "render/c_dialect.h"
#include "base/compilers.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"

namespace tuff::devices::amd {
namespace {

struct Compiled {
  const Generation* generation;
  std::vector<render::Source> sources;
  std::vector<uint8_t> object;
};

// A few kernels with and without workgroup memory, and one with more values than registers.
Compiled compiled(const Generation& g) {
  const Target t = builtin_target(fmt::format("amdgpu-{}", g.name));
  Compiled out{&g, {}, {}};
  const render::Renderer& renderer = render::renderer_of(t);
  for (const kernel::LinearKernel& k :
       {render::elementwise_kernel(), render::row_sum_kernel(), render::shared_sum_kernel()})
    out.sources.push_back(renderer.render(k, t));
  for (const render::AstCase& c : render::shaped_cases())
    if (c.name == "matmul" || c.name == "softmax" || c.name == "attention gradient")
      out.sources.push_back(renderer.render(kernel::lower(c.ast, t), t));
  std::string text = render::c_amdgpu().prelude.whole();
  for (const render::Source& s : out.sources) text += s.text;
  out.object = compile_amdgpu({&text, 1}, std::string(g.name))[0];
  return out;
}

// What llvm-objdump says of a descriptor, directive by directive: "wavefront_size32" -> 1. It
// refuses the field for SGPRs that LLVM itself fills in for gfx10 and later, where hardware ignores
// it, so it is given a copy without.
std::map<std::string, int64_t> disassembled(const Compiled& c, const CodeObject& object,
                                            const std::string& symbol) {
  std::vector<uint8_t> bytes = c.object;
  const KernelDescriptor& d = object.descriptor(symbol);
  if (c.generation->can_wave32) {
    constexpr uint32_t kSgprs = 0xf << 6;
    // Found by its contents: registers and sizes are the same in file and image.
    std::vector<uint8_t> needle(8);
    std::memcpy(needle.data(), &d.rsrc1, 4);
    std::memcpy(needle.data() + 4, &d.rsrc2, 4);
    const uint32_t without = d.rsrc1 & ~kSgprs;
    for (auto at = bytes.begin();; ++at) {
      at = std::search(at, bytes.end(), needle.begin(), needle.end());
      if (at == bytes.end()) break;
      std::memcpy(&*at, &without, 4);
    }
  }
  const std::string path = fmt::format(
      "{}/tuff_amdgpu_{}.o", std::filesystem::temp_directory_path().string(), os::monotonic_ns());
  os::write_file(path, bytes);
  const os::ProcessResult r =
      os::Process({*os::find_program("llvm-objdump-19"), "-D", "-j", ".rodata",
                   "--disassemble-symbols=" + symbol + ".kd", path})
          .wait();
  std::filesystem::remove(path);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  std::map<std::string, int64_t> out;
  std::istringstream lines(r.out);
  constexpr std::string_view kDirective = ".amdhsa_";
  for (std::string word; lines >> word;) {
    if (!word.starts_with(kDirective)) continue;
    std::string value;
    lines >> value;
    out[word.substr(kDirective.size())] = std::atoll(value.c_str());
  }
  return out;
}

class AmdCodeObject : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(why_no_amdgpu_compiler(), ""); }
};

constexpr uint64_t kAddress = 0x7f00'1234'5000;

TEST_F(AmdCodeObject, KernelsOfEveryGenerationLoad) {
  for (const Generation& g : generations()) {
    const Compiled c = compiled(g);
    const CodeObject object(c.object, g);
    ASSERT_EQ(object.kernels().size(), c.sources.size()) << g.name;
    const std::vector<uint8_t> image = object.image(kAddress);
    for (const render::Source& s : c.sources) {
      const std::string what = fmt::format("{} {}", g.name, s.name);
      const KernelDescriptor& d = object.descriptor(s.symbol);
      const KernelCode k = object.kernel(s.symbol, kAddress, s.local);
      EXPECT_GE(d.group_bytes, s.shared_bytes) << what;
      EXPECT_LE(d.group_bytes, s.shared_bytes + 16) << what;
      // What is not in the block may not be read.
      EXPECT_LE(d.kernarg_bytes, s.args.size_bytes()) << what;
      EXPECT_GE(d.kernarg_bytes, s.args.buffer_count * 8 + s.args.scalar_count * 4) << what;
      EXPECT_TRUE(k.properties & kKernargSegmentPtr) << what;
      EXPECT_EQ((k.properties & kWave32) != 0, g.wave_size == 32) << what;
      EXPECT_EQ(k.entry % 256, 0u) << what;
      EXPECT_EQ(k.descriptor % 64, 0u) << what;
      EXPECT_EQ(k.rsrc2 >> 15 & 0x1ff, (d.group_bytes + 511) / 512) << what;
      EXPECT_EQ(k.rsrc1 >> 20 & 1, g.rsrc1_priv ? 1u : d.rsrc1 >> 20 & 1) << what;
      EXPECT_EQ(k.local[0], s.local[0]) << what;
      // A packet processor reads the descriptor from memory.
      int64_t entry = 0;
      std::memcpy(&entry, image.data() + d.offset + 16, 8);
      EXPECT_EQ(k.descriptor + uint64_t(entry), k.entry) << what;
      EXPECT_LT(d.entry, image.size()) << what;
    }
  }
}

TEST_F(AmdCodeObject, DescriptorsAreWhatLlvmReads) {
  ASSERT_TRUE(os::find_program("llvm-objdump-19")) << "install the package llvm-19";
  for (const char* name : {"gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1201"}) {
    const Generation& g = *find_generation(std::string_view(name));
    const Compiled c = compiled(g);
    const CodeObject object(c.object, g);
    for (const render::Source& s : c.sources) {
      const KernelDescriptor& d = object.descriptor(s.symbol);
      const std::map<std::string, int64_t> llvm = disassembled(c, object, s.symbol);
      const auto says = [&](const char* directive) {
        const auto it = llvm.find(directive);
        EXPECT_NE(it, llvm.end()) << name << " " << s.name << ": no " << directive;
        return it == llvm.end() ? -1 : it->second;
      };
      const std::string what = fmt::format("{} {}", name, s.name);
      EXPECT_EQ(says("group_segment_fixed_size"), d.group_bytes) << what;
      EXPECT_EQ(says("private_segment_fixed_size"), d.private_bytes) << what;
      EXPECT_EQ(says("kernarg_size"), d.kernarg_bytes) << what;
      EXPECT_EQ(says("user_sgpr_kernarg_segment_ptr"), (d.properties & kKernargSegmentPtr) != 0)
          << what;
      EXPECT_EQ(says("user_sgpr_dispatch_ptr"), (d.properties & kDispatchPtr) != 0) << what;
      EXPECT_EQ(says("system_sgpr_workgroup_id_x"), d.rsrc2 >> 7 & 1) << what;
      EXPECT_EQ(says("system_sgpr_workgroup_id_y"), d.rsrc2 >> 8 & 1) << what;
      EXPECT_EQ(says("system_sgpr_workgroup_id_z"), d.rsrc2 >> 9 & 1) << what;
      EXPECT_EQ(says("system_vgpr_workitem_id"), d.rsrc2 >> 11 & 3) << what;
      EXPECT_EQ(says("float_denorm_mode_32"), d.rsrc1 >> 16 & 3) << what;
      EXPECT_EQ(says("float_denorm_mode_16_64"), d.rsrc1 >> 18 & 3) << what;
      EXPECT_EQ(says("float_round_mode_32"), d.rsrc1 >> 12 & 3) << what;
      // f32 and f16 keep subnormals, as other devices' do.
      EXPECT_EQ(d.rsrc1 >> 16 & 15, 15u) << what;
      if (g.can_wave32) {
        EXPECT_EQ(says("wavefront_size32"), (d.properties & kWave32) != 0) << what;
      }
    }
  }
}

TEST_F(AmdCodeObject, ImagesOfTwoAddressesDifferInNothingThatIsRelative) {
  const Generation& g = *find_generation("gfx1100");
  const Compiled c = compiled(g);
  const CodeObject object(c.object, g);
  EXPECT_EQ(object.image(0), object.image(kAddress));
}

std::string refusal(std::span<const uint8_t> bytes, const Generation& g) {
  try {
    CodeObject object(bytes, g);
    return "";
  } catch (const CompileError& e) {
    return e.what();
  }
}

TEST_F(AmdCodeObject, RefusesWhatItIsNotFor) {
  const Generation& g = *find_generation("gfx1100");
  const Compiled c = compiled(g);
  EXPECT_NE(refusal(c.object, *find_generation("gfx1101")).find("gfx1101"), std::string::npos);
  std::vector<uint8_t> other = c.object;
  other[18] = 62;  // x86-64
  EXPECT_NE(refusal(other, g).find("AMDGPU"), std::string::npos);
  const CodeObject object(c.object, g);
  EXPECT_THROW(object.descriptor("nobody"), CompileError);
  const std::string calling =
      "void callee(void); __kernel void k(__global int* p) { callee(); p[0] = 1; }";
  EXPECT_NE(refusal(compile_amdgpu({&calling, 1}, "gfx1100")[0], g), "");
}

// Whatever the bytes are, a CompileError or kernels whose every access stays inside.
TEST_F(AmdCodeObject, DamagedObjectsNeverCrash) {
  const Generation& g = *find_generation("gfx1100");
  const Compiled c = compiled(g);
  int refused = 0, loaded = 0;
  const auto take = [&](std::span<const uint8_t> bytes) {
    try {
      const CodeObject object(bytes, g);
      const std::vector<uint8_t> image = object.image(kAddress);
      for (const auto& [name, d] : object.kernels()) {
        ASSERT_LE(d.offset + 64, image.size());
        ASSERT_LT(d.entry, image.size());
        (void)object.kernel(name, kAddress, {1, 1, 1});
      }
      ++loaded;
    } catch (const CompileError&) {
      ++refused;
    }
  };
  for (size_t n = 0; n < c.object.size(); n += n < 4096 ? 7 : 61)
    take(std::span(c.object).first(n));
  EXPECT_EQ(loaded, 0);
  std::mt19937 random(1);
  // Headers, tables and descriptors are a small part of the file: half of the flips go there.
  uint64_t sections = 0;
  std::memcpy(&sections, c.object.data() + 40, 8);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes = c.object;
    for (int flips = 1 + int(random() % 3); flips > 0; --flips) {
      const size_t at = random() % 4 == 0   ? random() % 64
                        : random() % 2 == 0 ? sections + random() % (bytes.size() - sections)
                                            : random() % bytes.size();
      bytes[at] ^= uint8_t(1u << random() % 8);
    }
    take(bytes);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(loaded, 1000);
}

}  // namespace
}  // namespace tuff::devices::amd
