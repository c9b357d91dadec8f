#include "base/os_environment.h"

#include <unistd.h>

namespace tuff::os {

std::vector<std::string> variables_named(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(prefix)) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace tuff::os
