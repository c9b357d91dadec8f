#include "kernel/target_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/env.h"

namespace tuff::testing {

namespace {
std::string target_path(const std::string& file) {
  return std::string(TUFF_SOURCE_DIR "/tests/targets/") + file;
}
}  // namespace

std::string target_contents(const std::string& file) {
  std::ifstream in(target_path(file));
  EXPECT_TRUE(in.good()) << target_path(file) << " is missing";
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Target target_of(const std::string& name) {
  return target_from_json(target_contents(name + ".json"));
}

void expect_target_golden(const std::string& name, const std::string& text) {
  const std::string file = "golden/" + name + ".txt";
  if (system_env("TUFF_UPDATE_GOLDENS") == "1")
    std::ofstream(target_path(file)) << text;
  else
    EXPECT_EQ(target_contents(file), text) << name;
}

}  // namespace tuff::testing
