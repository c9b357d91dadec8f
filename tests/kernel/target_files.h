// The Targets of tests/targets, which stand for GPUs that are not there. Called by the tests of
// kernel and render.
#pragma once

#include <string>

#include "base/target.h"

namespace tuff::testing {

std::string target_contents(const std::string& file);  // fails the test where there is none
Target target_of(const std::string& name);             // of NAME.json
// The text is golden/NAME.txt, or becomes it with TUFF_UPDATE_GOLDENS=1.
void expect_target_golden(const std::string& name, const std::string& text);

}  // namespace tuff::testing
