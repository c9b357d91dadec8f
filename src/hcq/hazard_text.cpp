// Findings of the hazard checker for people and for programs.
#include <fmt/format.h>

#include "hcq/hazards.h"

namespace tuff::hcq {

std::string json_quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

std::string text(const TracePlace& p) {
  const std::string label = p.label.empty() ? "" : fmt::format(" \"{}\"", p.label);
  if (p.queue == TracePlace::kHost) return fmt::format("the host{}, event {}", label, p.event);
  return fmt::format("#{}{} of queue {}, event {}", p.command, label, p.queue, p.event);
}

std::string text(const Hazard& h) {
  const bool reads = h.kind == HazardKind::ReadAfterWrite;
  const bool read = h.kind == HazardKind::WriteAfterRead;
  return fmt::format("{}: {} {} b{}[{}..{}) that {} {}; missing: {}", name(h.kind), text(h.second),
                     reads ? "reads" : "writes", h.block_index, h.begin, h.end, text(h.first),
                     read ? "reads" : "writes", h.missing);
}

std::string json(const TracePlace& p) {
  const std::string queue = p.queue == TracePlace::kHost ? "null" : std::to_string(p.queue);
  return fmt::format(R"({{"event":{},"command":{},"queue":{},"label":{}}})", p.event, p.command,
                     queue, json_quoted(p.label));
}

}  // namespace

const char* name(HazardKind kind) {
  switch (kind) {
    case HazardKind::ReadAfterWrite: return "RAW";
    case HazardKind::WriteAfterRead: return "WAR";
    case HazardKind::WriteAfterWrite: return "WAW";
  }
  return "?";
}

std::string to_text(const HazardReport& report, size_t limit) {
  std::string out;
  size_t lines = 0;
  const auto add = [&](const std::string& line) {
    if (lines++ < limit) out += line + "\n";
  };
  for (const TracePlace& p : report.stuck)
    add(fmt::format("stuck: {} waits for a value that nobody signals before", text(p)));
  for (const Hazard& h : report.hazards) add(text(h));
  for (const TracePlace& p : report.unneeded)
    add(fmt::format("unneeded: {} orders nothing that is not ordered without it", text(p)));
  if (lines > limit) out += fmt::format("... and {} more\n", lines - limit);
  return out;
}

std::string to_json_lines(const HazardReport& report) {
  std::string out;
  for (const TracePlace& p : report.stuck)
    out += fmt::format(R"({{"kind":"stuck_wait","place":{}}})", json(p)) + "\n";
  for (const Hazard& h : report.hazards) {
    out += fmt::format(
        R"({{"kind":"{}","first":{},"second":{},"block":{},"begin":{},"end":{},"missing":{}}})",
        name(h.kind), json(h.first), json(h.second), h.block_index, h.begin, h.end,
        json_quoted(h.missing));
    out += "\n";
  }
  for (const TracePlace& p : report.unneeded)
    out += fmt::format(R"({{"kind":"unneeded_barrier","place":{}}})", json(p)) + "\n";
  return out;
}

}  // namespace tuff::hcq
