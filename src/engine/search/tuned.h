// Schedules that a search has found, as a file that can be shipped: for one device with its driver
// and one compiler, by kernel. Written by `tuff tune`; read by ProgramCache where TUFF_TUNED names
// one. Must never search.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/target.h"
#include "ir/uop.h"
#include "kernel/opt/neighbours.h"

namespace tuff::engine {

class TunedSchedules {
 public:
  TunedSchedules(const Target& target, const std::string& compiler);
  // InvalidArgument where the file is damaged or of another version, IoError where it cannot be
  // read.
  static TunedSchedules read(const std::string& path);
  void write(const std::string& path) const;  // by rename: the old file or the new one

  // Whether it was made for this device, driver and compiler; if not, `why` says what differs.
  bool fits(const Target& target, const std::string& compiler, std::string& why) const;
  std::optional<kernel::Opts> find(const ir::UOp& ast) const;
  void set(const ir::UOp& ast, const kernel::Opts& opts);
  size_t size() const { return opts_.size(); }

 private:
  TunedSchedules() = default;
  Target target_;
  std::string compiler_;
  std::map<std::string, std::string> opts_;  // by kernel_key
};

// What TUFF_TUNED names, if it fits; else nothing, with one warning per file. Read once.
const TunedSchedules* tuned_for(const Target& target, const std::string& compiler);

// The named opts if they are legal here: another version of the program may have written them.
std::optional<kernel::Opts> legal_opts(const std::string& text, const ir::UOp& ast,
                                       const Target& target);

}  // namespace tuff::engine
