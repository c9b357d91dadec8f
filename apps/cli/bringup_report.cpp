#include "cli/bringup_report.h"

#include "base/env.h"
#include "base/os.h"
#include "base/os_cache.h"

namespace tuff::cli {
namespace {

std::string first_line(const std::string& path) {
  if (!os::exists(path)) return {};
  const std::string text = os::read_text(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace

Json machine_facts() {
  Json files = Json::array(), variables = Json::object();
  for (const char* path :
       {"/dev/kfd", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/dri"})
    if (os::exists(path)) files.push_back(path);
  for (const EnvRow& row : env_rows()) {
    const std::string value = system_env(row.name);
    if (!value.empty()) variables[row.name] = value;
  }
  return {{"tuff", TUFF_VERSION},
          {"kernel", first_line("/proc/version")},
          {"processor", os::cpu_identity()},
          {"files", files},
          {"nvidia_driver", first_line("/proc/driver/nvidia/version")},
          {"environment", variables}};
}

void BringupReport::begin(const char* step) {
  if (!json_) fmt::print("{:<18}", step), std::fflush(stdout);
  const Json begun{{"step", step}, {"status", "begun"}};
  write(&begun);
}

void BringupReport::end(const char* step, const std::string& status, double ms,
                        const std::string& detail, const Json& facts) {
  Json row{{"step", step}, {"status", status}, {"ms", ms}, {"detail", detail}};
  if (!facts.is_null()) row["facts"] = facts;
  if (json_) print_json(row);
  else fmt::print("{:<7} {:>9.3f} ms  {}\n", status, ms, detail);
  rows_.push_back(std::move(row));
  write(nullptr);
}

void BringupReport::write(const Json* begun) const {
  if (file_.empty()) return;
  std::string text;
  const auto add = [&](const Json& row) {
    text += row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  for (const Json& row : rows_) add(row);
  if (begun) add(*begun);
  os::write_text(file_, text);
}

}  // namespace tuff::cli
