// Damaged ONNX models: truncated at every byte, every bit changed, parts put in and taken out. Each
// is read, all that it names touched, or refused by an IoError that names the file and the byte;
// compiled with the address and undefined-behaviour sanitizers, reader included.
#include <random>

#include <gtest/gtest.h>

#include "io/formats/onnx.h"
#include "io/formats/onnx_files.h"
#include "io/formats/onnx_text.h"

namespace tuff::io {
namespace {

bool survives_onnx(const Bytes& bytes) {
  const MemoryBytes source("damaged", bytes);
  is_onnx(source);
  try {
    (void)text_of(source, read_onnx(source));
    return true;
  } catch (const IoError& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("damaged: at byte ")) << e.what();
    return false;
  }
}

TEST(OnnxDamage, TruncatedAnywhereIsRefused) {
  const Bytes whole = sample_onnx();
  for (size_t n = 0; n < whole.size(); n++) {
    const bool read = survives_onnx(Bytes(whole.begin(), whole.begin() + ptrdiff_t(n)));
    // Behind graph and operators it is a shorter model where a field ends.
    EXPECT_FALSE(read && n < sample_onnx_required()) << n;
  }
  EXPECT_TRUE(survives_onnx(whole));
}

TEST(OnnxDamage, EveryBitChanged) {
  const Bytes whole = sample_onnx();
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); i++) {
    for (int bit = 0; bit < 8; bit++) {
      Bytes bytes = whole;
      bytes[i] ^= uint8_t(1 << bit);
      refused += !survives_onnx(bytes);
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(OnnxDamage, NumbersThatAreAbsurd) {
  const Bytes whole = sample_onnx();
  for (const size_t width : {2, 5, 10}) {
    for (size_t i = 0; i + width <= whole.size(); i++) {
      Bytes bytes = whole;
      std::fill_n(bytes.begin() + ptrdiff_t(i), width - 1, uint8_t{0xff});
      bytes[i + width - 1] = 0x01;
      survives_onnx(bytes);
    }
  }
}

TEST(OnnxDamage, PartsRepeatedAndTakenOut) {
  std::mt19937 random(11);
  for (int n = 0; n < 2000; n++) survives_onnx(with_part_moved(sample_onnx(), n % 2, 60, random));
}

// A tensor by itself is a message of its own.
TEST(OnnxDamage, Tensors) {
  const Bytes whole = onnx_tensor("t", 3, {2, 3}).packed(5, {0, -1, 2, -3, 127, -128}).bytes();
  const auto survives = [](const Bytes& bytes) {
    const MemoryBytes source("damaged", bytes);
    try {
      (void)text_of(source, read_onnx_tensor(source));
      return true;
    } catch (const IoError&) {
      return false;
    }
  };
  EXPECT_TRUE(survives(whole));
  for (size_t n = 0; n < whole.size(); n++)
    EXPECT_FALSE(survives(Bytes(whole.begin(), whole.begin() + ptrdiff_t(n)))) << n;
  for (size_t i = 0; i < whole.size(); i++) {
    for (int value = 0; value < 256; value++) {
      Bytes bytes = whole;
      bytes[i] = uint8_t(value);
      survives(bytes);
    }
  }
}

}  // namespace
}  // namespace tuff::io
