// Takes away what orders memory in scenes' command streams, one by one: waits, semaphores,
// invalidations, flushes. The emulated machine or the values have to notice each that is needed. On
// every generation, and between two GPUs.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "devices/nv/fixture.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

// What is changed in a list: a unit of methods that does nothing, or bits of a word.
struct Mutation {
  std::string kind;  // "compute: WFI"
  std::string name;  // with which of its kind
  size_t list = 0;   // of the scene
  bool launch = false;                    // in its QMDs, not its methods
  uint32_t dword = 0, count = 0;          // words that do nothing, or
  uint32_t clear = 0, set = 0;            // bits of `dword`
};

// Lists on queues of one machine, which are submitted in rounds.
class Scene {
 public:
  explicit Scene(const std::string& options, uint32_t gpus = 1) : machine_(options) {
    for (uint32_t i = 0; i < gpus; ++i)
      gpus_.push_back(std::make_unique<Opened>(machine_, std::to_string(i)));
  }
  virtual ~Scene() { machine_.iface.take_findings(); }
  struct List {
    std::string name;
    std::unique_ptr<EncodedList> encoded;
    NvList& own() const { return static_cast<NvList&>(*encoded); }
  };
  const std::vector<List>& lists() const { return lists_; }

  void apply(const Mutation& m) {
    NvList& l = lists_[m.list].own();
    PacketStream& stream = m.launch ? l.encoded.launches : l.encoded.methods;
    uint32_t& word = stream.dwords[m.dword];
    if (m.count) word = 3u << 29 | (m.count - 1) << 16 | 0x8 >> 2;  // NOP, not increasing
    else word = (word & ~m.clear) | m.set;
    const Span& span = m.launch ? l.launches : l.methods;
    std::memcpy(span.host(), stream.dwords.data(), stream.dwords.size() * 4);
  }

  // True if something was found: by the machine, by a wait that does not end, or in the values.
  bool finds() {
    try {
      const bool right = run();
      for (const auto& gpu : gpus_) gpu->device->check_status();
      return !right;
    } catch (const HazardFound&) {
    } catch (const DeviceLost&) {
    }
    return true;
  }

 protected:
  virtual bool run() = 0;  // whether all values are right
  Opened& gpu(size_t i = 0) { return *gpus_[i]; }
  void add(const std::string& name, Queue& queue, std::vector<Command> commands, uint32_t slots) {
    lists_.push_back(
        {name, queue.encode(Opened::list_of(std::move(commands), slots), EncodeUse::Replay)});
  }
  // By the copy queue, whose lists do not wait for the compute queue's.
  Words read_by_copies(const Span& s, size_t i = 0) {
    Queue& copies = *gpu(i).device->copy_queue();
    const Span out = gpu(i).words(s.size_bytes / 4);
    copies.wait(Opened::submit(copies, {Opened::copy(out, s)}));
    return gpu(i).read(out);
  }
  uint64_t submit(size_t list, std::span<const uint64_t> slots) {
    EncodedList& l = *lists_[list].encoded;
    return static_cast<NvList&>(l).queue.submit(l, slots);
  }

 private:
  const EnvOverride patience_{Env::TUFF_TIMEOUT_MS, "300"};
  Machine machine_;
  std::vector<std::unique_ptr<Opened>> gpus_;
  std::vector<List> lists_;
};

// Copies that need each other, then kernels and copies that do, twice with other sizes.
class Chain : public Scene {
 public:
  explicit Chain(const std::string& options) : Scene(options) {
    Opened& g = gpu();
    source_ = g.upload(counting(64, 10));
    for (Span* s : {&a_, &b_, &c_, &d_, &e_, &f_, &g_}) *s = g.upload(Words(64, 0));
    signal_ = g.device->create_signal();
    add("copy", *g.device->copy_queue(),
        {Opened::copy(a_, source_), Opened::copy(b_, a_), {SignalCmd{signal_.get(), 0}, {}, ""}},
        1);
    add("compute", g.queue(),
        {{WaitCmd{signal_.get(), 0}, {}, ""}, g.dispatch(kAdd, {b_, c_}, 1, 1, 1),
         Opened::barrier(), g.dispatch(kAdd, {c_, d_}, 1, 2), Opened::barrier(),
         g.dispatch(kAdd, {d_, g_}, 1, 2), Opened::barrier(), Opened::copy(e_, g_),
         Opened::barrier(), g.dispatch(kAdd, {e_, f_}, 1, 2)},
        2);
  }

 private:
  bool run() override {
    for (const uint64_t round : {1, 2}) {
      const uint64_t slots[] = {round, 3 - round};  // two groups, then one
      const uint64_t copied = submit(0, {slots, 1}), computed = submit(1, slots);
      gpu().queue().wait(computed);
      gpu().device->copy_queue()->wait(copied);
      gpu().device->check_status();
    }
    return read_by_copies(f_) == counting(64, 14);
  }
  Span source_, a_, b_, c_, d_, e_, f_, g_;
  std::unique_ptr<hcq::Signal> signal_;
};

// Lists in flight on both queues, each waiting for the one before it; the host has them begin.
class PingPong : public Scene {
 public:
  explicit PingPong(const std::string& options) : Scene(options) {
    Opened& g = gpu();
    a_ = g.upload(counting(64, 5));
    for (Span* s : {&b_, &c_, &d_}) *s = g.upload(Words(64, 0));
    go_ = g.device->create_signal(), there_ = g.device->create_signal();
    back_ = g.device->create_signal();
    const auto signal = [](auto& s) { return Command{SignalCmd{s.get(), 0}, {}, ""}; };
    add("first", g.queue(), {wait_for(*go_, 0), g.dispatch(kAdd, {a_, b_}, 1, 2), signal(there_)},
        1);
    add("copy", *g.device->copy_queue(),
        {wait_for(*there_, 0), Opened::copy(c_, b_), signal(back_)}, 1);
    add("last", g.queue(), {wait_for(*back_, 0), g.dispatch(kAdd, {c_, d_}, 1, 2)}, 1);
  }

 private:
  bool run() override {
    const uint64_t one = 1;
    uint64_t last = 0;
    for (size_t list = 0; list < 3; ++list) last = submit(list, {&one, 1});
    go_->set(1);
    gpu().queue().wait(last);
    return read_by_copies(d_) == counting(64, 7);
  }
  Span a_, b_, c_, d_;
  std::unique_ptr<hcq::Signal> go_, there_, back_;
};

// A launch that is alone in its list, and of another size each time.
class Resized : public Scene {
 public:
  explicit Resized(const std::string& options) : Scene(options) {
    a_ = gpu().upload(Words(64, 0));
    add("compute", gpu().queue(), {gpu().dispatch(kAdd, {a_, a_}, 1, 1, 0)}, 1);
  }

 private:
  bool run() override {
    for (const uint64_t groups : {2, 1}) gpu().queue().wait(submit(0, {&groups, 1}));
    Words wanted(64, 1);
    std::fill_n(wanted.begin(), 32, 2);
    return read_by_copies(a_) == wanted;
  }
  Span a_;
};

// A kernel that lies where another one lay that has run.
class Reloaded : public Scene {
 public:
  explicit Reloaded(const std::string& options) : Scene(options) {
    Opened& g = gpu();
    a_ = g.upload(Words(32, 0));
    g.run({g.dispatch(kFill, {a_}, 1, 1)});
    Space& space = static_cast<NvDevice&>(*g.device).space();
    AddressRanges& addresses = static_cast<UvmSpace&>(space).client().addresses();
    const uint64_t before = entry();
    // Addresses are given out again once all others were.
    const uint64_t kept = addresses.reserve(uint64_t{1} << 33, 1 << 16);
    for (uint64_t bytes = uint64_t{1} << 32; bytes >= 1 << 16; bytes /= 2)
      use_up(addresses, bytes - kPageBytes);  // a page stays free behind each
    std::vector<render::Binary> others = binaries();
    std::string text(others[0].bytes->begin(), others[0].bytes->end());
    text.at(text.find("Generated")) = 'g';  // in a comment
    const auto changed = std::make_shared<const std::vector<uint8_t>>(text.begin(), text.end());
    for (render::Binary& b : others) b.bytes = changed;
    g.programs.clear();
    g.programs = g.device->load(others);
    EXPECT_EQ(entry(), before);
    addresses.give_back(kept);
    add("compute", g.queue(), {g.dispatch(kFill, {a_}, 7, 1)}, 0);
  }

 private:
  uint64_t entry() {
    return static_cast<const NvProgram&>(*gpu().programs[kFill]).kernel().entry;
  }
  static void use_up(AddressRanges& addresses, uint64_t bytes) {
    try {
      for (;;) addresses.reserve(bytes, 1 << 16);
    } catch (const OutOfMemory&) {
    }
  }
  bool run() override {
    gpu().queue().wait(submit(0, {}));
    return read_by_copies(a_) == Words(32, 7);
  }
  Span a_;
};

// To the other GPU and back, each queue waiting for the timeline of the other GPU's.
class RoundTrip : public Scene {
 public:
  explicit RoundTrip(const std::string& options) : Scene("gpus:2," + options, 2) {
    Opened &near = gpu(0), &far = gpu(1);
    a_ = near.upload(counting(64, 5)), b_ = far.upload(Words(64, 0));
    c_ = near.upload(Words(64, 0)), d_ = near.upload(Words(64, 0));
    hcq::share(*far.device, *b_.block, *near.device);
    hcq::share(*near.device, *c_.block, *far.device);
    go_ = near.device->create_signal();
    Queue& copies = *near.device->copy_queue();
    add("there", copies, {wait_for(*go_, 0), Opened::copy(b_, a_)}, 1);
    add("back", far.queue(), {wait_for(copies.timeline(), 0), far.dispatch(kAdd, {b_, c_}, 1, 2)},
        1);
    add("home", near.queue(),
        {wait_for(far.queue().timeline(), 0), near.dispatch(kAdd, {c_, d_}, 1, 2)}, 1);
  }

 private:
  bool run() override {
    uint64_t before = 1;
    for (size_t list = 0; list < 3; ++list) before = submit(list, {&before, 1});
    go_->set(1);
    gpu(0).queue().wait(before);
    return read_by_copies(d_) == counting(64, 7);
  }
  Span a_, b_, c_, d_;
  std::unique_ptr<hcq::Signal> go_;
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

// Bits that order memory in a QMD, by version: clc7c0qmd.h, clcbc0qmd.h, clcec0qmd.h.
using Bits = std::map<std::string, uint32_t>;
Bits ordering_bits(uint32_t sm) {
  const std::array<uint32_t, 4> at = sm == 86   ? std::array<uint32_t, 4>{189, 191, 368, 512}
                                     : sm == 90 ? std::array<uint32_t, 4>{605, 607, 1136, 368}
                                                : std::array<uint32_t, 4>{475, 477, 624, 336};
  return {{"invalidate data", at[0]}, {"invalidate constants", at[1]}, {"membar", at[2]},
          {"dependent launch", at[3]}};
}

std::vector<Mutation> mutations(const Scene& scene, uint32_t sm) {
  std::vector<Mutation> out;
  std::map<std::string, int> seen;
  const auto add = [&](const std::string& kind, Mutation m) {
    m.kind = kind;
    m.name = fmt::format("{} {}", kind, ++seen[kind]);
    out.push_back(m);
  };
  for (size_t l = 0; l < scene.lists().size(); ++l) {
    const NvList& list = scene.lists()[l].own();
    const PacketStream& methods = list.encoded.methods;
    for (const uint32_t begin : methods.units) {
      const uint32_t head = methods.dwords[begin], count = 1 + (head >> 16 & 0x1fff);
      std::string name = scene.lists()[l].name + ": " + method_name(head);
      // SEM_EXECUTE: a release (1), an acquire (3).
      if (name.ends_with("semaphore")) name += methods.dwords[begin + 5] & 2 ? " acquire" : " release";
      add(name, {{}, {}, l, false, begin, count});
      if (name.ends_with("release"))
        add(name + " without WFI", {{}, {}, l, false, begin + 5, 0, 1u << 20, 0});
      if ((head & 0xfff) * 4 != 0x300) continue;
      add(name + " without FLUSH", {{}, {}, l, false, begin + 1, 0, 1u << 2, 0});
      add(name + " pipelined", {{}, {}, l, false, begin + 1, 0, 3, 1});
    }
    const PacketStream& launches = list.encoded.launches;
    for (const uint32_t qmd : launches.units) {
      for (const auto& [name, bit] : ordering_bits(sm)) {
        if (launches.dwords[qmd + bit / 32] >> bit % 32 & 1)
          add(scene.lists()[l].name + ": QMD " + name,
              {{}, {}, l, true, qmd + bit / 32, 0, 1u << bit % 32, 0});
      }
    }
  }
  return out;
}

using Reasons = std::map<std::string, const char*>;  // of what a scene does not need, and why
struct SceneRow {
  const char* name;
  std::function<std::unique_ptr<Scene>(const std::string& options)> make;
  uint64_t seeds;  // in how many orders
  Reasons not_needed;
};

template <class T>
std::unique_ptr<Scene> made(const std::string& options) {
  return std::make_unique<T>(options);
}

constexpr const char* kNobodyAsks = "nobody asks to be told";
constexpr const char* kEndedBefore = "the list before ended with a release, which waits";
constexpr const char* kLateAgain = "addresses of code that is freed come back late";
constexpr const char* kOnce = "a launch that is not repeated, or has the same size again";
constexpr const char* kFirstCopy = "no copy is before it in the list";
constexpr const char* kJustWaited = "nothing is between it and the release before it, which waits";
constexpr const char* kOthersRaise = "the queue's next submission raises the timeline further";
constexpr const char* kTogether = "it only has the lists begin together";
constexpr const char* kSameLength = "the copy before it has the same";

const std::vector<SceneRow>& scenes() {
  static const std::vector<SceneRow> rows{
      {"chain",
       made<Chain>,
       1,
       {{"copy: interrupt 1", kNobodyAsks},
        {"copy: launch of a copy pipelined 1", kFirstCopy},
        {"copy: length 2", kSameLength},
        {"copy: semaphore release without WFI 2", kJustWaited},
        {"compute: interrupt 1", kNobodyAsks},
        {"compute: WFI 1", kEndedBefore},
        {"compute: invalidate code 1", kLateAgain},
        {"compute: launch of a copy pipelined 1", kFirstCopy},
        {"compute: length 1", kSameLength},
        {"compute: QMD invalidate constants 1", "launches behind it void the cache once it was read"},
        {"compute: QMD invalidate constants 2", kOnce},
        {"compute: QMD invalidate constants 3", kOnce},
        {"compute: QMD invalidate constants 4", kOnce}}},
      {"ping_pong",
       made<PingPong>,
       4,
       {{"first: semaphore acquire 1", kTogether},
        {"first: WFI 1", kEndedBefore},
        {"first: invalidate code 1", kLateAgain},
        {"first: QMD invalidate constants 1", kOnce},
        {"first: semaphore release without WFI 2", kJustWaited},
        {"first: semaphore release 2", kOthersRaise},
        {"first: interrupt 1", kNobodyAsks},
        {"copy: launch of a copy pipelined 1", kFirstCopy},
        {"copy: semaphore release without WFI 2", kJustWaited},
        {"copy: semaphore release 2", kOthersRaise},
        {"copy: interrupt 1", kNobodyAsks},
        {"last: WFI 1", kEndedBefore},
        {"last: invalidate code 1", kLateAgain},
        {"last: QMD invalidate constants 1", kOnce},
        {"last: interrupt 1", kNobodyAsks}}},
      {"resized",
       made<Resized>,
       1,
       {{"compute: WFI 1", kEndedBefore},
        {"compute: invalidate code 1", kLateAgain},
        {"compute: interrupt 1", kNobodyAsks}}},
      {"reloaded",
       made<Reloaded>,
       1,
       {{"compute: WFI 1", kEndedBefore},
        {"compute: QMD invalidate data 1", "the kernel reads nothing"},
        {"compute: QMD invalidate constants 1", kOnce},
        {"compute: interrupt 1", kNobodyAsks}}},
      {"round_trip",
       made<RoundTrip>,
       4,
       {{"there: semaphore acquire 1", kTogether},
        {"there: launch of a copy pipelined 1", kFirstCopy},
        {"there: interrupt 1", kNobodyAsks},
        {"back: WFI 1", kEndedBefore},
        {"back: invalidate code 1", kLateAgain},
        {"back: QMD invalidate constants 1", kOnce},
        {"back: interrupt 1", kNobodyAsks},
        {"home: WFI 1", kEndedBefore},
        {"home: invalidate code 1", kLateAgain},
        {"home: QMD invalidate constants 1", kOnce},
        {"home: interrupt 1", kNobodyAsks}}}};
  return rows;
}

class NvMutation : public testing::TestWithParam<std::tuple<size_t, uint32_t>> {};

TEST_P(NvMutation, EachDeletionThatMattersIsFound) {
  const auto [index, sm] = GetParam();
  const SceneRow& row = scenes()[index];
  const std::string options = fmt::format("sm:{}", sm);
  std::vector<Mutation> all;
  {
    const auto scene = row.make(options);
    ASSERT_FALSE(scene->finds());
    all = mutations(*scene, sm);
  }
  ASSERT_GT(all.size(), 5u);
  std::map<std::string, std::pair<int, int>> by_kind;  // deleted, found
  for (const Mutation& m : all) {
    const auto known = row.not_needed.find(m.name);
    const uint64_t seeds = known == row.not_needed.end() ? row.seeds : 1;
    bool found = false;
    for (uint64_t seed = 1; seed <= seeds && !found; ++seed) {
      const auto scene = row.make(fmt::format("{},seed:{}", options, seed));
      scene->apply(m);
      found = scene->finds();
    }
    by_kind[m.kind].first++;
    by_kind[m.kind].second += found;
    EXPECT_EQ(found, known == row.not_needed.end())
        << m.name
        << (known == row.not_needed.end() ? " is not missed" : std::string(": ") + known->second);
  }
  for (const auto& [kind, counts] : by_kind)
    std::printf("%s, sm_%u: %s: %d deleted, %d found\n", row.name, sm, kind.c_str(), counts.first,
                counts.second);
}

INSTANTIATE_TEST_SUITE_P(Scenes, NvMutation,
                         testing::ValuesIn([] {
                           std::vector<std::tuple<size_t, uint32_t>> all;
                           for (size_t scene = 0; scene < scenes().size(); ++scene)
                             all.emplace_back(scene, 120u);
                           for (const uint32_t sm : {86u, 90u})
                             for (const size_t scene : {0, 4}) all.emplace_back(scene, sm);
                           return all;
                         }()),
                         [](const auto& info) {
                           return fmt::format("{}_sm{}", scenes()[std::get<0>(info.param)].name,
                                              std::get<1>(info.param));
                         });

}  // namespace
}  // namespace tuff::devices::nv
