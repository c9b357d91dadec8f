#include "base/os_write_fault.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/check.h"
#include "base/env.h"
#include "base/parse_number.h"

namespace tuff::os {
namespace {

[[noreturn]] void refuse(const std::string& pair) {
  fail<InvalidArgument>(
      "TUFF_WRITE_FAULT: '{}' is none of file:ENDING, write:N, kill:BYTES, kill:sync, kill:rename, "
      "kill:folder, full:BYTES",
      pair);
}

[[noreturn]] void kill_this_process() {
  std::raise(SIGKILL);
  std::abort();  // SIGKILL cannot be caught
}

struct Wanted {
  std::string file, stage;
  uint64_t write = 1;
  std::optional<uint64_t> kill_at, full_at;
};

Wanted wanted_fault() {
  Wanted w;
  for (const std::string& pair : env_names(Env::TUFF_WRITE_FAULT)) {
    const size_t colon = pair.find(':');
    const std::string name = pair.substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : pair.substr(colon + 1);
    const std::optional<uint64_t> n = parse_number<uint64_t>(value);
    if (name == "file")
      w.file = value;
    else if (name == "write" && n)
      w.write = *n;
    else if (name == "kill" && n)
      w.kill_at = *n;
    else if (name == "full" && n)
      w.full_at = *n;
    else if (name == "kill" && (value == "sync" || value == "rename" || value == "folder"))
      w.stage = value;
    else
      refuse(pair);
  }
  return w;
}

}  // namespace

void check_write_fault() { wanted_fault(); }

WriteFault::WriteFault(const std::string& path) {
  static std::atomic<uint64_t> writes{0};
  const Wanted w = wanted_fault();
  if (!w.kill_at && !w.full_at && w.stage.empty()) return;
  if (!path.ends_with(w.file) || ++writes != w.write) return;
  kill_at_ = w.kill_at;
  full_at_ = w.full_at;
  stage_ = w.stage;
}

size_t WriteFault::allowed(uint64_t offset, size_t size) const {
  for (const std::optional<uint64_t>& at : {kill_at_, full_at_}) {
    if (at) size = size_t(std::min<uint64_t>(size, *at > offset ? *at - offset : 0));
  }
  return size;
}

int WriteFault::at_byte(uint64_t offset) const {
  if (kill_at_ && offset >= *kill_at_) kill_this_process();
  return full_at_ && offset >= *full_at_ ? ENOSPC : 0;
}

void WriteFault::before(const char* stage) const {
  if (stage_ == stage) kill_this_process();
}

}  // namespace tuff::os
