// Damaged files of every format: truncated at every byte, every byte changed, bytes put in and
// taken out, and inputs that were found otherwise. Each is read or refused by an IoError that names
// the file; compiled with the address and undefined-behaviour sanitizers, readers included.
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "io/formats/format.h"
#include "io/formats/read_all.h"
#include "io/formats/sample_files.h"

namespace tuff::io {
namespace {

// Whether the file was read.
bool survives(const Bytes& bytes) {
  try {
    read_all(bytes);
    return true;
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("damaged"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(": at byte "), std::string::npos) << e.what();
    return false;
  }
}

class Damage : public testing::TestWithParam<SampleFile> {
 protected:
  const Bytes& whole() const { return GetParam().bytes; }
};

TEST_P(Damage, WholeIsRead) {
  const MemoryBytes source("file", whole());
  EXPECT_EQ(read_index(source, "x").format, GetParam().format);
  EXPECT_TRUE(survives(whole()));
}

TEST_P(Damage, TruncatedAnywhereIsRefused) {
  for (size_t n = 0; n < whole().size(); n++)
    EXPECT_FALSE(survives(Bytes(whole().begin(), whole().begin() + ptrdiff_t(n)))) << n;
}

TEST_P(Damage, EveryByteChanged) {
  size_t refused = 0;
  for (size_t i = 0; i < whole().size(); i++) {
    for (const int change : {0x01, 0x80, 0xff}) {
      Bytes bytes = whole();
      bytes[i] ^= uint8_t(change);
      refused += !survives(bytes);
    }
    Bytes bytes = whole();
    bytes[i] = 0;
    survives(bytes);
  }
  EXPECT_GT(refused, whole().size() / 20);  // it is not all taken
}

TEST_P(Damage, NumbersThatAreAbsurd) {
  for (size_t width : {2, 4, 8}) {
    for (size_t i = 0; i + width <= whole().size(); i++) {
      for (const uint8_t high : {0x7f, 0xff}) {
        Bytes bytes = whole();
        for (size_t k = 0; k < width; k++) bytes[i + k] = k + 1 == width ? high : 0xff;
        survives(bytes);
      }
    }
  }
}

TEST_P(Damage, PartsRepeatedAndTakenOut) {
  std::mt19937 random(7);
  for (int n = 0; n < 2000; n++) survives(with_part_moved(whole(), n % 2, 40, random));
}

INSTANTIATE_TEST_SUITE_P(Formats, Damage, testing::ValuesIn(sample_files()), [](const auto& info) {
  return std::string(info.param.format) + "_" + std::to_string(info.index);
});

TEST(DamageFound, KeptInputs) {
  const std::filesystem::path folder = TUFF_SOURCE_DIR "/tests/data/fuzz_found";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files++;
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    survives(Bytes(std::istreambuf_iterator<char>(file), {}));
  }
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace tuff::io
