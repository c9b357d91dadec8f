#include "hcq/command.h"

#include <fmt/format.h>

#include <unordered_map>

#include "hcq/device.h"

namespace tuff::hcq {
namespace {

// Names blocks and signals by order of first appearance: no address ever reaches the text.
class Printer {
 public:
  std::string line(const Command& c) {
    std::string text = std::visit([this](const auto& body) { return this->body(body); }, c.body);
    if (!c.label.empty()) text += fmt::format(" \"{}\"", c.label);
    for (const Access& a : c.accesses)
      text += fmt::format(" {}:{}", a.write ? "w" : "r", span(a.span));
    return text;
  }

 private:
  std::string span(const Span& s) {
    if (!s) return "none";
    auto [it, fresh] = blocks_.try_emplace(s.block, blocks_.size());
    return fmt::format("b{}[{}..{})", it->second, s.offset, s.offset + s.size_bytes);
  }
  size_t signal(const Signal* s) { return signals_.try_emplace(s, signals_.size()).first->second; }

  std::string body(const WaitCmd& c) {
    return fmt::format("wait s{} >= slot{}", signal(c.signal), c.value_slot);
  }
  std::string body(const SignalCmd& c) {
    return fmt::format("signal s{} = slot{}", signal(c.signal), c.value_slot);
  }
  std::string body(const TimestampCmd& c) { return fmt::format("timestamp {}", c.index); }
  std::string body(const BarrierCmd&) { return "barrier"; }
  std::string body(const DispatchCmd& c) {
    std::string groups = c.indirect
                             ? span(c.indirect)
                             : fmt::format("{}x{}x{}", c.groups[0], c.groups[1], c.groups[2]);
    return fmt::format("dispatch {} args={} groups={}", c.program ? c.program->name() : "none",
                       span(c.args), groups);
  }
  std::string body(const CopyCmd& c) {
    return fmt::format("copy {} <- {}", span(c.dst), span(c.src));
  }
  std::string body(const HostCallCmd&) { return "host_call"; }

  std::unordered_map<const MemoryBlock*, size_t> blocks_;
  std::unordered_map<const Signal*, size_t> signals_;
};

}  // namespace

std::string to_text(const CommandList& list) {
  Printer printer;
  std::string text;
  for (const Command& c : list.commands) text += printer.line(c) + "\n";
  return text;
}

}  // namespace tuff::hcq
