#include "devices/vulkan/self_test/verdicts.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "devices/selector.h"
#include "devices/vulkan/facts/describe.h"
#include "devices/vulkan/self_test/matrix_self_test.h"
#include "devices/vulkan/self_test/self_test.h"

namespace tuff::devices::vulkan {
namespace {

constexpr const char* kPassed = "passed";
constexpr const char* kRunning = "running";
constexpr uint64_t kLockTimeoutNs = 20'000'000'000;  // another process runs the same tests

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string caps_text(const Caps& c) {
  std::string text;
  for (const CapRow& r : kCapRows) text += c.*r.member ? '1' : '0';
  return text;
}

// What is in the file; nothing if there is none or it is no good.
Verdicts read_verdicts(const std::string& path, const std::string& identity) {
  if (path.empty()) return {};
  try {
    const auto file = os::read_private_file(path);
    return file ? verdicts_from_text(identity, {file->begin(), file->end()}) : Verdicts();
  } catch (const Error& e) {
    log_warn("the verdicts of self-tests cannot be read: {}", e.what());
    return {};
  }
}

void write_verdicts(const std::string& path, const std::string& identity, const Verdicts& v) {
  if (path.empty()) return;
  try {
    os::write_private_file(path, bytes_of(verdict_text(identity, v)));
  } catch (const Error& e) {
    log_warn("the verdicts of self-tests were not saved: {}", e.what());
  }
}

bool complete(const Facts& facts, const Verdicts& verdicts) {
  const auto judged = [&](const std::string& name) {
    const auto it = verdicts.find(name);
    return it != verdicts.end() && it->second != kRunning;
  };
  Facts passed = facts;
  for (const SelfTest& t : self_tests()) {
    if (!(facts.caps.*t.cap)) continue;
    if (!judged(t.name)) return false;
    passed.caps.*t.cap = verdicts.at(t.name) == kPassed;
  }
  // Shapes of a capability that has failed are not tested.
  const std::vector<MatrixShape> shapes = usable_shapes(passed);
  return std::all_of(shapes.begin(), shapes.end(),
                     [&](const MatrixShape& s) { return judged(matrix_test_name(s)); });
}

void note_failure(Facts& facts, const std::string& name) {
  facts.failed_self_test += (facts.failed_self_test.empty() ? "" : ",") + name;
}

void apply_verdicts(Facts& facts, const Verdicts& verdicts) {
  facts.self_tested = complete(facts, verdicts);
  for (const SelfTest& t : self_tests()) {
    const auto it = verdicts.find(t.name);
    if (!(facts.caps.*t.cap) || it == verdicts.end() || it->second == kPassed) continue;
    if (it->second == kRunning) continue;  // under way elsewhere, or to be judged at the next start
    facts.caps.*t.cap = false;
    note_failure(facts, t.name);
  }
  std::erase_if(facts.matrix_shapes, [&](const MatrixShape& s) {
    const auto it = verdicts.find(matrix_test_name(s));
    if (it == verdicts.end() || it->second == kPassed || it->second == kRunning) return false;
    note_failure(facts, it->first);
    return true;
  });
}

void warn(const Facts& f, const std::string& name, const char* test, const std::string& what) {
  log_warn("{} ({}, {} {}): {} fails its self-test and is not used: {}", name,
           f.properties.deviceName, f.driver_name, f.driver_info, test, what);
}

// The tests of one device in their order, on trial devices: one that is lost is replaced.
class Trial {
 public:
  Trial(const Facts& facts, std::string name, const OpenTrial& open, std::string path)
      : facts_(facts), name_(std::move(name)), open_(open), path_(std::move(path)) {
    trusted_ = facts.caps;
    for (const SelfTest& t : self_tests()) trusted_.*t.cap = false;
  }

  void run(Verdicts& verdicts) {
    for (const SelfTest& t : self_tests()) {
      if (!(facts_.caps.*t.cap)) continue;
      Facts f = facts_;
      f.caps = trusted_;
      f.caps.*t.cap = true;
      const auto test = [&] { return run_self_test(t, *device_, make_target(f)); };
      trusted_.*t.cap = settle(t.name, test, verdicts);
    }
    Facts f = facts_;
    f.caps = trusted_;
    for (const MatrixShape& s : usable_shapes(f)) {
      const auto test = [&] { return run_matrix_self_test(s, *device_, make_target(f)); };
      settle(matrix_test_name(s), test, verdicts);
    }
    write_verdicts(path_, identity_, verdicts);
  }

 private:
  // Whether the test has passed, now or before.
  template <class Test>
  bool settle(const std::string& test_name, Test test, Verdicts& verdicts) {
    if (!verdicts.contains(test_name)) {
      if (!device_) device_ = open_(facts_);  // its failure is no verdict
      verdicts[test_name] = kRunning;
      write_verdicts(path_, identity_, verdicts);
      const std::optional<std::string> verdict = judge(test_name, test);
      if (verdict)
        verdicts[test_name] = *verdict;
      else
        verdicts.erase(test_name);
    }
    const auto now = verdicts.find(test_name);
    return now != verdicts.end() && now->second == kPassed;
  }

  // Nothing: the test could not be run.
  template <class Test>
  std::optional<std::string> judge(const std::string& test_name, Test test) {
    const auto failed = [&](const std::string& what) {
      warn(facts_, name_, test_name.c_str(), what);
      return one_line(what);
    };
    try {
      const std::string wrong = test();
      return wrong.empty() ? kPassed : failed(wrong);
    } catch (const Error& e) {
      if (dynamic_cast<const OutOfMemory*>(&e) || dynamic_cast<const IoError*>(&e)) {
        log_warn("{}: the self-test of {} was not run: {}", name_, test_name, e.what());
        return std::nullopt;
      }
      device_.reset();
      return failed(e.what());
    }
  }

  const Facts& facts_;
  std::string name_;
  const OpenTrial& open_;
  const std::string path_, identity_ = self_test_identity(facts_);
  Caps trusted_;
  std::unique_ptr<hcq::Device> device_;
};

// A test that was under way when its process ended.
void judge_interrupted(const Facts& facts, const std::string& name, const std::string& path,
                       Verdicts& verdicts) {
  for (auto& [test, verdict] : verdicts) {
    if (verdict != kRunning) continue;
    verdict = "an earlier process ended during it";
    warn(facts, name, test.c_str(), fmt::format("{}; to try again remove {}", verdict, path));
  }
}

std::optional<os::FileLock> lock_beside(const std::string& path, const std::string& name) {
  if (path.empty()) return std::nullopt;
  try {
    os::make_private_directories(path.substr(0, path.rfind('/')));
    auto lock = os::FileLock::acquire(path + ".lock", kLockTimeoutNs);
    if (!lock) log_warn("{}: another process has been at the self-tests for too long", name);
    return lock;
  } catch (const Error& e) {
    log_warn("{}: the verdicts of self-tests cannot be kept: {}", name, e.what());
    return std::nullopt;
  }
}

}  // namespace

std::string self_test_identity(const Facts& f) {
  return one_line(fmt::format("tests {} driver {} {:#x} \"{}\" \"{}\" device {} \"{}\" caps {}",
                              kSelfTestVersion, static_cast<int>(f.driver_id),
                              f.properties.driverVersion, f.driver_name, f.driver_info,
                              f.uuid_text(), f.properties.deviceName, caps_text(f.caps)));
}

std::string verdict_path(const Facts& facts) {
  return os::cache_path(
      fmt::format("vulkan/self-tests-{:016x}.txt", fnv1a(bytes_of(self_test_identity(facts)))));
}

std::string verdict_text(const std::string& identity, const Verdicts& verdicts) {
  std::string text = identity + "\n";
  for (const auto& [test, verdict] : verdicts) text += test + " " + verdict + "\n";
  return text + fmt::format("end {:016x}\n", fnv1a(bytes_of(text)));
}

Verdicts verdicts_from_text(const std::string& identity, const std::string& text) {
  const size_t end = text.rfind("end ");
  if (end == std::string::npos ||
      text.substr(end) != fmt::format("end {:016x}\n", fnv1a(bytes_of(text).first(end))))
    return {};
  std::istringstream lines(text.substr(0, end));
  std::string line;
  if (!std::getline(lines, line) || line != identity) return {};
  Verdicts out;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) return {};
    out[line.substr(0, space)] = line.substr(space + 1);
  }
  return out;
}

void recall_verdicts(Facts& facts) {
  const std::string identity = self_test_identity(facts);
  apply_verdicts(facts, read_verdicts(verdict_path(facts), identity));
}

void settle_verdicts(Facts& facts, const std::string& name, const OpenTrial& open) {
  const std::string identity = self_test_identity(facts);
  std::string path = verdict_path(facts);
  Verdicts verdicts = read_verdicts(path, identity);
  if (!complete(facts, verdicts)) {
    const auto lock = lock_beside(path, name);
    // What another process has found meanwhile; and what is still running there, it is not here.
    verdicts = read_verdicts(path, identity);
    judge_interrupted(facts, name, path, verdicts);
    if (!lock) path.clear();
    Trial(facts, name, open, path).run(verdicts);
  }
  apply_verdicts(facts, verdicts);
  if (!facts.failed_self_test.empty())
    log_info("{}: not used, having failed self-tests: {}", name, facts.failed_self_test);
}

}  // namespace tuff::devices::vulkan
