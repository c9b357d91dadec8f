// Findings of the hazard checker for people and for programs.
#include <fmt/format.h>

#include "base/json.h"
#include "hcq/hazard_guard.h"

namespace tuff::hcq {

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

Json json(const TracePlace& p) {
  const Json queue = p.queue == TracePlace::kHost ? Json() : Json(p.queue);
  return {{"event", p.event}, {"command", p.command}, {"queue", queue}, {"label", p.label}};
}

std::string line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

const char* name(HazardKind kind) {
  constexpr const char* kNames[] = {"RAW", "WAR", "WAW"};
  return kNames[size_t(kind)];
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
    out += line({{"kind", "stuck_wait"}, {"place", json(p)}});
  for (const Hazard& h : report.hazards)
    out += line({{"kind", name(h.kind)},
                 {"first", json(h.first)},
                 {"second", json(h.second)},
                 {"block", h.block_index},
                 {"begin", h.begin},
                 {"end", h.end},
                 {"missing", h.missing}});
  for (const TracePlace& p : report.unneeded)
    out += line({{"kind", "unneeded_barrier"}, {"place", json(p)}});
  return out;
}

std::string to_json_lines(std::span<const MachineFinding> findings) {
  std::string out;
  for (const MachineFinding& f : findings)
    out += line({{"kind", f.kind},
                 {"gpu", f.gpu},
                 {"queue", f.queue},
                 {"address", f.address},
                 {"text", f.text}});
  return out;
}

}  // namespace tuff::hcq
