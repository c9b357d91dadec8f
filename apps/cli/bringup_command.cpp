// `tuff bringup`: one part of a device after the other, from what can do no harm to what does work,
// a few cases of the conformance suite, and on request a fault. For the first time that a driver
// meets a device; scripts/gpu-check runs it before anything else.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "base/check.h"
#include "base/os.h"
#include "check/run_case.h"
#include "check/suite.h"
#include "cli/bringup_report.h"
#include "cli/command.h"
#include "engine/device.h"
#include "hcq/launch.h"

namespace tuff::cli {
namespace {

using hcq::CommandList;
using hcq::MemoryKind;
using hcq::Span;

struct BringupOptions {
  std::string device, until, report;
  bool fault = false, json = false;
};

// A device need not have the part; what it says of that is the step's detail.
class Absent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::vector<uint8_t> pattern(size_t size, uint8_t seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; i++) bytes[i] = static_cast<uint8_t>(i * 31 + i / 251 + seed);
  return bytes;
}

void require_equal(const std::vector<uint8_t>& got, const std::vector<uint8_t>& expected,
                   const std::string& what) {
  const auto [g, e] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (g != got.end())
    fail<Error>("{}: byte {} of {} is {:#04x}, not {:#04x}", what, g - got.begin(), got.size(), *g,
                *e);
}

// What `make` gives; Absent where the device does not have it.
template <class Make>
auto if_there(Make make) {
  try {
    return make();
  } catch (const Unsupported& e) {
    throw Absent(e.what());
  }
}

// A span of the device's allocator for as long as a step lasts.
class Room {
 public:
  Room(hcq::Device& device, size_t size, MemoryKind kind)
      : span(device.allocator().allocate(size, kind)), device_(device) {}
  ~Room() { device_.allocator().free(span); }
  Room(const Room&) = delete;
  const Span span;

 private:
  hcq::Device& device_;
};

class Bringup {
 public:
  explicit Bringup(const BringupOptions& o) : o_(o), report_(o.report, o.json) {}

  int run() {
    using Step = std::string (Bringup::*)();
    struct Row {
      const char* name;
      Step step;
    };
    const Row rows[] = {
        {"machine", &Bringup::machine},
        {"find", &Bringup::find},
        {"open", &Bringup::open},
        {"memory", &Bringup::memory},
        {"signal", &Bringup::signal},
        {"timestamp", &Bringup::time},
        {"host wait", &Bringup::wait_for_host},
        {"copy", &Bringup::copy},
        {"copy queue", &Bringup::copy_queue},
        {"kernel", &Bringup::kernel},
        {"kernels in order", &Bringup::kernels_in_order},
        {"replay", &Bringup::replay},
        {"suite", &Bringup::suite},
        {"fault", &Bringup::fault},
    };
    if (!o_.until.empty() &&
        std::ranges::none_of(rows, [&](const Row& row) { return row.name == o_.until; })) {
      std::string names;
      for (const Row& row : rows)
        names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", row.name);
      throw UsageError(fmt::format("--until \"{}\": the steps are {}", o_.until, names));
    }
    for (const Row& row : rows) {
      if (row.step == &Bringup::fault && !o_.fault) break;
      if (!take(row.name, [&] { return (this->*row.step)(); })) return kExitFailed;
      if (row.name == o_.until || os::interrupted()) break;
    }
    return os::interrupted() ? kExitInterrupted : kExitOk;
  }

 private:
  bool take(const char* name, const std::function<std::string()>& step) {
    report_.begin(name);
    facts_ = nullptr;
    const uint64_t begin = os::monotonic_ns();
    std::string status = "passed", detail;
    try {
      detail = step();
    } catch (const Absent& e) {
      status = "absent", detail = e.what();
    } catch (const std::exception& e) {
      status = "failed", detail = e.what();
    }
    report_.end(name, status, double(os::monotonic_ns() - begin) / 1e6, detail, facts_);
    return status != "failed";
  }

  hcq::Device& device() const { return device_->hcq(); }
  TensorOptions on_device(DType dtype) const { return {.dtype = dtype, .device = device_->name()}; }
  uint64_t submit(const CommandList& list, std::span<const uint64_t> slots = {}) {
    hcq::Queue& queue = device().compute_queue();
    return queue.submit_once(queue.encode(list, hcq::EncodeUse::Once), slots);
  }

  void require_contents(const Span& span, const std::vector<uint8_t>& expected,
                        const std::string& what) {
    std::vector<uint8_t> got(expected.size());
    device().download(span, got.data());
    require_equal(got, expected, what);
  }

  std::string machine() {
    facts_ = machine_facts();
    const std::string driver = facts_["nvidia_driver"];
    return fmt::format("tuff {}, {}{}{}", facts_["tuff"].get<std::string>(),
                       facts_["kernel"].get<std::string>(), driver.empty() ? "" : ", ", driver);
  }

  // Nothing is kept open. The kind's first where a selector is no name of the list ("uuid=...").
  std::string find() {
    const std::string kind = o_.device.substr(0, o_.device.find(':'));
    std::string reasons, names;
    const devices::Candidate* found = nullptr;
    const std::vector<devices::Candidate> all = engine::list_devices();
    for (const devices::Candidate& c : all) {
      if (c.usable) names += (names.empty() ? "" : ", ") + c.name;
      if (!o_.device.empty() && c.name.substr(0, c.name.find(':')) != kind) continue;
      if (!c.usable)
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", c.name, c.reason);
      if (c.usable && (!found || c.name == o_.device)) found = &c;
    }
    if (found) return fmt::format("{}: {}", found->name, found->info.description);
    fail<Unsupported>("{}", reasons.empty() ? fmt::format("there is no device \"{}\"; there are {}", o_.device, names) : reasons);
  }

  std::string open() {
    device_ = engine::Device::get(o_.device);
    const hcq::DeviceInfo& info = device().info();
    facts_ = {{"description", info.description}, {"uuid", info.uuid}};
    for (const auto& [name, value] : info.features) facts_[name] = value;
    return fmt::format("{}, {}{}{}, {} MiB", info.name, info.driver,
                       info.api_version.empty() ? "" : " ", info.api_version,
                       info.memory_bytes >> 20);
  }

  std::string memory() {
    constexpr size_t kBytes = 1 << 20;
    std::string host_sees;
    for (int k = 0; k < hcq::kMemoryKindCount; k++) {
      const Room room(device(), kBytes, static_cast<MemoryKind>(k));
      std::byte* host = room.span.host();
      if (!host) continue;
      const std::vector<uint8_t> bytes = pattern(kBytes, uint8_t(k));
      std::memcpy(host, bytes.data(), kBytes);
      std::vector<uint8_t> got(kBytes);
      std::memcpy(got.data(), host, kBytes);
      static constexpr const char* kNames[] = {"device", "args", "upload", "readback"};
      require_equal(got, bytes, kNames[k]);
      host_sees += fmt::format(" {}", kNames[k]);
    }
    device().allocator().trim();
    return fmt::format("1 MiB of each kind; the host sees{}", host_sees);
  }

  std::string signal() {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
      const uint64_t begin = os::monotonic_ns();
      device().compute_queue().wait(submit({}));
      best = std::min(best, os::monotonic_ns() - begin);
    }
    return fmt::format("an empty submission and back in {:.1f} us", double(best) / 1e3);
  }

  std::string time() {
    CommandList list;
    list.timestamp_count = 2;
    for (uint32_t i : {0u, 1u}) list.commands.push_back({hcq::TimestampCmd{i}, {}, {}});
    hcq::Queue& queue = device().compute_queue();
    const auto encoded = if_there([&] { return queue.encode(list, hcq::EncodeUse::Replay); });
    const uint64_t begin = os::monotonic_ns();
    queue.wait(queue.submit(*encoded, {}));
    const uint64_t end = os::monotonic_ns();
    const std::vector<uint64_t> at = queue.timestamps(*encoded);
    // Drivers relate the clocks by reading one after the other; the thread may be stopped between.
    constexpr uint64_t kSlackNs = 50'000'000;
    if (at[0] > at[1] || at[0] + kSlackNs < begin || at[1] > end + kSlackNs)
      fail<Error>("times {} and {} of a submission between {} and {}", at[0], at[1], begin, end);
    return fmt::format("{:.1f} us after the submission began",
                       (double(at[0]) - double(begin)) / 1e3);
  }

  std::string wait_for_host() {
    const auto go = if_there([&] { return device().create_signal(); });
    const uint64_t value = submit({{{hcq::WaitCmd{go.get(), 0}, {}, {}}}, 1}, kFirst);
    const bool early = device().compute_queue().timeline().wait(value, 2'000'000);
    go->set(1);
    device().compute_queue().wait(value);
    if (early) fail<Error>("the queue did not wait");
    return "the queue waited for the host";
  }

  std::string copy() {
    size_t most = 0;
    for (size_t size : {size_t{4}, size_t{4096}, (size_t{8} << 20) + 12}) {
      const std::vector<uint8_t> bytes = pattern(size, 7);
      const Room a(device(), size, MemoryKind::Device), b(device(), size, MemoryKind::Device);
      device().upload(a.span, bytes.data());
      submit({{hcq::copy_command(b.span, a.span)}});
      require_contents(b.span, bytes, fmt::format("a copy of {} bytes", size));
      most = size;
    }
    return fmt::format("up to {} bytes", most);
  }

  std::string copy_queue() {
    hcq::Queue* queue = device().copy_queue();
    if (!queue) throw Absent("the device has none");
    constexpr size_t kBytes = (1 << 20) + 4;
    const std::vector<uint8_t> bytes = pattern(kBytes, 9);
    const Room a(device(), kBytes, MemoryKind::Device), b(device(), kBytes, MemoryKind::Device);
    device().upload(a.span, bytes.data());
    const std::unique_ptr<hcq::Signal> copied = device().create_signal();
    const CommandList list{
        {hcq::copy_command(b.span, a.span), {hcq::SignalCmd{copied.get(), 0}, {}, {}}}, 1};
    queue->submit_once(queue->encode(list, hcq::EncodeUse::Once), kFirst);
    submit({{{hcq::WaitCmd{copied.get(), 0}, {}, {}}}, 1}, kFirst);
    require_contents(b.span, bytes, "the copy queue");
    queue->wait_idle();
    return fmt::format("{} bytes, and the compute queue waited for it", kBytes);
  }

  std::string kernel() {
    const Tensor x = Tensor::arange(0, 1000, 1, on_device(DType::I32));
    const std::vector<int32_t> got = (x * 3 + 1).to_vector<int32_t>();
    for (int32_t i = 0; i < 1000; i++)
      if (got[size_t(i)] != 3 * i + 1)
        fail<Error>("element {} of arange(1000) * 3 + 1 is {}", i, got[size_t(i)]);
    return "arange(1000) * 3 + 1";
  }

  // Each reads what the one before it wrote.
  std::string kernels_in_order() {
    constexpr int kKernels = 20;
    Tensor x = Tensor::arange(0, 4096, 1, on_device(DType::I32));
    x.realize();
    for (int i = 0; i < kKernels; i++) {
      x = x + 1;
      x.realize();
    }
    const std::vector<int32_t> got = x.to_vector<int32_t>();
    for (int32_t i = 0; i < 4096; i++)
      if (got[size_t(i)] != i + kKernels)
        fail<Error>("element {} is {} after {} additions", i, got[size_t(i)], kKernels);
    return fmt::format("{} kernels", kKernels);
  }

  std::string replay() {
    constexpr int kReplays = 100;
    Jit step([](const std::vector<Tensor>& in) {
      Tensor y = in[0] * 2 + in[1];
      return std::vector<Tensor>{y.sum(), y};
    });
    for (int i = 0; i < kReplays; i++) {
      const Tensor a = Tensor::from(std::vector<int32_t>(256, i), {256}, on_device(DType::I32));
      const Tensor b = Tensor::from(std::vector<int32_t>(256, 5), {256}, on_device(DType::I32));
      const int64_t sum = step({a, b})[0].to_vector<int64_t>()[0];
      if (sum != 256 * (2 * i + 5)) fail<Error>("replay {} gave {}", i, sum);
    }
    return fmt::format("{} replays, {} submission each", step.stats().replays,
                       step.stats().submits_per_replay);
  }

  // Of each kind of work a little, in this process.
  std::string suite() {
    const std::vector<const check::Case*> cases = check::matching(kSuite);
    size_t ran = 0;
    for (const check::Case* c : cases) {
      if (os::interrupted()) break;
      const check::CaseResult r = check::run_case(*c, device_->name(), "", 0);
      if (!r.expected)
        fail<Error>("{} of {} cases ran, then {}: {}: {}", ran, cases.size(), r.name,
                    check::name(r.verdict), r.message);
      ran++;
    }
    return fmt::format("{} cases of tuff check --filter '{}'", ran, kSuite);
  }

  std::string fault() {
    const std::string kind = device().name().substr(0, device().name().find(':'));
    if (kind != "AMD" && kind != "NV")
      throw Absent("only devices that are driven directly tell where a fault was");
    constexpr uint64_t kNowhere = 0x7ead'0000'0000;
    const Room room(device(), 4096, MemoryKind::Device);
    const hcq::MemoryBlock nowhere{kNowhere, 4096, nullptr, MemoryKind::Device, 0};
    try {
      device().compute_queue().wait(submit({{hcq::copy_command(room.span, {&nowhere, 0, 4096})}}));
    } catch (const DeviceLost& e) {
      const std::string text = e.what();
      if (text.find(fmt::format("{:#x}", kNowhere)) == std::string::npos)
        fail<Error>("the error does not name the address {:#x}: {}", kNowhere, text);
      return text;
    }
    fail<Error>("reading {:#x}, where nothing is mapped, went unnoticed", kNowhere);
  }

  static constexpr uint64_t kFirst[] = {1};  // value of a signal, as a list's slot
  static constexpr const char* kSuite =
      "add/f32/*,mul/i64/*,cast/f32*,reduce_add/f32/*,Tensor.matmul*/f32/*,Tensor.softmax/f32/*,"
      "Tensor.gather/f32/*,Tensor.conv2d/f32/*";

  const BringupOptions& o_;
  BringupReport report_;
  Json facts_;  // of the step that is taken
  std::shared_ptr<engine::Device> device_;
};

}  // namespace

void add_bringup_command(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "bringup",
      "Takes a device into use step by step, from harmless to full, and stops at the first step "
      "that fails. Exit code 0: all passed, 1: one failed, 2: usage");
  auto o = std::make_shared<BringupOptions>();
  command->add_option("--device", o->device, "The device; default: the default device")
      ->type_name("DEVICE");
  command->add_option("--until", o->until, "The last step to take: find, open, memory, signal ...")
      ->type_name("STEP");
  command->add_flag("--fault", o->fault,
                    "At the end reads memory that is not mapped; the device has to say where");
  command->add_flag("--json", o->json, "One JSON object per step on standard output");
  command
      ->add_option("--report", o->report,
                   "Writes what is to be told of the machine and of each step there too, one JSON "
                   "object per line; a step that ends the program or the machine is named")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  tuff bringup --device VULKAN\n"
      "  tuff bringup --device NV --report nv.jsonl\n"
      "  tuff bringup --device AMD --until memory");
  command->callback([o, &chosen] { chosen = [o] { return Bringup(*o).run(); }; });
}

}  // namespace tuff::cli
