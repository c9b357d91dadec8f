// Which variables the process was given. Called by base/env.cpp alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuff::os {

std::vector<std::string> variables_named(std::string_view prefix);

}  // namespace tuff::os
