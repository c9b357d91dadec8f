// The bar of a command that writes a large file, and its end by Ctrl-C. Called by `tuff quantize`,
// `tuff merge`, `tuff convert` and `tuff finetune`.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace tuff::cli {

class WriteInterrupted : public std::exception {};

class WriteBar {
 public:
  explicit WriteBar(std::string what) : what_(std::move(what)) {}
  // Of bytes.
  void operator()(uint64_t written, uint64_t total) {
    if (!bar_) bar_.emplace(what_, total);
    bar_->update(written, [&] {
      constexpr double kMib = 1 << 20;
      return fmt::format("{:.0f}/{:.0f} MiB  {:.0f} MiB/s", double(written) / kMib,
                         double(total) / kMib,
                         double(written) / kMib * 1e9 / double(os::monotonic_ns() - begin_ns_));
    });
  }
  void clear() { bar_.reset(); }

 private:
  const std::string what_;
  const uint64_t begin_ns_ = os::monotonic_ns();
  std::optional<ProgressBar> bar_;
};

// `write` is told what to call with the bytes that were written and those of all. Exit code.
template <class Write>
int write_with_bar(const std::string& what, const std::string& to, const Write& write) {
  os::catch_interrupts();
  WriteBar bar(what);
  try {
    write([&](uint64_t written, uint64_t total) {
      if (os::interrupted()) throw WriteInterrupted();
      bar(written, total);
    });
  } catch (const WriteInterrupted&) {
    bar.clear();
    fmt::print(stderr, "tuff: interrupted; {} is as it was\n", printable(to));
    return kExitInterrupted;
  }
  return kExitOk;
}

}  // namespace tuff::cli
