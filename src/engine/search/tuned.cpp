#include "engine/search/tuned.h"

#include <memory>
#include <mutex>
#include <set>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "engine/store/disk_cache.h"
#include "ir/text.h"
#include "kernel/pipeline.h"

namespace tuff::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tuff tuned schedules";
constexpr int kVersion = 1;

std::string key_of(const ir::UOp& ast) {
  const std::string parts[] = {"tuned", ir::to_text(ast)};
  return content_key(parts);
}

// The checksum of everything else in the file.
std::string sum_of(const Json& file) {
  const std::string parts[] = {file.at("target").dump(), file.at("compiler").dump(),
                               file.at("kernels").dump()};
  return content_key(parts);
}

}  // namespace

TunedSchedules::TunedSchedules(const Target& target, const std::string& compiler)
    : target_(target), compiler_(compiler) {}

TunedSchedules TunedSchedules::read(const std::string& path) {
  const std::vector<uint8_t> bytes = os::read_file(path);
  const Json file = Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("format") || file["format"] != kFormat)
    fail<InvalidArgument>("{} is no file of tuned schedules", path);
  if (!file.contains("version") || file["version"] != kVersion)
    fail<InvalidArgument>("{} is of another version of tuff; make it again with tuff tune", path);
  TunedSchedules out;
  try {
    if (file.at("check_sum").get<std::string>() != sum_of(file))
      fail<InvalidArgument>("{} is damaged: its check sum is not that of its contents", path);
    out.target_ = target_from_json(file.at("target").dump());
    out.compiler_ = file.at("compiler").get<std::string>();
    out.opts_ = file.at("kernels").get<std::map<std::string, std::string>>();
  } catch (const Json::exception& e) {
    fail<InvalidArgument>("{} is damaged: {}", path, e.what());
  }
  return out;
}

void TunedSchedules::write(const std::string& path) const {
  Json file{{"format", kFormat},
            {"version", kVersion},
            {"compiler", compiler_},
            {"target", Json::parse(to_json(target_))},
            {"kernels", opts_}};
  file["check_sum"] = sum_of(file);
  const std::string text = file.dump(1) + "\n";
  os::write_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

bool TunedSchedules::fits(const Target& target, const std::string& compiler,
                          std::string& why) const {
  if (target_.identity != target.identity || target_.device != target.device)
    why = fmt::format("it is for {}, not for {}", target_.describe(), target.describe());
  else if (!(target_ == target))
    why = fmt::format("what {} can do has changed", target.describe());
  else if (compiler_ != compiler)
    why = fmt::format("it was made with {}, not with {}", compiler_, compiler);
  return why.empty();
}

std::optional<kernel::Opts> TunedSchedules::find(const ir::UOp& ast) const {
  const auto it = opts_.find(key_of(ast));
  if (it == opts_.end()) return {};
  return legal_opts(it->second, ast, target_);
}

void TunedSchedules::set(const ir::UOp& ast, const kernel::Opts& opts) {
  opts_[key_of(ast)] = to_string(opts);
}

const TunedSchedules* tuned_for(const Target& target, const std::string& compiler) {
  const std::string path = env_text(Env::TUFF_TUNED);
  if (path.empty()) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<TunedSchedules>> files;  // null: refused
  static std::set<std::string> warned;
  std::lock_guard lock(mutex);
  const auto [it, fresh] = files.try_emplace(path);
  if (fresh) {
    try {
      it->second = std::make_unique<TunedSchedules>(TunedSchedules::read(path));
    } catch (const Error& e) {
      log_warn("TUFF_TUNED: {}; going on without it", e.what());
    }
  }
  if (!it->second) return nullptr;
  std::string why;
  if (it->second->fits(target, compiler, why)) return it->second.get();
  if (warned.insert(path + "\n" + why).second)
    log_warn("TUFF_TUNED: {} is not used: {}", path, why);
  return nullptr;
}

std::optional<kernel::Opts> legal_opts(const std::string& text, const ir::UOp& ast,
                                       const Target& target) {
  try {
    kernel::Opts opts = kernel::parse_opts(text);
    kernel::Tiling tiling(kernel::ast_for_opts(ast, target), target);
    for (const kernel::Opt& o : opts) apply(tiling, o);
    return opts;
  } catch (const InvalidArgument&) {
    return {};
  }
}

}  // namespace tuff::engine
