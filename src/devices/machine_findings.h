// What an emulated machine finds in the programs and command streams of its devices: taken from it,
// told, and thrown at a device's next call. Used by the devices of amd and nv.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hcq/hazard_guard.h"

namespace tuff::devices {

// What has been found since the last call; empty where nothing is emulated.
using TakeFindings = std::function<std::vector<hcq::MachineFinding>()>;

// Takes them, logs them and appends them to TUFF_REPORT.
std::vector<hcq::MachineFinding> report_findings(const TakeFindings& take,
                                                 const std::string& device);
// A line each, each behind a line break.
std::string joined(const std::vector<hcq::MachineFinding>& findings);
// Throws HazardFound if there are some.
void throw_found(const std::vector<hcq::MachineFinding>& findings, const std::string& device);

}  // namespace tuff::devices
