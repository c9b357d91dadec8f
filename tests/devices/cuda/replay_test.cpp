// Lists that are replayed: random ones give what their order says, a replay makes few calls, sizes
// and arguments change without anything being encoded anew.
#include <functional>
#include <random>

#include "devices/cuda/fixture.h"
#include "hcq/order.h"

namespace tuff::devices::cuda {
namespace {

using namespace test;

constexpr size_t kSlots = 12, kWords = 32;

// A list over slots of words, and what it makes of them.
class CudaLists : public CudaFixture, public testing::WithParamInterface<const char*> {
 protected:
  CudaLists() : CudaFixture(GetParam()) {}
  void SetUp() override {
    open();
    memory_ = upload(counting(kSlots * kWords, 7));
  }
  Span slot(size_t i) const { return memory_.sub(4 * kWords * i, 4 * kWords); }
  static size_t at(size_t slot, size_t word) { return slot * kWords + word; }

  using Effect = std::function<void(Words&)>;
  void add_random(std::mt19937& rng) {
    const size_t from = rng() % kSlots, to = (from + 1 + rng() % (kSlots - 1)) % kSlots;
    const auto n = int32_t(rng() % 1000);
    switch (rng() % 8) {
      case 0:
        list_.commands.push_back(copy(slot(to), slot(from)));
        effects_.push_back([=](Words& w) { std::copy_n(&w[at(from, 0)], kWords, &w[at(to, 0)]); });
        break;
      case 1:
        list_.commands.push_back(dispatch(kFill, {slot(to)}, n, 1));
        effects_.push_back([=](Words& w) { std::fill_n(&w[at(to, 0)], kWords, uint32_t(n)); });
        break;
      case 2: {
        static int called;
        list_.commands.push_back(
            {HostCallCmd{[](void* count) { ++*static_cast<int*>(count); }, &called}, {}, ""});
        break;
      }
      default:
        list_.commands.push_back(dispatch(kAdd, {slot(from), slot(to)}, n, 1));
        effects_.push_back([=](Words& w) {
          for (size_t i = 0; i < kWords; ++i) w[at(to, i)] = w[at(from, i)] + uint32_t(n);
        });
    }
  }

  Span memory_;
  CommandList list_;
  std::vector<Effect> effects_;
};

TEST_P(CudaLists, GiveWhatTheirOrderSays) {
  std::mt19937 rng(3);
  for (int round = 0; round < 12; ++round) {
    list_ = {};
    effects_.clear();
    for (size_t n = 1 + rng() % 40; n-- > 0;) add_random(rng);
    insert_barriers(list_);
    Words wanted = read(memory_);
    const auto replayed = queue().encode(list_, EncodeUse::Replay);
    for (int replay = 0; replay < 3; ++replay) {
      queue().wait(queue().submit(*replayed, {}));
      for (const Effect& e : effects_) e(wanted);
      ASSERT_EQ(read(memory_), wanted) << "round " << round << ", replay " << replay;
    }
    queue().submit_once(queue().encode(list_, EncodeUse::Once));
    queue().submit_once(queue().encode(list_, EncodeUse::Once));
    queue().wait_idle();
    for (int i = 0; i < 2; ++i)
      for (const Effect& e : effects_) e(wanted);
    ASSERT_EQ(read(memory_), wanted) << "round " << round << ", once";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaLists, testing::Values("seed:1", "seed:2", "integrated"),
                         [](const auto& info) { return "S" + std::to_string(info.index); });

class CudaReplays : public CudaFixture {
 protected:
  void SetUp() override { open(); }
};

TEST_F(CudaReplays, MakeOneCallForTheListAndOneForTheTimeline) {
  const Span a = words(32), b = words(32);
  const auto list = queue().encode(
      list_of({dispatch(kFill, {a}, 1, 1), dispatch(kAdd, {a, b}, 2, 1), copy(a, b)}),
      EncodeUse::Replay);
  queue().wait(queue().submit(*list, {}));
  set_options("");
  queue().wait(queue().submit(*list, {}));
  EXPECT_EQ(calls("cuGraphLaunch"), 1u);
  EXPECT_EQ(calls("cuStreamWriteValue64_v2"), 1u);
  EXPECT_EQ(calls("cuCtxGetCurrent"), 1u + calls("cuStreamQuery"));
  EXPECT_EQ(calls(), 2u + calls("cuCtxGetCurrent") + calls("cuStreamQuery"));
  EXPECT_EQ(read(b), Words(32, 3));
}

// Launch sizes are set where they have changed, a launch of nothing is left out.
TEST_F(CudaReplays, TakeSizesFromSlots) {
  const Span a = upload(Words(128, 0)), b = words(32);
  Command fill = dispatch(kFill, {a}, 1, 1);
  std::get<DispatchCmd>(fill.body).group_slots = {0, -1, -1};
  const auto list =
      queue().encode(list_of({fill, dispatch(kFill, {b}, 5, 1)}, 1), EncodeUse::Replay);
  const auto once = queue().encode(list_of({fill}, 1), EncodeUse::Once);
  struct {
    uint64_t groups;
    size_t filled;
    uint64_t sets, switches;
  } const rows[] = {{2, 64, 1, 0}, {2, 64, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}, {2, 64, 0, 1},
                    {4, 128, 1, 0}, {1, 32, 1, 0}};
  for (const auto& row : rows) {
    const Words zeros(128, 0);
    device->upload(a, zeros.data());
    set_options("");
    queue().wait(queue().submit(*list, {&row.groups, 1}));
    EXPECT_EQ(calls("cuGraphExecKernelNodeSetParams_v2"), row.sets) << row.groups;
    EXPECT_EQ(calls("cuGraphNodeSetEnabled"), row.switches) << row.groups;
    Words wanted = zeros;
    std::fill_n(wanted.begin(), row.filled, 1u);
    EXPECT_EQ(read(a), wanted) << row.groups;
  }
  const uint64_t three = 3;
  device->upload(a, Words(128, 0).data());
  queue().wait(queue().submit(*once, {&three, 1}));
  EXPECT_EQ(read(a)[95], 1u);
  EXPECT_EQ(read(a)[96], 0u);
}

// Words of an argument block that is written between replays.
TEST_F(CudaReplays, SeeArgumentsThatHaveChanged) {
  const Span a = words(32), b = words(32);
  const Span block = args({a}, {1});
  const Command fill{DispatchCmd{programs[kFill].get(), block, {1, 1, 1}, {}},
                     {{block, false}, {a, true}},
                     ""};
  const auto list = queue().encode(list_of({fill, copy(b, a)}), EncodeUse::Replay);
  for (const int32_t value : {3, 4}) {
    const int32_t scalar = value;
    device->upload(block.sub(8, 4), &scalar);
    queue().wait(queue().submit(*list, {}));
    EXPECT_EQ(read(b), Words(32, uint32_t(value)));
  }
}

// Several replays in flight, each of a list of its own.
TEST_F(CudaReplays, SeveralAreInFlight) {
  const Span a = upload(Words(32, 0));
  const auto go = device->create_signal();
  const auto gate = queue().encode(list_of({{WaitCmd{go.get(), 0}, {}, ""}}, 1), EncodeUse::Replay);
  std::vector<std::unique_ptr<EncodedList>> lists;
  for (int i = 0; i < 4; ++i)
    lists.push_back(queue().encode(list_of({dispatch(kAdd, {a, a}, 1 << i, 1),
                                            dispatch(kAdd, {a, a}, 1 << (i + 4), 1)}),
                                   EncodeUse::Replay));
  const uint64_t one = 1;
  queue().submit(*gate, {&one, 1});
  uint64_t last = 0;
  for (const auto& list : lists) last = queue().submit(*list, {});
  EXPECT_FALSE(queue().timeline().wait(last, 10'000'000));
  go->set(1);
  queue().wait(last);
  EXPECT_EQ(read(a), Words(32, 255));
}

}  // namespace
}  // namespace tuff::devices::cuda
