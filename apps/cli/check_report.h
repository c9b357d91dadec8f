// Shows a run of the conformance suite: JSON lines or a table of op by device, progress, and what
// it comes to. Called by check_command.cpp. Must never run anything.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/run_case.h"
#include "base/json.h"
#include "cli/terminal.h"
#include "hcq/device.h"

namespace tuff::cli {

class CheckReport {
 public:
  // devices: one per task of the pool, in order; total: cases on all of them.
  CheckReport(std::vector<hcq::DeviceInfo> devices, size_t total, bool json);
  void add(size_t device, const check::CaseResult& r);
  // What a child drew under TUFF_RANDOM_OPTS.
  void add_opts(size_t device, const Json& counts);
  void finish();  // the table, unless JSON was asked for
  bool all_expected() const { return unexpected_ == 0; }
  size_t done() const { return done_; }

 private:
  // What became of one op's cases on one device.
  struct Cell {
    uint32_t passed = 0, total = 0, refused = 0, wrong = 0;
    double worst_ulp = 0;
  };
  void show_failure(size_t device, const check::CaseResult& r);
  std::string cell_text(const Cell& c) const;
  void print_rows() const;
  void print_opts() const;
  Json line(size_t device, const check::CaseResult& r) const;

  std::vector<hcq::DeviceInfo> devices_;
  size_t total_, done_ = 0, unexpected_ = 0;
  bool json_;
  Style style_;
  ProgressBar bar_;
  std::vector<std::string> ops_;  // in the order of their first results' cases
  std::map<std::string, std::vector<Cell>> cells_;
  std::map<size_t, Json> opts_;  // by device, of all children
  std::map<check::Verdict, size_t> verdicts_;
};

}  // namespace tuff::cli
