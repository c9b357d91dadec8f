// Takes away what orders memory in a scene's command streams, one by one: waits, semaphores,
// invalidations, flushes. The emulated machine or the values have to notice each that is needed.
#include <algorithm>
#include <map>
#include <set>

#include "devices/nv/fixture.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

// What is changed in a list: a unit of methods that does nothing, or bits of a word.
struct Mutation {
  std::string name;
  bool copies = false;  // of the copy queue's list
  bool launch = false;  // of its QMDs, not its methods
  uint32_t dword = 0, count = 0;          // words that do nothing, or
  uint32_t clear = 0, set = 0;            // bits of `dword`
};

// Copies that need each other, then kernels and copies that do, twice with other sizes.
class Scene {
 public:
  Scene() : gpu_(machine_) {
    source_ = gpu_.upload(counting(64, 10));
    for (Span* s : {&a_, &b_, &c_, &d_, &e_, &f_, &g_}) *s = gpu_.upload(Words(64, 0));
    signal_ = gpu_.device->create_signal();
    const Command copied{SignalCmd{signal_.get(), 0}, {}, ""};
    copy_ = gpu_.device->copy_queue()->encode(
        Opened::list_of({Opened::copy(a_, source_), Opened::copy(b_, a_), copied}, 1),
        EncodeUse::Replay);
    const Command waited{WaitCmd{signal_.get(), 0}, {}, ""};
    compute_ = gpu_.queue().encode(
        Opened::list_of({waited, gpu_.dispatch(kAdd, {b_, c_}, 1, 1, 1), Opened::barrier(),
                         gpu_.dispatch(kAdd, {c_, d_}, 1, 2), Opened::barrier(),
                         gpu_.dispatch(kAdd, {d_, g_}, 1, 2), Opened::barrier(),
                         Opened::copy(e_, g_), Opened::barrier(),
                         gpu_.dispatch(kAdd, {e_, f_}, 1, 2)},
                        2),
        EncodeUse::Replay);
  }
  NvList& list(bool copies) { return static_cast<NvList&>(copies ? *copy_ : *compute_); }

  void apply(const Mutation& m) {
    NvList& l = list(m.copies);
    PacketStream& stream = m.launch ? l.encoded.launches : l.encoded.methods;
    uint32_t& word = stream.dwords[m.dword];
    if (m.count) word = 3u << 29 | (m.count - 1) << 16 | 0x8 >> 2;  // NOP, not increasing
    else word = (word & ~m.clear) | m.set;
    const Span& span = m.launch ? l.launches : l.methods;
    std::memcpy(span.host(), stream.dwords.data(), stream.dwords.size() * 4);
  }

  // True if something was found: by the machine, by a wait that does not end, or in the values.
  bool run() {
    try {
      for (const uint64_t round : {1, 2}) {
        const uint64_t slots[] = {round, 3 - round};  // two groups, then one
        Queue& copies = *gpu_.device->copy_queue();
        const uint64_t copied = copies.submit(*copy_, {slots, 1});
        const uint64_t computed = gpu_.queue().submit(*compute_, {slots, 2});
        gpu_.queue().wait(computed);
        copies.wait(copied);
        gpu_.device->check_status();
      }
      const Words found = gpu_.read(f_);
      gpu_.device->check_status();
      return found != counting(64, 14);
    } catch (const HazardFound&) {
    } catch (const DeviceLost&) {
    }
    return true;
  }
  ~Scene() { machine_.iface.take_findings(); }

 private:
  const EnvOverride patience_{Env::TUFF_TIMEOUT_MS, "300"};
  Machine machine_{"sm:86"};
  Opened gpu_;
  Span source_, a_, b_, c_, d_, e_, f_, g_;
  std::unique_ptr<hcq::Signal> signal_;
  std::unique_ptr<EncodedList> copy_, compute_;
};

const char* method_name(uint32_t head) {
  const uint32_t method = (head & 0xfff) * 4;
  static const std::map<uint32_t, const char*> names{
      {0x5c, "semaphore"}, {0x78, "WFI"},          {0x20, "interrupt"}, {0x1698, "invalidate code"},
      {0x2b4, "PCAS_A"},   {0x2c0, "PCAS2_B"},     {0x400, "offsets"},  {0x418, "length"},
      {0x300, "launch of a copy"}};
  const auto found = names.find(method);
  return found == names.end() ? "?" : found->second;
}

std::vector<Mutation> mutations(Scene& scene) {
  std::vector<Mutation> out;
  std::map<std::string, int> seen;
  const auto numbered = [&](const std::string& name) {
    return fmt::format("{} {}", name, ++seen[name]);
  };
  for (const bool copies : {true, false}) {
    const NvList& list = scene.list(copies);
    const std::string queue = copies ? "copy" : "compute";
    const PacketStream& methods = list.encoded.methods;
    for (size_t i = 0; i < methods.units.size(); ++i) {
      const uint32_t begin = methods.units[i], head = methods.dwords[begin],
                     count = 1 + (head >> 16 & 0x1fff);
      const std::string name = queue + ": " + method_name(head);
      out.push_back({numbered(name), copies, false, begin, count});
      if ((head & 0xfff) * 4 != 0x300) continue;
      out.push_back({numbered(name + " without FLUSH"), copies, false, begin + 1, 0, 1u << 2, 0});
      out.push_back({numbered(name + " pipelined"), copies, false, begin + 1, 0, 3, 1});
    }
    // clc7c0qmd.h: INVALIDATE_SHADER_DATA_CACHE 189, _CONSTANT_CACHE 191, CWD_MEMBAR_TYPE 369:368,
    // DEPENDENT_QMD_ENABLE 512.
    const PacketStream& launches = list.encoded.launches;
    for (const uint32_t qmd : launches.units) {
      for (const auto& [name, bit] :
           std::map<std::string, uint32_t>{{"invalidate data", 189}, {"invalidate constants", 191},
                                           {"membar", 368}, {"dependent launch", 512}}) {
        const std::string own = numbered("QMD: " + name);
        if (launches.dwords[qmd + bit / 32] >> bit % 32 & 1)
          out.push_back({own, copies, true, qmd + bit / 32, 0, 1u << bit % 32, 0});
      }
    }
  }
  return out;
}

// What the scene does not need, and why.
const std::map<std::string, const char*> kNotNeeded{
    {"copy: interrupt 1", "nobody asks to be told"},
    {"compute: interrupt 1", "nobody asks to be told"},
    {"compute: WFI 1", "the list before ended with a release, which waits"},
    {"compute: invalidate code 1", "addresses of code that is freed come back late"},
    {"copy: launch of a copy pipelined 1", "no copy is before it in the list"},
    {"compute: launch of a copy pipelined 1", "no copy is before it in the list"},
    {"copy: length 2", "the copy before has the same"},
    {"compute: length 1", "the copies that filled the buffers had the same"},
    {"QMD: invalidate constants 1", "launches behind it void the cache once it was read"},
    {"QMD: invalidate constants 2", "this launch's size does not change"},
    {"QMD: invalidate constants 3", "this launch's size does not change"},
    {"QMD: invalidate constants 4", "this launch's size does not change"},
};

TEST(NvMutation, EachDeletionThatMattersIsFound) {
  std::vector<Mutation> all;
  {
    Scene scene;
    ASSERT_FALSE(scene.run());
    all = mutations(scene);
  }
  ASSERT_GT(all.size(), 30u);
  for (const Mutation& m : all) {
    Scene scene;
    scene.apply(m);
    const bool found = scene.run();
    const auto known = kNotNeeded.find(m.name);
    EXPECT_EQ(found, known == kNotNeeded.end())
        << m.name << (known == kNotNeeded.end() ? " is not missed" : known->second);
  }
}

// Of a list's only launch, whose size changes.
TEST(NvMutation, ALoneLaunchsConstantsAreInvalidated) {
  for (const bool mutated : {false, true}) {
    Machine machine;
    Opened gpu(machine);
    const Span a = gpu.upload(Words(64, 0));
    const auto encoded =
        gpu.queue().encode(Opened::list_of({gpu.dispatch(kFill, {a}, 7, 1, 0)}, 1),
                           EncodeUse::Replay);
    auto& list = static_cast<NvList&>(*encoded);
    if (mutated) list.encoded.launches.dwords[191 / 32] &= ~(1u << 191 % 32);
    std::memcpy(list.launches.host(), list.encoded.launches.dwords.data(),
                list.encoded.launches.dwords.size() * 4);
    const auto run = [&] {
      for (const uint64_t groups : {2, 1}) gpu.queue().wait(gpu.queue().submit(list, {&groups, 1}));
    };
    if (!mutated) run();
    else EXPECT_THROW(run(), DeviceLost);
  }
}

}  // namespace
}  // namespace tuff::devices::nv
