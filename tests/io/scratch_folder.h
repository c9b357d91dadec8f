// A folder that lives as long as the object, for tests that write files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace tuff::io {

class ScratchFolder {
 public:
  ScratchFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("tuff-io-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name = {}) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::span<const uint8_t> bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }

 private:
  std::filesystem::path path_;
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

}  // namespace tuff::io
