// What the GSP reads before it starts: tables of all shapes walked by hand, structs byte by byte.
#include "devices/nv/pci/gsp_arguments.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <cstring>

#include "base/error_of.h"
#include "devices/nv/pci/gsp_queue.h"
#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kLeaf = 4096;

uint64_t number_at(std::span<const uint8_t> bytes, size_t at, size_t size_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.subspan(at, size_bytes).data(), size_bytes);
  return value;
}

Bytes counting_image(size_t size_bytes) {
  Bytes bytes(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = uint8_t(i + i / 4096 + i / 255);
  return bytes;
}

// One page for each table up to 2 MiB, two at the innermost above that.
TEST(NvGspArguments, TablesOfImagesOfAllSizes) {
  for (const size_t size : {size_t{1}, kLeaf, kLeaf + 1, 512 * kLeaf, 512 * kLeaf + 1,
                            700 * kLeaf + 77}) {
    const Bytes image = counting_image(size);
    const size_t pages = (size + kLeaf - 1) / kLeaf, innermost = (pages + 511) / 512;
    ASSERT_EQ(image_table_bytes(size), (2 + innermost + pages) * kLeaf) << size;
    std::vector<std::byte> memory(image_table_bytes(size));
    constexpr uint64_t address = 0x123456000;
    write_image_table(memory, address, image);
    const auto entry = [&](uint64_t table, size_t index) {
      uint64_t value = 0;
      std::memcpy(&value, memory.data() + (table - address) + 8 * index, 8);
      return value;
    };
    for (size_t i = 0; i < pages; ++i) {
      const uint64_t middle = entry(address, 0), last = entry(middle, i / 512);
      const uint64_t page = entry(last, i % 512);
      ASSERT_EQ(page % kLeaf, 0u);
      ASSERT_LT(page - address, memory.size());
      const size_t bytes = std::min(kLeaf, size - i * kLeaf);
      ASSERT_EQ(std::memcmp(memory.data() + (page - address), image.data() + i * kLeaf, bytes), 0)
          << "page " << i << " of " << size << " bytes";
    }
  }
}

TEST(NvGspArguments, ImagesThatFitNoTable) {
  EXPECT_THROW(image_table_bytes(0), InvalidArgument);
  const size_t most = size_t{512} * 512 * 512 * kLeaf;
  EXPECT_EQ(image_table_bytes(most), (1 + 512 + 512 * 512) * kLeaf + most);
  EXPECT_EQ(error_of<InvalidArgument>([&] { image_table_bytes(most + 1); }),
            "NV: a GSP image of 549755813889 bytes fits no table of three levels");
}

TEST(NvGspArguments, TheDescriptionOfProtectedMemory) {
  Bootloader bootloader;
  bootloader.code_offset = 0x11;
  bootloader.data_offset = 0x22;
  bootloader.manifest_offset = 0x33;
  const MemoryLayout m = memory_layout(8ull << 30, 1u << 20, 60u << 20, 0x5000);
  const Bytes d = memory_description(m, bootloader, 0xa000, 60u << 20, {0xb000, 0x5000},
                                     {0xc000, 4096});
  ASSERT_EQ(d.size(), 256u);
  const uint64_t wanted[] = {0xdc3aae21371a60b3, 1, 0xa000, 60u << 20, 0xb000, 0x5000, 0x11, 0x22,
                             0x33, 0xc000, 4096, m.open_heap, m.open_heap, 1u << 20,
                             m.protected_begin, m.heap, m.heap_bytes, m.image, m.bootloader, m.frts,
                             kFrtsBytes, m.protected_end, 8ull << 30, m.screen, 1u << 20};
  for (size_t i = 0; i < std::size(wanted); ++i)
    EXPECT_EQ(number_at(d, 8 * i, 8), wanted[i]) << "word " << i;
  for (size_t i = sizeof wanted; i < d.size(); ++i) EXPECT_EQ(d[i], 0) << i;
}

TEST(NvGspArguments, LibosAndTheResourceManager) {
  const std::pair<std::string, DmaRange> ranges[] = {{"LOGINIT", {0x1000, kLogBytes}},
                                                     {kRmArguments, {0x2000, 4096}}};
  const Bytes libos = libos_arguments(ranges);
  ASSERT_EQ(libos.size(), 64u);
  EXPECT_EQ(number_at(libos, 0, 8), 0x4c4f47494e4954u) << "LOGINIT";
  EXPECT_EQ(number_at(libos, 8, 8), 0x1000u);
  EXPECT_EQ(number_at(libos, 16, 8), 0x10000u);
  EXPECT_EQ(number_at(libos, 24, 8), 0x101u);
  EXPECT_EQ(number_at(libos, 32, 8), 0x524d41524753u) << "RMARGS";
  const Bytes manager = rm_arguments({0x7000, GspQueues::kBytes});
  ASSERT_EQ(manager.size(), 72u);
  EXPECT_EQ(number_at(manager, 0, 8), 0x7000u);
  EXPECT_EQ(number_at(manager, 8, 8), 129u);
  EXPECT_EQ(number_at(manager, 16, 8), 0x1000u);
  EXPECT_EQ(number_at(manager, 24, 8), 0x41000u);
  EXPECT_EQ(number_at(manager, 48, 8), 1u);
  std::vector<std::byte> log(kLogBytes);
  write_log_header(log, 0x9000);
  for (uint64_t page = 0; page < 17; ++page) {
    uint64_t value = 0;
    std::memcpy(&value, log.data() + 8 * page, 8);
    EXPECT_EQ(value, page == 0 ? 0 : 0x9000 + (page - 1) * 4096);
  }
}

TEST(NvGspArguments, WhatFspIsTold) {
  const Bytes arguments = fmc_arguments(0x1111000, 0x2222000);
  ASSERT_EQ(arguments.size(), 80u);
  const uint64_t words[] = {0, 256ull << 32 | 1, 0x1111000, 0, 1ull << 32, 1, 0x2222000, 0, 0, 0};
  for (size_t i = 0; i < std::size(words); ++i)
    EXPECT_EQ(number_at(arguments, 8 * i, 8), words[i]) << i;

  const Fmc fmc = {{}, Bytes(48, 0xaa), Bytes(97, 0xbb), Bytes(96, 0xcc)};
  const Bytes chain = chain_of_trust(fmc, 2, 0x3333000, 0x4444000, (2u << 20) + 1);
  ASSERT_EQ(chain.size(), 860u);
  EXPECT_EQ(number_at(chain, 0, 4), 860u << 16 | 2);
  EXPECT_EQ(number_at(chain, 4, 8), 0x3333000u);
  EXPECT_EQ(number_at(chain, 12, 8), 0u);
  EXPECT_EQ(number_at(chain, 24, 8), 4u << 20) << "whole pages of 2 MiB at the end of memory";
  EXPECT_EQ(number_at(chain, 32, 4), 1u << 20);
  for (size_t i = 36; i < 852; ++i) {
    const int wanted = i < 84 ? 0xaa : i < 84 + 97 ? 0xbb : i >= 468 && i < 564 ? 0xcc : 0;
    ASSERT_EQ(chain[i], wanted) << i;
  }
  EXPECT_EQ(number_at(chain, 852, 8), 0x4444000u);
}

TEST(NvGspArguments, TheSystemAndItsRegistry) {
  PciFunction f;
  f.address = "0001:41:02.0";
  f.bar_address = {0x11000000, 0x22000000, 0, 0x33000000};
  const Bytes info = system_info(f, {0x220410de, 0x3881103c, 0xa1});
  ASSERT_EQ(info.size(), 928u);
  EXPECT_EQ(number_at(info, 0, 8), 0x11000000u);
  EXPECT_EQ(number_at(info, 8, 8), 0x22000000u);
  EXPECT_EQ(number_at(info, 16, 8), 0x33000000u);
  EXPECT_EQ(number_at(info, 32, 8), 0x100004102u);
  EXPECT_EQ(number_at(info, 80, 8), 0x100000088000u);
  EXPECT_EQ(number_at(info, 88, 4), 0x220410deu);
  EXPECT_EQ(number_at(info, 92, 4), 0x3881103cu);
  EXPECT_EQ(number_at(info, 96, 4), 0xa1u);
  EXPECT_EQ(number_at(info, 840, 1), 1u);
  EXPECT_EQ(number_at(info, 920, 8), 4096u);
  f.address = "no address";
  EXPECT_THROW(system_info(f, {}), InvalidArgument);

  const Bytes table = registry();
  EXPECT_EQ(number_at(table, 0, 4), table.size());
  ASSERT_EQ(number_at(table, 4, 4), 3u);
  const char* const names[] = {"RMSecBusResetEnable", "RMForcePcieConfigSave",
                               "RMDevidCheckIgnore"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = 8 + 16 * i;
    EXPECT_EQ(number_at(table, at + 4, 4), 1u);
    EXPECT_EQ(number_at(table, at + 8, 8), 0x400000001u) << "a value of 1, of 4 bytes";
    const size_t name = number_at(table, at, 4);
    ASSERT_LT(name, table.size());
    EXPECT_STREQ(reinterpret_cast<const char*>(table.data() + name), names[i]);
  }
  EXPECT_EQ(table.back(), 0);
}

}  // namespace
}  // namespace tuff::devices::nv
