// FWSEC out of VBIOSes written here: every layout, commands and signatures, and damaged ones.
#include "devices/nv/pci/vbios.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <random>

#include "base/error_of.h"
#include "emu/nv/pci/sample_vbios.h"

namespace tuff::devices::nv {
namespace {

using namespace emu::nv::samples;

void expect_counting(const std::vector<uint8_t>& bytes, size_t size_bytes, size_t first) {
  ASSERT_EQ(bytes.size(), size_bytes);
  EXPECT_EQ(bytes[0], uint8_t(first));
  EXPECT_EQ(bytes[8], uint8_t(first + 8));
  EXPECT_EQ(bytes.back(), uint8_t(first + size_bytes - 1));
}

TEST(NvVbios, FwsecOfVersion3) {
  for (const uint32_t before : {0u, 1u, 2u, 3u}) {
    for (const bool between : {false, true}) {
      for (const bool anew : {false, true}) {
        VbiosForm form;
        form.before = before;
        form.image_between = between;
        form.counted_anew = anew;
        const Fwsec f = read_fwsec(sample_vbios(form));
        EXPECT_FALSE(f.has_loader);
        expect_counting(f.code.bytes, 256, 0);
        expect_counting(f.data.bytes, 768, 256);
        EXPECT_EQ(f.code.physical, 0x100u);
        EXPECT_EQ(f.code.virtual_address, 0x2000u);
        EXPECT_EQ(f.data.physical, 0x40u);
        EXPECT_EQ(f.engine_mask, 0x400u);
        EXPECT_EQ(f.ucode_id, 9u);
        EXPECT_EQ(f.signature_offset, kSampleSignature);
        ASSERT_EQ(f.signatures.size(), 2u);
        EXPECT_EQ(f.signatures[0].back(), 0xa0);
        EXPECT_EQ(f.signatures[1].front(), 0xa1);
      }
    }
  }
}

TEST(NvVbios, FwsecOfVersion2) {
  VbiosForm form;
  form.descriptor_version = 2;
  const Fwsec f = read_fwsec(sample_vbios(form));
  EXPECT_TRUE(f.has_loader);
  expect_counting(f.code.bytes, 256, 0);
  expect_counting(f.data.bytes, 768, 256);
  EXPECT_EQ(f.entry, 0x20u);
  EXPECT_EQ(f.code.virtual_address, 0x1000u);
  EXPECT_EQ(f.secure_offset, 0x40u);
  EXPECT_EQ(f.secure_bytes, 128u);
}

TEST(NvVbios, DevelopmentAndProductionAreDistinct) {
  VbiosForm form;
  form.application = 0x45;
  EXPECT_EQ(read_fwsec(sample_vbios(form), true).ucode_id, 9u);
  const std::string said = error_of<IoError>([&] { read_fwsec(sample_vbios(form)); });
  EXPECT_EQ(said, "VBIOS: no program FWSEC for production is among its falcon programs");
  form.application = 0x05;  // the only one that older ones have
  EXPECT_EQ(read_fwsec(sample_vbios(form), true).ucode_id, 9u);
  EXPECT_EQ(read_fwsec(sample_vbios(form), false).ucode_id, 9u);
}

// ---- commands

uint32_t word_at(const std::vector<uint8_t>& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST(NvVbios, CommandsAreWrittenIntoTheData) {
  for (const uint32_t version : {2u, 3u}) {
    VbiosForm form;
    form.descriptor_version = version;
    const Fwsec f = read_fwsec(sample_vbios(form));
    const auto frts = fwsec_data(f, FwsecCommand::Frts, 0x5fe00000, 4);
    EXPECT_EQ(word_at(frts, kSampleMapper + 44), 0x15u);
    const std::vector<uint32_t> wanted = {1, 24, 0, 0, 0, 2, 1, 20, 0x5fe00, 256, 2};
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(word_at(frts, kSampleArguments + 4 * i), wanted[i]) << i;
    const auto sb = fwsec_data(f, FwsecCommand::Sb, 0, 4);
    EXPECT_EQ(word_at(sb, kSampleMapper + 44), 0x19u);
    // Nothing else is changed, but for the signature.
    size_t changed = 0;
    for (size_t i = 0; i < sb.size(); ++i) {
      const bool command = i - (kSampleMapper + 44) < 4 || i - kSampleArguments < 24;
      const bool signature = version == 3 && i - kSampleSignature < 384;
      if (!command && !signature) changed += sb[i] != f.data.bytes[i];
    }
    EXPECT_EQ(changed, 0u);
    EXPECT_EQ(frts[kSampleSignature], version == 3 ? 0xa1 : 0x00);
    EXPECT_EQ(frts[kSampleSignature + 383], version == 3 ? 0xa1 : 0x7f);
  }
}

TEST(NvVbios, TheSignatureIsThatOfTheFusedVersion) {
  VbiosForm form;
  form.signatures = 3;
  form.signature_versions = 0x8005;  // 0, 2 and 15
  Fwsec f = read_fwsec(sample_vbios(form));
  const auto first = [&](uint32_t version) {
    return fwsec_data(f, FwsecCommand::Sb, 0, version)[kSampleSignature];
  };
  EXPECT_EQ(first(0), 0xa0);
  EXPECT_EQ(first(2), 0xa1);
  EXPECT_EQ(first(15), 0xa2);
  for (const uint32_t version : {1u, 3u, 14u, 16u, 31u, 32u, ~0u}) {
    const std::string said = error_of<IoError>([&] { first(version); });
    EXPECT_NE(said.find("it is signed for versions 0x8005 (3 signatures), the GPU's fuses ask for"),
              std::string::npos)
        << said;
  }
  f.signatures.resize(2);  // bits without signatures
  EXPECT_THROW(first(15), IoError);
}

TEST(NvVbios, CommandsNeedRoom) {
  VbiosForm form;
  form.command_bytes = 40;
  const Fwsec f = read_fwsec(sample_vbios(form));
  const auto frts = [&](const Fwsec& g) {
    return error_of<IoError>([&] { fwsec_data(g, FwsecCommand::Frts, 0, 4); });
  };
  EXPECT_EQ(frts(f), "FWSEC: it takes commands of 40 bytes, not of 44");
  fwsec_data(f, FwsecCommand::Sb, 0, 4);
  Fwsec g = read_fwsec(sample_vbios());
  g.data.bytes[kSampleInterfaces + 12] = 5;
  EXPECT_EQ(frts(g), "FWSEC: it has no interface of commands");
  g = read_fwsec(sample_vbios());
  g.interface_offset = 766;
  EXPECT_NE(frts(g).find("the table of its interfaces"), std::string::npos);
  g.interface_offset = ~0u;
  EXPECT_NE(frts(g).find("lies beyond its 768 bytes"), std::string::npos);
  g = read_fwsec(sample_vbios());
  g.data.bytes[kSampleMapper + 9] = 3;  // arguments at 0x380
  EXPECT_NE(frts(g).find("a command's arguments"), std::string::npos);
}

// ---- damage

TEST(NvVbios, SaysWhatIsWrong) {
  const auto said = [](const Rom& rom) { return error_of<IoError>([&] { read_fwsec(rom); }); };
  EXPECT_NE(said({}).find("the signature of its first image (2 bytes at 0x0)"), std::string::npos);
  EXPECT_NE(said(Rom(4096)).find("no image begins with 0x0000"), std::string::npos);
  EXPECT_NE(said(Rom(4096, 0xff)).find("no image begins with 0xffff"), std::string::npos)
      << "what a GPU that is switched off reads as";
  Rom rom = sample_vbios();
  rom[0x40] = 'Q';
  EXPECT_NE(said(rom).find("has no data structure at 0x40"), std::string::npos);
  rom = sample_vbios();
  put16(rom, 0x50, 0);
  EXPECT_NE(said(rom).find("the image at 0x0 has no bytes"), std::string::npos);
  rom = sample_vbios();
  put16(rom, 0x50, 4);
  EXPECT_NE(said(rom).find("no image is at 0x800"), std::string::npos) << said(rom);
  rom = sample_vbios();
  rom[0x1b0 + 11] ^= 1;
  EXPECT_NE(said(rom).find("no table of tables (BIT) with a right checksum"), std::string::npos);
  rom = sample_vbios();
  rom[1024 + 512 + 0x101] = 4;
  EXPECT_NE(said(rom).find("none of versions 2 and 3"), std::string::npos);
  rom = sample_vbios();
  rom.resize(rom.size() - 1);
  EXPECT_NE(said(rom).find("the last image"), std::string::npos);
  VbiosForm form;
  form.before = 4;
  EXPECT_NE(said(sample_vbios(form)).find("values for registers of version 4"), std::string::npos);
}

// Whatever is damaged, it is read or refused with an IoError; commands are, too.
TEST(NvVbios, DamagedOnesAreReadOrRefused) {
  std::mt19937 random(1);
  size_t refused = 0, total = 0;
  for (int seed = 0; seed < 3000; ++seed) {
    VbiosForm form;
    form.descriptor_version = 2 + random() % 2;
    form.before = random() % 4;
    form.counted_anew = random() % 2;
    Rom rom = sample_vbios(form);
    for (uint32_t n = 1 + random() % 4; n > 0; --n)
      rom[random() % (random() % 2 ? rom.size() : 0x700)] = uint8_t(random());
    if (random() % 8 == 0) rom.resize(random() % rom.size());
    ++total;
    try {
      const Fwsec f = read_fwsec(rom);
      fwsec_data(f, FwsecCommand::Frts, 0x1000, uint32_t(random() % 6));
    } catch (const IoError& e) {
      EXPECT_LT(std::string(e.what()).size(), 200u);
      ++refused;
    }
  }
  EXPECT_GT(refused, total / 10);
  EXPECT_LT(refused, total - total / 10);
}

}  // namespace
}  // namespace tuff::devices::nv
