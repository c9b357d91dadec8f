#include "render/valid_spirv.h"

#include <gtest/gtest.h>

#include <spirv-tools/libspirv.hpp>

#include "render/renderer.h"
#include "render/spirv.h"
#include "render/spirv_nv_matrices.h"

namespace tuff::render {
namespace {

// SPIRV-Tools 2023 looks through physical pointers and takes narrow elements behind the push
// constant for narrow push constants, unless arithmetic of that width is declared too. For devices
// that have the storage alone the copy that is validated declares what it asks for; all else is
// checked as it is.
std::vector<uint32_t> for_validator(std::vector<uint32_t> words, const Target& t) {
  const auto declare = [&](uint32_t capability) {
    const uint32_t instruction[] = {2u << 16 | 17u, capability};
    words.insert(words.begin() + 5, instruction, instruction + 2);
  };
  if (t.features.storage16 && !t.features.i16) declare(4435);  // StoragePushConstant16
  if (t.features.storage8 && !t.features.i8) declare(4450);    // StoragePushConstant8
  return words;
}

}  // namespace

std::string expect_valid_spirv(const kernel::LinearKernel& k, const Target& t) {
  const Source s = render_spirv(k, t);
  const bool old = t.arch == "spirv1.3";
  spvtools::SpirvTools tools(old ? SPV_ENV_VULKAN_1_1 : SPV_ENV_VULKAN_1_2);
  std::string message, text;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t& at, const char* m) {
        message += fmt::format("word {}: {}\n", at.index, m);
      });
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  const std::vector<uint32_t> known = with_nv_matrices(s.words);
  const std::vector<uint32_t> words = for_validator(known, t);
  const bool ok = tools.Validate(words.data(), words.size(), options);
  tools.Disassemble(known, &text,
                    SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES);
  EXPECT_TRUE(ok) << k.name << " on " << t.arch << ": " << message << "\n" << text;
  return text;
}

}  // namespace tuff::render
