// The profiler of one GPU: makes a recording for each dispatch and tells the profile of those that
// end. Owned by the emulated GPU, or by `tuff emu run`; the interpreters see the counters alone.
#pragma once

#include <memory>

#include "emu/api.h"
#include "emu/profile/cache_model.h"
#include "emu/profile/ptx_resources.h"
#include "emu/profile/time_model.h"
#include "emu/ptx/counters.h"
#include "emu/ptx/dispatch.h"
#include "emu/ptx/machine.h"
#include "emu/rdna/counters.h"
#include "emu/rdna/dispatch.h"

namespace tuff::emu::profile {

class Recording {
 public:
  virtual ~Recording() = default;
  // Once the dispatch is over; with a row for each instruction where asked for.
  emu_api::KernelProfile profile(bool instructions) const;

 protected:
  // `shape`: what the launch says.
  Recording(const Chip& chip, SharedCaches& shared, emu_api::KernelProfile shape, const Grid& grid);
  virtual const LaunchCounts& launch_counts() const = 0;
  CacheModel& caches() { return caches_; }
  const Chip& chip() const { return chip_; }

 private:
  const Chip& chip_;
  emu_api::KernelProfile shape_;
  Grid grid_;
  CacheModel caches_;
};

class RdnaRecording : public Recording {
 public:
  RdnaRecording(const Chip& chip, SharedCaches& shared, const rdna::Launch& launch);
  rdna::Counters& counters() { return counters_; }

 private:
  const LaunchCounts& launch_counts() const override { return counters_; }
  rdna::Counters counters_;
};

class PtxRecording : public Recording {
 public:
  PtxRecording(const Chip& chip, SharedCaches& shared, const ptx::Launch& launch,
               const Resources& resources);
  ptx::Counters& counters() { return counters_; }

 private:
  const LaunchCounts& launch_counts() const override { return counters_; }
  ptx::Counters counters_;
};

class Profiler {
 public:
  // InvalidArgument naming the chips of the vendor that are known.
  explicit Profiler(emu_api::ProfileOptions options, Vendor vendor = Vendor::Amd);
  std::unique_ptr<RdnaRecording> record(const rdna::Launch& launch);
  std::unique_ptr<PtxRecording> record(const ptx::Launch& launch);
  // ptx::execute(), counted and reported.
  ptx::Outcome execute(const emu_api::PtxLaunchRequest& request, RangeMemory& memory);
  void report(const Recording& recording) const;

 private:
  emu_api::ProfileOptions options_;
  const Chip& chip_;
  SharedCaches shared_;
};

}  // namespace tuff::emu::profile
