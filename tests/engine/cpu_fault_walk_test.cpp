// The fault walk on the CPU device: every mapping of memory, every load of an object and every list
// of a captured and replayed training fails once. Each ends in a documented error or in the right
// result; a device that is lost says so until it is opened again; nothing keeps it open.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

#include "base/check.h"
#include "base/os.h"
#include "devices/cpu/cpu.h"
#include "engine/device.h"
#include "engine/fault_training.h"

namespace tuff {
namespace {

using devices::CpuApi;

enum class Entry { MapPages, MapPagesFromThenOn, Load, Run, Hang };
constexpr Entry kEntries[] = {Entry::MapPages, Entry::MapPagesFromThenOn, Entry::Load, Entry::Run,
                              Entry::Hang};
const char* name(Entry e) {
  switch (e) {
    case Entry::MapPages: return "a mapping of memory";
    case Entry::MapPagesFromThenOn: return "every mapping of memory from then on";
    case Entry::Load: return "a load";
    case Entry::Run: return "a list";
    case Entry::Hang: return "a list that never ends";
  }
  return "";
}

struct {
  std::atomic<uint64_t> maps{0}, loads{0}, lists{0};
  Entry entry = Entry::Load;
  uint64_t call = 0;  // 0: none
  std::atomic<bool> happened{false};

  bool hits(std::atomic<uint64_t>& counter, bool chosen, bool from_then_on = false) {
    const uint64_t number = ++counter;
    if (call == 0 || !chosen || (from_then_on ? number < call : number != call)) return false;
    return happened = true;
  }
  void arm(Entry which, uint64_t number) {
    entry = which;
    call = number;
    maps = loads = lists = 0;
    happened = false;
  }
} injection;

void* map_pages(size_t size_bytes) {
  const bool on = injection.entry == Entry::MapPagesFromThenOn;
  return injection.hits(injection.maps, on || injection.entry == Entry::MapPages, on)
             ? nullptr
             : os::map_pages(size_bytes);
}
bool loads(const render::Binary&) {
  return !injection.hits(injection.loads, injection.entry == Entry::Load);
}
// A list that hangs is asked about again and again; its timeline value is its number.
CpuApi::Run runs(uint64_t value) {
  injection.lists = value;
  const bool hang = injection.entry == Entry::Hang;
  if (injection.call != value || !(hang || injection.entry == Entry::Run))
    return CpuApi::Run::Normally;
  injection.happened = true;
  return hang ? CpuApi::Run::Hangs : CpuApi::Run::Fails;
}

class CpuFaultWalk : public testing::Test {
 protected:
  void open() {
    device_ = engine::Device::get("CPU");
    devices::cpu_api(device_->hcq()) = {map_pages, loads, runs};
  }
  void close() {
    const std::weak_ptr<engine::Device> watched = device_;
    device_.reset();
    engine::close_devices();
    EXPECT_TRUE(watched.expired()) << "something keeps the device open";
  }
  std::string outcome() {
    try {
      EXPECT_EQ(test::train("CPU"), expected_);
      return {};
    } catch (const Error& e) {
      return e.kind();
    }
  }
  void walk(Entry entry, uint64_t call) {
    SCOPED_TRACE(testing::Message() << name(entry) << ", number " << call);
    open();
    injection.arm(entry, call);
    const std::string kind = outcome();
    const bool happened = injection.happened;
    injection.arm(entry, 0);
    if (!happened) {
      EXPECT_EQ(kind, "");
    } else if (entry == Entry::Load) {
      EXPECT_EQ(kind, "CompileError");
    } else if (entry == Entry::Run || entry == Entry::Hang) {
      EXPECT_EQ(kind, "DeviceLost");
    } else if (entry == Entry::MapPagesFromThenOn) {
      EXPECT_EQ(kind, "OutOfMemory");
    } else {
      EXPECT_EQ(kind, "") << "the second try had memory";
    }
    if (kind == "DeviceLost") {
      EXPECT_EQ(outcome(), "DeviceLost") << "a lost device stays lost";
    } else {
      EXPECT_EQ(outcome(), "") << "the device goes on";
    }
    faults_ += happened;
    close();
  }
  uint64_t count_of(Entry e) const {
    if (e == Entry::Load) return loads_;
    return e == Entry::Run || e == Entry::Hang ? lists_ : maps_;
  }

  std::shared_ptr<engine::Device> device_;
  std::vector<float> expected_;
  uint64_t maps_ = 0, loads_ = 0, lists_ = 0;
  int faults_ = 0;
};

TEST_F(CpuFaultWalk, EveryCallMayFail) {
  open();
  injection.arm(Entry::Load, 0);
  expected_ = test::train("CPU");
  maps_ = injection.maps;
  loads_ = injection.loads;
  lists_ = injection.lists;
  close();
  EXPECT_GT(maps_, 0u);
  EXPECT_GT(loads_, 3u);
  EXPECT_GT(lists_, 5u);
  for (const Entry e : kEntries) {
    for (uint64_t call = 1; call <= count_of(e); call++) walk(e, call);
  }
  std::printf("%d faults injected on CPU: %llu mappings, %llu loads, %llu lists\n", faults_,
              (unsigned long long)maps_, (unsigned long long)loads_, (unsigned long long)lists_);
  EXPECT_GE(faults_, int(maps_ + loads_ + lists_));
}

}  // namespace
}  // namespace tuff
