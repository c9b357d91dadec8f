// A temporary folder with files of given contents, for tests that read them.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "base/temporary_folder.h"

namespace tuff {

class ScratchFolder {
 public:
  std::string path(const std::string& name = {}) const {
    return (std::filesystem::path(folder_.path()) / name).string();
  }
  std::string write(const std::string& name, std::span<const uint8_t> bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }

 private:
  TemporaryFolder folder_;
};

// The text of the error of kind E that `call` throws; empty, or the other error's text, if it does
// not.
template <class E, class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("wrong kind: ") + error.what();
  }
  return {};
}

}  // namespace tuff
