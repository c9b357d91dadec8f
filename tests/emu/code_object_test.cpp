// Code objects as files: relocatable and linked ones run alike, damaged ones are refused.
#include "emu/rdna/code_object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "base/split_mix.h"
#include "emu/llvm_tools.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint64_t kCode = 0x100000000, kKernarg = 0x200000000, kData = 0x300000000;

// Adds what a table of constants and a pointer to it (a relocation of 64 bits) hold.
// Version 4, which linkers of LLVM 14 know.
constexpr const char* kSource = R"(
.amdhsa_code_object_version 4
.text
.globl lookup
.p2align 8
.type lookup,@function
lookup:
  s_load_b64 s[4:5], s[0:1], 0x0
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, table@rel32@lo+4
  s_addc_u32 s7, s7, table@rel32@hi+12
  s_load_b64 s[8:9], s[6:7], 0x8
  s_load_b32 s10, s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_b32 s11, s[8:9], 0x0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s10, s10, s11
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, s10
  global_store_b32 v1, v2, s[4:5]
  s_endpgm
.size lookup, .-lookup
.section .data.rel.ro,"aw",@progbits
.p2align 3
table:
  .long 40, 0
  .quad number
number:
  .long 2
.rodata
.p2align 6
.amdhsa_kernel lookup
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 4
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
)";

class CodeObjects : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
};

uint32_t result_of(const std::vector<uint8_t>& file) {
  CodeObject object(file, kCode);
  std::vector<uint8_t> data(64), kernarg(64);
  std::memcpy(kernarg.data(), &kData, sizeof kData);
  RangeMemory memory;
  memory.map(kCode, object.image(), false);
  memory.map(kKernarg, kernarg, false);
  memory.map(kData, data);
  const Outcome outcome = run(launch_of(object.kernel("lookup"), kKernarg), memory);
  EXPECT_EQ(to_text(outcome.findings), "");
  uint32_t value;
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

TEST_F(CodeObjects, LinkedAndUnlinkedOnesRunAlike) {
  const std::vector<uint8_t> unlinked = testing::assemble(kSource);
  EXPECT_EQ(result_of(unlinked), 42u);
  EXPECT_EQ(result_of(testing::link(unlinked)), 42u);
}

TEST_F(CodeObjects, MissingKernelsAreNamedWithThoseThatAreThere) {
  const CodeObject object(testing::assemble(kSource), kCode);
  EXPECT_EQ(object.kernels(), std::vector<std::string>{"lookup"});
  try {
    (void)object.kernel("other");
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("there are: lookup"), std::string::npos) << e.what();
  }
}

TEST_F(CodeObjects, FilesOfOtherMachinesAreRefused) {
  std::vector<uint8_t> file = testing::assemble(kSource);
  file[18] = 62;  // x86-64
  EXPECT_THROW(CodeObject(file, kCode), CompileError);
}

// Read or refused, whatever the bytes are.
class Damaged {
 public:
  void take(std::span<const uint8_t> bytes) {
    try {
      const CodeObject object(bytes, kCode);
      for (const std::string& name : object.kernels()) (void)object.kernel(name);
      (void)object.code();
      ++read;
    } catch (const CompileError&) {
      ++refused;
    }
  }
  int read = 0, refused = 0;
};

void damage(const std::vector<uint8_t>& file) {
  Damaged cut, flipped;
  for (size_t n = 0; n < file.size(); n += 3) cut.take(std::span(file).first(n));
  EXPECT_EQ(cut.read, 0);
  SplitMix64 random(1);
  uint64_t sections = 0;
  std::memcpy(&sections, file.data() + 40, 8);
  for (int k = 0; k < 6000; ++k) {
    std::vector<uint8_t> bytes = file;
    for (uint64_t flips = 1 + random.below(3u); flips > 0; --flips) {
      const uint64_t choice = random.below(4u);
      const size_t at = choice == 0   ? random.below(256u)
                        : choice == 1 ? sections + random.below(bytes.size() - sections)
                                      : random.below(bytes.size());
      bytes[at] ^= uint8_t(1u << random.below(8u));
    }
    flipped.take(bytes);
  }
  EXPECT_GT(flipped.refused, 500);
  EXPECT_GT(flipped.read, 500);
}

TEST_F(CodeObjects, DamagedOnesAreReadOrRefused) {
  const std::vector<uint8_t> unlinked = testing::assemble(kSource);
  damage(unlinked);
  damage(testing::link(unlinked));
}

// Sums that wrap around 2^64, each at the place that once added without a look.
TEST_F(CodeObjects, SizesThatWrapAreRefused) {
  const std::vector<uint8_t> file = testing::assemble(kSource);
  uint64_t sections = 0;
  uint16_t count = 0;
  std::memcpy(&sections, file.data() + 40, 8);
  std::memcpy(&count, file.data() + 60, 2);
  constexpr size_t kHeader = 64;
  for (uint16_t k = 1; k < count; ++k) {
    for (const size_t field : {24u, 32u, 40u}) {  // offset, size, link
      std::vector<uint8_t> bytes = file;
      const uint64_t most = field == 40 ? 0xFFFFFFFF : ~uint64_t(0) - 15;
      std::memcpy(bytes.data() + sections + k * kHeader + field, &most, field == 40 ? 4 : 8);
      Damaged taken;
      taken.take(bytes);
      EXPECT_EQ(taken.read + taken.refused, 1);
    }
  }
}

}  // namespace
}  // namespace tuff::emu::rdna
