// The profiler of one GPU: makes a recording for each dispatch and tells the profile of those that
// end. Owned by the emulated GPU, or by `tuff emu run`; the interpreter sees the counters alone.
#pragma once

#include <memory>

#include "emu/api.h"
#include "emu/profile/cache_model.h"
#include "emu/profile/time_model.h"
#include "emu/rdna/dispatch.h"

namespace tuff::emu::profile {

class Recording {
 public:
  Recording(const Chip& chip, SharedCaches& shared, const rdna::Launch& launch);
  rdna::Counters& counters() { return counters_; }
  // Once the dispatch is over; with a row for each instruction where asked for.
  emu_api::KernelProfile profile(bool instructions) const;

 private:
  const Chip& chip_;
  emu_api::KernelProfile shape_;  // what the launch says
  Grid grid_;
  CacheModel caches_;
  rdna::Counters counters_;
};

class Profiler {
 public:
  // InvalidArgument naming the chips that are known.
  explicit Profiler(emu_api::ProfileOptions options);
  std::unique_ptr<Recording> record(const rdna::Launch& launch);
  void report(const Recording& recording) const;

 private:
  emu_api::ProfileOptions options_;
  const Chip& chip_;
  SharedCaches shared_;
};

}  // namespace tuff::emu::profile
