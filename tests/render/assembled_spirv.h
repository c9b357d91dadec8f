// SPIR-V from its text, by SPIRV-Tools. For tests that link it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spirv-tools/libspirv.hpp>

namespace tuff::render {

// An expectation fails where the text is none; what it says need not be valid.
inline std::vector<uint32_t> assembled_spirv(const std::string& text,
                                             spv_target_env env = SPV_ENV_UNIVERSAL_1_3) {
  std::vector<uint32_t> words;
  spvtools::SpirvTools tools(env);
  std::string said;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t& at, const char* m) {
        said = fmt::format("{}: {}", at.line, m);
      });
  EXPECT_TRUE(tools.Assemble(text, &words)) << said;
  return words;
}

}  // namespace tuff::render
