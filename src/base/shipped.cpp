#include "base/shipped.h"

#include <array>

#include "base/os.h"

namespace tuff {
namespace {

// Beside it in a build, from <prefix>/bin, from <prefix>/lib/python3.x/site-packages/tuff, and the
// Python package of a build.
constexpr std::array<const char*, 4> kFolders{"", "../lib/tuff/", "../../../tuff/", "../../bin/"};

}  // namespace

std::vector<std::string> shipped_places(const std::string& file) {
  std::vector<std::string> out;
  const std::string own = os::file_of_code(reinterpret_cast<const void*>(&shipped_places));
  const std::string folder = own.substr(0, own.rfind('/') + 1);
  for (const char* relative : kFolders) out.push_back(folder + relative + file);
  out.push_back(std::string(TUFF_SHIPPED_FOLDER "/") + file);
  return out;
}

}  // namespace tuff
