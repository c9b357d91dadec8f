#include "devices/machine_findings.h"

#include "base/check.h"
#include "base/log.h"

namespace tuff::devices {

[[gnu::hot]]
std::vector<hcq::MachineFinding> report_findings(const TakeFindings& take,
                                                 const std::string& device) {
  if (!take) return {};
  std::vector<hcq::MachineFinding> findings = take();
  if (findings.empty()) return findings;
  for (const hcq::MachineFinding& f : findings) log_warn("{}: {}", device, f.text);
  hcq::report_findings(findings);
  return findings;
}

std::string joined(const std::vector<hcq::MachineFinding>& findings) {
  std::string text;
  for (const hcq::MachineFinding& f : findings) text += "\n  " + f.text;
  return text;
}

[[gnu::hot]]
void throw_found(const std::vector<hcq::MachineFinding>& findings, const std::string& device) {
  if (findings.empty()) return;
  fail<hcq::HazardFound>("{}: the emulated machine found {} problems:{}", device, findings.size(),
                         joined(findings));
}

}  // namespace tuff::devices
