// Firmware files written here: what is read of them, where they are looked for, what is said when
// they are not there, and damaged ones.
#include "devices/amd/pci/firmware.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tuff/error.h>

#include <functional>
#include <map>
#include <random>

#include "base/error_of.h"
#include "emu/amd/pci/sample_firmware.h"

namespace tuff::devices::amd {
namespace {

using namespace emu::amd::samples;

// Of the samples, every part begins with its type and counts up.
template <class Part>
void expect_part(const Part& part, uint32_t type, size_t size_bytes) {
  EXPECT_EQ(uint32_t(part.type), type);
  ASSERT_EQ(part.bytes.size(), size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) ASSERT_EQ(part.bytes[i], uint8_t(type + i)) << type;
}

TEST(AmdFirmware, ComponentsOfTheSecurityProcessor) {
  const auto sos = read_sos(sample_sos(), "sos");
  ASSERT_EQ(sos.size(), 9u) << "a type that is not known is left out";
  const uint32_t types[] = {3, 5, 2, 7, 8, 9, 10, 4, 1};
  for (size_t i = 0; i < 9; ++i) expect_part(sos[i], types[i], 64);
  for (const uint32_t missing : {1u, 2u, 3u, 4u}) {
    std::vector<uint32_t> rest = {1, 2, 3, 4};
    std::erase(rest, missing);
    const std::string why = error_of<IoError>([&] { read_sos(sample_sos(rest), "sos"); });
    EXPECT_NE(why.find(fmt::format("no component {}", missing)), std::string::npos) << why;
  }
}

TEST(AmdFirmware, PartsOfBlocks) {
  expect_part(read_smu(sample_smu(), "smu"), 18, 128);
  const auto sdma = read_sdma(sample_sdma(), "sdma");
  expect_part(sdma[0], 72, 128);
  expect_part(sdma[1], 71, 64);
  const MecFirmware mec = read_mec(sample_mec(), "mec");
  EXPECT_EQ(mec.start, kSampleMecStart);
  ASSERT_EQ(mec.parts.size(), 5u);
  expect_part(mec.parts[0], 89, 128);
  for (uint32_t pipe = 0; pipe < 4; ++pipe) {
    EXPECT_EQ(uint32_t(mec.parts[1 + pipe].type), 94 + pipe);
    EXPECT_EQ(mec.parts[1 + pipe].bytes, mec.parts[1].bytes) << "one stack for all pipes";
  }
  const auto imu = read_imu(sample_imu(), "imu");
  expect_part(imu[0], 68, 96);
  expect_part(imu[1], 69, 64);
}

TEST(AmdFirmware, VersionsOfRlc) {
  const auto types = [](uint16_t minor, bool lists) {
    std::vector<uint32_t> out;
    for (const auto& p : read_rlc(sample_rlc(minor, lists), "rlc")) {
      expect_part(p, uint32_t(p.type), p.type == FirmwareType::RlcG ? 64 : 32);
      out.push_back(uint32_t(p.type));
    }
    return out;
  };
  using Types = std::vector<uint32_t>;
  EXPECT_EQ(types(0, false), (Types{8}));
  EXPECT_EQ(types(1, true), (Types{22, 20, 21, 8}));
  EXPECT_EQ(types(1, false), (Types{8}));
  EXPECT_EQ(types(2, false), (Types{26, 48, 8}));
  EXPECT_EQ(types(3, true), (Types{22, 20, 21, 26, 48, 25, 7, 8}));
  EXPECT_THROW(read_rlc(sample_rlc(4), "rlc"), IoError);
}

using Reader = std::function<void(const Bytes&)>;
std::vector<std::pair<Bytes, Reader>> readers() {
  return {{sample_sos(), [](const Bytes& b) { read_sos(b, "file"); }},
          {sample_smu(), [](const Bytes& b) { read_smu(b, "file"); }},
          {sample_sdma(), [](const Bytes& b) { read_sdma(b, "file"); }},
          {sample_mec(), [](const Bytes& b) { read_mec(b, "file"); }},
          {sample_imu(), [](const Bytes& b) { read_imu(b, "file"); }},
          {sample_rlc(3, true), [](const Bytes& b) { read_rlc(b, "file"); }}};
}

TEST(AmdFirmware, CutAndDamagedFiles) {
  std::mt19937 random(3);
  for (const auto& [file, read] : readers()) {
    read(file);
    for (size_t size = 0; size < file.size(); ++size)
      EXPECT_THROW(read(Bytes(file.begin(), file.begin() + long(size))), IoError);
    Bytes shorter(file.begin(), file.end() - 1);  // which says that it is
    put32(shorter, 0, shorter.size());
    EXPECT_THROW(read(shorter), IoError);
    Bytes other = file;
    put16(other, 8, 9);
    EXPECT_THROW(read(other), IoError);
    for (int n = 0; n < 3000; ++n) {
      Bytes damaged = file;
      damaged[4 + random() % 220] = uint8_t(random());
      try {
        read(damaged);
      } catch (const IoError& e) {
        EXPECT_TRUE(std::string(e.what()).starts_with("file: ")) << e.what();
      }
    }
  }
}

// Files by path; all else is not there.
class Files final : public os::Kernel {
 public:
  std::map<std::string, std::string> files;
  void add(const std::string& name, const Bytes& bytes) {
    files["/lib/firmware/amdgpu/" + name] = std::string(bytes.begin(), bytes.end());
  }
  int read_text(const std::string& path, std::string& text) override {
    const auto found = files.find(path);
    if (found == files.end()) return -ENOENT;
    text = found->second;
    return 0;
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    for (const auto& [file, text] : files)
      if (file.starts_with(path + "/")) names.push_back(file.substr(path.size() + 1));
    return names.empty() ? -ENOENT : 0;
  }
  int open(const std::string&, int) override { return -ENOENT; }
  int close(int) override { return -EBADF; }
  int ioctl(int, unsigned long, void*) override { return -EBADF; }
  intptr_t mmap(void*, size_t, int, int, int, uint64_t) override { return -EBADF; }
  int munmap(void*, size_t) override { return -EINVAL; }
};

Files all_files() {
  Files k;
  k.add("psp_13_0_0_sos.bin", sample_sos());
  k.add("smu_13_0_0.bin", sample_smu());
  k.add("sdma_6_0_0.bin", sample_sdma());
  k.add("gc_11_0_0_mec.bin", sample_mec());
  k.add("gc_11_0_0_imu.bin", sample_imu());
  k.add("gc_11_0_0_rlc.bin", sample_rlc());
  return k;
}

TEST(AmdFirmware, IsFoundByTheVersionsOfBlocks) {
  Files k = all_files();
  const AmdFirmware f = load_amd_firmware(k, read_discovery(sample_discovery()));
  EXPECT_EQ(f.folder, "/lib/firmware/amdgpu");
  EXPECT_EQ(f.mec_start, kSampleMecStart);
  expect_part(f.smu, 18, 128);
  ASSERT_NE(f.find(SosType::Toc), nullptr);
  std::vector<uint32_t> types;
  for (const auto& p : f.parts) types.push_back(uint32_t(p.type));
  EXPECT_EQ(types, (std::vector<uint32_t>{72, 71, 89, 94, 95, 96, 97, 68, 69, 26, 48, 25, 7, 8}));
}

TEST(AmdFirmware, WhatIsMissingIsNamed) {
  const Discovery d = read_discovery(sample_discovery());
  for (const auto& [path, text] : all_files().files) {
    Files k = all_files();
    k.files.erase(path);
    std::string why = error_of<Unsupported>([&] { load_amd_firmware(k, d); });
    EXPECT_NE(why.find(path.substr(path.rfind('/') + 1)), std::string::npos) << why;
    EXPECT_NE(why.find("firmware-amd-graphics"), std::string::npos) << why;
    k.files[path + ".zst"] = text;
    why = error_of<Unsupported>([&] { load_amd_firmware(k, d); });
    EXPECT_NE(why.find("is compressed"), std::string::npos) << why;
    k.files[path] = text.substr(0, 100);
    why = error_of<IoError>([&] { load_amd_firmware(k, d); });
    EXPECT_NE(why.find(path), std::string::npos) << why;
  }
  Files none;
  EXPECT_THROW(load_amd_firmware(none, d), Unsupported);
}

}  // namespace
}  // namespace tuff::devices::amd
