// `tuff devices`: every kind of device, found or not and why not.
#include <memory>

#include "base/check.h"
#include "base/env.h"
#include "cli/command.h"
#include "base/json.h"
#include "cli/terminal.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

std::string kind_of(const devices::Candidate& c) { return c.name.substr(0, c.name.find(':')); }

// The name of the device that a bare run would take, and why there is none.
struct DefaultDevice {
  std::string name, problem;
};

DefaultDevice find_default() {
  try {
    // What TUFF_DEVICE says may be a kind or a selector; only opening it gives its name.
    if (!env_text(Env::TUFF_DEVICE).empty()) return {engine::canonical_device(""), ""};
    return {engine::default_device(), ""};
  } catch (const Error& e) {
    return {"", e.what()};
  }
}

Json to_json(const devices::Candidate& c, bool is_default) {
  Json features = Json::object();
  for (const auto& [name, value] : c.info.features) features[name] = value;
  return {{"name", c.name},
          {"kind", kind_of(c)},
          {"usable", c.usable},
          {"reason", c.reason},
          {"default", is_default},
          {"software", c.usable && !c.info.hardware},
          {"description", c.info.description},
          {"driver", c.info.driver},
          {"api_version", c.info.api_version},
          {"uuid", c.info.uuid},
          {"memory_bytes", c.info.memory_bytes},
          {"features", features}};
}

std::string memory_text(uint64_t bytes) {
  constexpr double kGiB = double(1ull << 30), kMiB = double(1ull << 20);
  if (double(bytes) >= kGiB) return fmt::format("{:.1f} GiB", double(bytes) / kGiB);
  return fmt::format("{:.0f} MiB", double(bytes) / kMiB);
}

void print_row(const char* title, const std::string& text) {
  if (!text.empty()) fmt::print("    {:<9} {}\n", title, text);
}

void print_features(const hcq::DeviceInfo& info) {
  const size_t width = 96;
  std::string line;
  const char* title = "features";
  for (const auto& [name, value] : info.features) {
    const std::string word = value.empty() ? name : name + "=" + value;
    if (!line.empty() && line.size() + word.size() + 1 > width) {
      print_row(title, line);
      title = "";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  print_row(title, line);
}

void print_device(const devices::Candidate& c, bool is_default, const Style& style) {
  if (!c.usable) {
    fmt::print("{}{}{}  {}not usable{}: {}\n", style.bold, c.name, style.plain, style.warn,
               style.plain, c.reason);
    return;
  }
  fmt::print("{}{}{}  {}{}{}\n", style.bold, c.name, style.plain,
             c.info.hardware ? "hardware" : "software", is_default ? "  " : "",
             is_default ? style.good + "(default)" + style.plain : "");
  print_row("", c.info.description);
  print_row("driver", c.info.driver);
  print_row("API", c.info.api_version);
  print_row("UUID", c.info.uuid);
  if (c.info.memory_bytes) print_row("memory", memory_text(c.info.memory_bytes));
  print_features(c.info);
}

int list_devices(bool json) {
  const DefaultDevice chosen = find_default();
  const Style style = Style::of_stdout();
  for (const devices::Candidate& c : engine::list_devices()) {
    const bool is_default = c.usable && c.name == chosen.name;
    if (json) {
      print_json(to_json(c, is_default));
    } else {
      print_device(c, is_default, style);
    }
  }
  if (chosen.problem.empty()) return kExitOk;
  print_error(chosen.problem);
  return kExitFailed;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "devices", "Lists every kind of device: what was found, what was not, and why");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One JSON object per line");
  command->footer(
      "Examples:\n"
      "  tuff devices\n"
      "  TUFF_DEVICE=VULKAN:1 tuff devices --json");
  command->callback([json, &chosen] { chosen = [json] { return list_devices(*json); }; });
}

}  // namespace tuff::cli
