// `tuff cache`: what the disk caches hold, how large they are, and how to make them smaller.
#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "cli/command.h"
#include "base/json.h"
#include "cli/terminal.h"
#include "engine/store/disk_cache.h"

namespace tuff::cli {
namespace {

using engine::CacheEntry;
using engine::CacheKind;
using engine::DiskCache;

constexpr const char* kKinds[] = {"program", "link", "tuning"};
constexpr int64_t kDay = 24 * 60 * 60;
constexpr double kMiB = 1 << 20;

struct CacheOptions {
  bool json = false, programs = false;
  int64_t mib = -1, days = -1;
};

// What drivers compiled: files beside the database.
std::vector<os::CacheFile> driver_files() {
  std::vector<os::CacheFile> out = os::cache_files(os::cache_directory() + "/opencl", ".bin");
  for (os::CacheFile& f : os::cache_files(os::cache_directory() + "/vulkan", ".bin"))
    out.push_back(std::move(f));
  std::ranges::sort(out, {}, &os::CacheFile::used);
  return out;
}

uint64_t bytes_of(const std::vector<os::CacheFile>& files) {
  uint64_t sum = 0;
  for (const os::CacheFile& f : files) sum += f.size;
  return sum;
}

// Null where nothing was cached yet; what may not be used is an error, of which the cache has said
// why.
std::unique_ptr<DiskCache> open_existing() {
  const std::string folder = os::cache_directory();
  if (const std::string why = os::trusted_path(folder).refusal; !why.empty())
    fail<IoError>("{}", why);
  if (!os::exists(folder + "/tuff-cache-v1.db")) return nullptr;
  auto cache = std::make_unique<DiskCache>(folder);
  if (!cache->usable()) fail<IoError>("the cache in '{}' cannot be opened", folder);
  return cache;
}

std::unique_ptr<DiskCache> open_to_change() {
  auto cache = open_existing();
  if (cache && cache->read_only())
    fail<IoError>("the cache in '{}' cannot be written by you", os::cache_directory());
  return cache;
}

std::string day_of(int64_t seconds) {
  const std::time_t t = seconds;
  std::tm day{};
  char text[16] = "";
  ::gmtime_r(&t, &day);
  std::strftime(text, sizeof text, "%Y-%m-%d", &day);
  return text;
}

int show_info(const CacheOptions& o) {
  const auto cache = open_existing();
  uint64_t count[3] = {}, size[3] = {};
  if (cache)
    for (const CacheEntry& e : cache->entries()) {
      count[size_t(e.kind) % 3]++;
      size[size_t(e.kind) % 3] += e.size;
    }
  const std::vector<os::CacheFile> files = driver_files();
  const uint64_t limit = os::cache_limit_bytes();
  const bool bounded = limit != ~uint64_t{0}, writable = !cache || !cache->read_only();
  const uint64_t bytes = cache ? cache->bytes() : 0;
  if (o.json) {
    print_json({{"folder", os::cache_directory()},
                {"bytes", bytes},
                {"limit_bytes", bounded ? Json(limit) : Json()},
                {"writable", writable},
                {"programs", count[0]},
                {"program_bytes", size[0]},
                {"kernels", count[1]},
                {"tuning", count[2]},
                {"tuning_bytes", size[2]},
                {"driver_files", files.size()},
                {"driver_bytes", bytes_of(files)}});
    return kExitOk;
  }
  fmt::print("folder    {}{}\n", printable(os::cache_directory()), writable ? "" : " (read-only)");
  fmt::print("database  {:.1f} MiB{}\n", double(bytes) / kMiB,
             bounded ? fmt::format(" of {:.0f} (TUFF_CACHE_MIB)", double(limit) / kMiB) : "");
  fmt::print("programs  {} ({:.1f} MiB) of {} kernels\n", count[0], double(size[0]) / kMiB, count[1]);
  fmt::print("tuning    {} results of searches\n", count[2]);
  fmt::print("drivers'  {} files ({:.1f} MiB)\n", files.size(), double(bytes_of(files)) / kMiB);
  return kExitOk;
}

void list_one(bool json, const std::string& name, const char* kind, uint64_t size, int64_t used) {
  if (json)
    print_json({{"name", name}, {"kind", kind}, {"bytes", size}, {"last_used", day_of(used)}});
  else
    fmt::print("{}  {:<8} {:>10}  {}\n", day_of(used), kind, size, printable(name));
}

int list(const CacheOptions& o) {
  if (const auto cache = open_existing())
    for (const CacheEntry& e : cache->entries())
      list_one(o.json, e.key, kKinds[size_t(e.kind) % 3], e.size, e.used);
  for (const os::CacheFile& f : driver_files()) list_one(o.json, f.path, "driver", f.size, f.used);
  return kExitOk;
}

int say_removed(const CacheOptions& o, size_t entries, size_t files) {
  if (o.json)
    print_json({{"removed_entries", entries}, {"removed_files", files}});
  else
    fmt::print("{} entries and {} files of drivers removed\n", entries, files);
  return kExitOk;
}

int prune(const CacheOptions& o) {
  if (o.mib < 0 && o.days < 0) throw UsageError("give --mib, --days or both: what may stay");
  const auto cache = open_to_change();
  size_t entries = 0, removed = 0;
  if (o.days >= 0) {
    const int64_t before = std::time(nullptr) - o.days * kDay;
    if (cache) entries += cache->remove_before(before, !o.programs);
    std::vector<os::CacheFile> old = driver_files();
    std::erase_if(old, [&](const os::CacheFile& f) { return f.used >= before; });
    removed += os::trim_cache_files(old, 0);
  }
  if (o.mib >= 0) {
    const uint64_t limit = uint64_t(o.mib) << 20;
    if (cache) entries += cache->shrink(limit);
    removed += os::trim_cache_files(driver_files(), limit);
  }
  return say_removed(o, entries, removed);
}

int clear(const CacheOptions& o) {
  const auto cache = open_to_change();
  const int64_t all = std::numeric_limits<int64_t>::max();
  const size_t entries = cache ? cache->remove_before(all, !o.programs) : 0;
  return say_removed(o, entries, os::trim_cache_files(driver_files(), 0));
}

int verify(const CacheOptions& o) {
  const auto cache = open_existing();
  const std::vector<std::string> damaged = cache ? cache->damaged() : std::vector<std::string>();
  const size_t entries = cache ? cache->entries().size() : 0;
  if (o.json)
    print_json({{"entries", entries}, {"damaged", damaged}});
  else
    fmt::print("{} entries, {} damaged\n", entries, damaged.size());
  if (damaged.empty()) return kExitOk;
  print_error(fmt::format("{} entries are damaged, the first {}: they are not used, and made anew "
                          "when they are needed",
                          damaged.size(), damaged[0]));
  return kExitFailed;
}

CLI::App* add(CLI::App& parent, const char* name, const char* text, const char* examples,
              const std::shared_ptr<CacheOptions>& o, Action& chosen,
              int (*run)(const CacheOptions&)) {
  CLI::App* c = parent.add_subcommand(name, text);
  c->add_flag("--json", o->json, "One JSON object per line");
  c->footer(std::string("Examples:\n") + examples);
  c->callback([o, run, &chosen] { chosen = [o, run] { return run(*o); }; });
  return c;
}

}  // namespace

void add_cache_command(CLI::App& app, Action& chosen) {
  CLI::App* cache = app.add_subcommand(
      "cache", "What was compiled and found by searches before, on disk: size, bound, checks");
  cache->require_subcommand(1);
  cache->footer(
      "Examples:\n"
      "  tuff cache info\n"
      "  tuff cache prune --mib 1000");
  auto o = std::make_shared<CacheOptions>();
  add(*cache, "info", "Where the caches are, what they take and may take", "  tuff cache info --json",
      o, chosen, show_info);
  add(*cache, "list", "Every entry with its size and the day it was last used, the next to go first",
      "  tuff cache list", o, chosen, list);
  CLI::App* smaller = add(*cache, "prune", "Removes what was not used for longest, programs first",
                          "  tuff cache prune --mib 1000\n  tuff cache prune --days 30 --programs", o,
                          chosen, prune);
  smaller->add_option("--mib", o->mib, "MiB that the database may take, and the files of drivers")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  smaller->add_option("--days", o->days, "Removes what was not used for so many days")
      ->check(CLI::Range(0, 100000));
  smaller->add_flag("--programs", o->programs, "With --days: keeps what searches have found");
  CLI::App* whole = add(*cache, "clear", "Removes everything", "  tuff cache clear --programs", o,
                        chosen, clear);
  whole->add_flag("--programs", o->programs, "Keeps what searches have found");
  add(*cache, "verify", "Checks that everything is as it was written; exit code 1 if not",
      "  tuff cache verify", o, chosen, verify);
}

}  // namespace tuff::cli
