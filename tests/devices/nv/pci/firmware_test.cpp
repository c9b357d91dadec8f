// Firmware files written here: what is read of them, where they are looked for, what is said when
// they are not there, and damaged ones.
#include "devices/nv/pci/installed_firmware.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <map>
#include <random>
#include <set>

#include "base/error_of.h"
#include "emu/nv/pci/sample_firmware.h"

namespace tuff::devices::nv {
namespace {

using namespace emu::nv::samples;

TEST(NvFirmware, Booters) {
  const Booter b = read_booter(sample_booter(), "booter");
  EXPECT_EQ(b.image.size(), kBooterBytes);
  EXPECT_EQ(b.code_offset, 256u);
  EXPECT_EQ(b.code_bytes, 256u);
  EXPECT_EQ(b.data_offset, kBooterData);
  EXPECT_EQ(b.data_bytes, 512u);
  EXPECT_EQ(b.engine_mask, 1u);
  EXPECT_EQ(b.ucode_id, 3u);
  ASSERT_EQ(b.signatures.size(), 3u);
  EXPECT_EQ(b.signatures[1], std::vector<uint8_t>(32, 0xb1));
}

TEST(NvFirmware, TheLastSignatureIsTheFirstVersions) {
  const Booter b = read_booter(sample_booter(), "booter");
  for (uint32_t version = 0; version < 3; ++version) {
    const auto image = signed_image(b, version);
    EXPECT_EQ(image[kBooterSignature], 0xb2 - version);
    EXPECT_EQ(image[kBooterSignature + 31], 0xb2 - version);
    EXPECT_EQ(image[kBooterSignature - 1], b.image[kBooterSignature - 1]);
    EXPECT_EQ(image[kBooterSignature + 32], b.image[kBooterSignature + 32]);
  }
  for (const uint32_t version : {3u, ~0u}) {
    const std::string said = error_of<IoError>([&] { signed_image(b, version); });
    EXPECT_NE(said.find("of 3 signatures none is for version"), std::string::npos) << said;
  }
  const Booter one = read_booter(sample_booter(1), "booter");
  EXPECT_EQ(signed_image(one, 7)[kBooterSignature], 0xb0);
}

TEST(NvFirmware, Bootloaders) {
  const Bootloader b = read_bootloader(sample_bootloader(), "bootloader");
  EXPECT_EQ(b.image.size(), 0x400u);
  EXPECT_EQ(b.app_version, 42u);
  EXPECT_EQ(b.code_offset, 0u);
  EXPECT_EQ(b.data_offset, 0x200u);
  EXPECT_EQ(b.manifest_offset, 0x300u);
}

TEST(NvFirmware, TheResourceManager) {
  const GspImage g = read_gsp_image(sample_gsp(), "gsp", "ad10x");
  EXPECT_EQ(g.image, std::vector<uint8_t>(600, 'g'));
  EXPECT_EQ(g.signature, std::vector<uint8_t>(64, 't'));
  EXPECT_EQ(g.version, "570.144");
  const std::string said =
      error_of<IoError>([&] { read_gsp_image(sample_gsp(), "gsp", "gb10x"); });
  EXPECT_EQ(said, "gsp: it has no section .fwsignature_gb10x");
  EXPECT_THROW(read_gsp_image(sample_gsp(), "gsp", "ad10"), IoError) << "a part of a name";
}

// ---- where they are

class Folders final : public os::Kernel {
 public:
  int open(const std::string&, int) override { return -ENOENT; }
  int close(int) override { return 0; }
  int ioctl(int, unsigned long, void*) override { return -ENOTTY; }
  intptr_t mmap(void*, size_t, int, int, int, uint64_t) override { return -ENODEV; }
  int munmap(void*, size_t) override { return 0; }
  int read_text(const std::string& path, std::string& text) override {
    const auto found = files.find(path);
    if (found == files.end()) return -ENOENT;
    text = found->second;
    return 0;
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    names.clear();
    for (const auto& [file, bytes] : files)
      if (file.starts_with(path + "/")) names.push_back(file.substr(path.size() + 1));
    return names.empty() ? -ENOENT : 0;
  }
  void put(const std::string& path, const Rom& bytes) {
    files[path] = std::string(bytes.begin(), bytes.end());
  }
  void install(const std::string& folder, const std::string& version) {
    put(folder + "/gsp-" + version + ".bin", sample_gsp(version));
    put(folder + "/bootloader-" + version + ".bin", sample_bootloader());
    put(folder + "/booter_load-" + version + ".bin", sample_booter(2));
    put(folder + "/booter_unload-" + version + ".bin", sample_booter(1));
  }
  std::map<std::string, std::string> files;
};

const ChipFamily& ampere_chips() { return *known_chips()[0].family; }
const ChipFamily& hopper_chips() {
  return *std::ranges::find(known_chips(), std::string("GH100"), &Chip::name)->family;
}

const std::string kFolder = "/lib/firmware/nvidia/ga102/gsp";

TEST(NvFirmware, WhatFspStarts) {
  const Fmc f = read_fmc(sample_fmc(), "fmc");
  EXPECT_EQ(f.image, std::vector<uint8_t>(500, 'i'));
  EXPECT_EQ(f.hash, std::vector<uint8_t>(48, 'h'));
  EXPECT_EQ(f.public_key, std::vector<uint8_t>(97, 'k'));
  EXPECT_EQ(f.signature, std::vector<uint8_t>(96, 's'));
  EXPECT_EQ(error_of<IoError>([] { read_fmc(sample_gsp(), "fmc"); }),
            "fmc: it is no ELF file of 32 bits");
  const auto with = [](size_t hash, size_t key) {
    return sample_elf({{"image", "i"}, {"hash", std::string(hash, 'h')},
                       {"publickey", std::string(key, 'k')}, {"signature", "s"}}, 32);
  };
  EXPECT_EQ(error_of<IoError>([&] { read_fmc(with(47, 97), "fmc"); }),
            "fmc: its hash, key and signature have 47, 97 and 1 bytes");
  EXPECT_THROW(read_fmc(with(48, 385), "fmc"), IoError);
}

TEST(NvFirmware, TheNewestThatIsKnownIsTaken) {
  Folders kernel;
  kernel.install(kFolder, "535.113.01");
  kernel.install(kFolder, "999.1");
  EXPECT_EQ(load_firmware(kernel, ampere_chips()).version, "535.113.01");
  kernel.install("/usr/lib/firmware/nvidia/ga102/gsp", "570.144");
  const Firmware f = load_firmware(kernel, ampere_chips());
  EXPECT_EQ(f.version, "570.144");
  EXPECT_EQ(f.folder, "/usr/lib/firmware/nvidia/ga102/gsp");
  EXPECT_EQ(f.gsp.signature[0], 's');
  EXPECT_EQ(f.load.signatures.size(), 2u);
  EXPECT_EQ(f.unload.signatures.size(), 1u);
  EXPECT_EQ(f.bootloader.app_version, 42u);
}

TEST(NvFirmware, HopperHasOtherFiles) {
  Folders kernel;
  const std::string folder = "/lib/firmware/nvidia/gh100/gsp";
  kernel.install(folder, "570.144");
  kernel.files.erase(folder + "/booter_load-570.144.bin");
  EXPECT_EQ(error_of<Unsupported>([&] { load_firmware(kernel, hopper_chips()); }),
            "NV: " + folder + "/fmc-570.144.bin cannot be read: No such file or directory");
  kernel.put(folder + "/fmc-570.144.bin", sample_fmc());
  const Firmware f = load_firmware(kernel, hopper_chips());
  EXPECT_EQ(f.fmc.hash.size(), 48u);
  EXPECT_EQ(f.gsp.signature[0], 'u');
}

TEST(NvFirmware, WhatIsMissingIsNamed) {
  Folders kernel;
  const auto said = [&] {
    return error_of<Unsupported>([&] { load_firmware(kernel, ampere_chips()); });
  };
  EXPECT_EQ(said(),
            "NV: no firmware of versions 570.144, 535.113.01 is in /lib/firmware/nvidia/ga102/gsp, "
            "/usr/lib/firmware/nvidia/ga102/gsp; Debian has it in firmware-nvidia-graphics "
            "(non-free-firmware)");
  kernel.files[kFolder + "/gsp-570.144.bin.xz"] = "packed";
  EXPECT_NE(said().find("gsp-570.144.bin.xz is compressed"), std::string::npos) << said();
  kernel.install(kFolder, "570.144");
  kernel.files.erase(kFolder + "/booter_load-570.144.bin");
  EXPECT_EQ(said(), "NV: " + kFolder + "/booter_load-570.144.bin cannot be read: No such file or "
                    "directory");
  kernel.install(kFolder, "570.144");
  kernel.put(kFolder + "/gsp-570.144.bin", sample_gsp("570.86"));
  const std::string other =
      error_of<IoError>([&] { load_firmware(kernel, ampere_chips()); });
  EXPECT_EQ(other, kFolder + "/gsp-570.144.bin: it says that its version is 570.86");
}

// ---- damage

TEST(NvFirmware, SaysWhatIsWrong) {
  const auto booter = [](const Rom& file) {
    return error_of<IoError>([&] { read_booter(file, "b"); });
  };
  EXPECT_NE(booter({}).find("b: its container's header (4 bytes at 0x0) lies beyond its 0 bytes"),
            std::string::npos);
  EXPECT_NE(booter(sample_gsp()).find("it begins with 0x464c457f"), std::string::npos);
  Rom file = sample_booter();
  file.resize(file.size() - 1);
  EXPECT_NE(booter(file).find("its data (1024 bytes at"), std::string::npos) << booter(file);
  const uint32_t numbers = 60 + 96;
  const auto with = [&](size_t at, uint32_t value) {
    Rom damaged = sample_booter();
    put32(damaged, at, value);
    return booter(damaged);
  };
  EXPECT_NE(with(numbers + 20, 0).find("0 signatures are in 96 bytes"), std::string::npos);
  EXPECT_NE(with(numbers + 20, 5).find("5 signatures are in 96 bytes"), std::string::npos);
  EXPECT_NE(with(numbers, kBooterBytes).find("its signature (32 bytes"), std::string::npos);
  EXPECT_NE(with(numbers, 100).find("before its data"), std::string::npos);
  EXPECT_NE(with(numbers + 24 + 16, 0).find("it has no secure code"), std::string::npos);
  EXPECT_NE(with(numbers + 24 + 20, 1025).find("its code"), std::string::npos);
  EXPECT_NE(with(24 + 20, 8).find("its headers have 8 and 36 bytes"), std::string::npos);
  Rom loader = sample_bootloader();
  put32(loader, 24 + 4 * 8, 0x301);
  EXPECT_EQ(error_of<IoError>([&] { read_bootloader(loader, "l"); }),
            "l: its manifest (256 bytes at 0x301) is no part of its 1024 bytes of data");
  EXPECT_EQ(error_of<IoError>([&] { read_gsp_image(sample_booter(), "g", "ga10x"); }),
            "g: it is no ELF file of 64 bits");
  EXPECT_NE(error_of<IoError>([&] {
              read_gsp_image(sample_elf({{".fwimage", ""}}), "g", "ga10x");
            }).find("it has no section .fwimage"),
            std::string::npos);
}

TEST(NvFirmware, DamagedOnesAreReadOrRefused) {
  std::mt19937 random(1);
  size_t refused = 0;
  constexpr size_t total = 3000;
  for (size_t n = 0; n < total; ++n) {
    const size_t kind = n % 4;
    Rom file = kind == 0   ? sample_booter()
               : kind == 1 ? sample_bootloader()
               : kind == 2 ? sample_gsp()
                           : sample_fmc();
    const size_t bytes = kind == 3 ? 240 : kind == 2 ? 320 : 200;
    const size_t from = kind < 2 ? 0 : file.size() - bytes;
    for (size_t i = 0; i < 1 + random() % 4; ++i)
      file[from + random() % bytes] = uint8_t(random());
    if (random() % 8 == 0) file.resize(random() % file.size());
    try {
      if (kind == 0)
        signed_image(read_booter(file, "b"), 0);
      else if (kind == 1)
        read_bootloader(file, "l");
      else if (kind == 2)
        read_gsp_image(file, "g", "ga10x");
      else
        read_fmc(file, "f");
    } catch (const IoError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, total / 10);
  EXPECT_LT(refused, total - total / 10);
}

}  // namespace
}  // namespace tuff::devices::nv
