// Writes to views on every device: they come to what the view was taken of, to all between it and
// the view, and to no other tensor.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <random>

#include <tuff/jit.h>
#include <tuff/tensor.h>
#include "engine/device.h"
#include "engine/stats.h"
#include "tensor/devices.h"
#include "tensor/impl.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

class ViewWrites : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions options() const { return {.device = GetParam()}; }
  Tensor counted(const Sizes& sizes, float first = 0) const {
    int64_t n = 1;
    for (const Size& s : sizes) n *= int64_t(s);
    Floats v(static_cast<size_t>(n));
    std::iota(v.begin(), v.end(), first);
    return Tensor::from(v, sizes, options());
  }
  // The places of a view, found by the same movement of their numbers, get -1, -2, ...
  void check(const Sizes& sizes, const std::function<Tensor(const Tensor&)>& view) const {
    const Floats places = view(counted(sizes)).to_vector<float>();
    Floats want = counted(sizes).to_vector<float>(), put(places.size());
    for (size_t i = 0; i < places.size(); i++) want[size_t(places[i])] = put[i] = -1 - float(i);
    for (const bool lazy : {false, true}) {
      Tensor x = lazy ? counted(sizes) * 1 : counted(sizes);
      const Tensor before = x + 0.5, other = view(x);
      Tensor v = view(x);
      v.copy_(Tensor::from(put, v.sizes(), options()));
      EXPECT_EQ(x.to_vector<float>(), want) << "lazy " << lazy;
      EXPECT_EQ(v.to_vector<float>(), put);
      EXPECT_EQ(other.to_vector<float>(), places) << "was taken before";
      EXPECT_EQ(before.to_vector<float>(), (counted(sizes) + 0.5).to_vector<float>());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ViewWrites, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

TEST_P(ViewWrites, PartsOfEveryKind) {
  check({3, 4}, [](const Tensor& x) { return x[1]; });
  check({3, 4}, [](const Tensor& x) { return x[1][2]; });
  check({3, 4}, [](const Tensor& x) { return x.index({Slice{}, Slice{1, 3}}); });
  check({5, 4}, [](const Tensor& x) { return x.slice(0, {}, {}, 2); });
  check({5, 4}, [](const Tensor& x) { return x.slice(0, 3, {}, -2).slice(1, {}, {}, -1); });
  check({3, 4}, [](const Tensor& x) { return x.index({None, 2, Ellipsis, Slice{1, 2}}); });
  check({4, 4}, [](const Tensor& x) { return x.chunk(2, 1)[1]; });
  check({4, 3}, [](const Tensor& x) { return x.unbind(1)[2]; });
  check({5, 2}, [](const Tensor& x) { return x.tensor_split(3)[1]; });
  check({2, 3, 2}, [](const Tensor& x) { return x.shrink({{0, 2}, {1, 3}, {0, 1}}); });
}

TEST_P(ViewWrites, MovementOfAll) {
  check({3, 4}, [](const Tensor& x) { return x.T(); });
  check({2, 3, 2}, [](const Tensor& x) { return x.permute({2, 0, 1}); });
  check({2, 1, 3}, [](const Tensor& x) { return x.squeeze().unsqueeze(-1); });
  check({2, 3, 2}, [](const Tensor& x) { return x.movedim(0, 2).swapaxes(0, 1); });
  check({6}, [](const Tensor& x) { return x.unflatten(0, {2, -1}).T().flatten(); });
  check({3, 2}, [](const Tensor& x) { return x.detach().ravel(); });
}

TEST_P(ViewWrites, PartsOfMovedTensors) {
  check({3, 4}, [](const Tensor& x) { return x.T()[1]; });
  check({3, 4}, [](const Tensor& x) { return x.view({-1})[7]; });
  check({3, 4}, [](const Tensor& x) { return x.view({-1}).narrow(0, 3, 6); });
  check({3, 4}, [](const Tensor& x) { return x.view({2, 6}).narrow(1, 1, 3); });
  check({4, 6}, [](const Tensor& x) { return x.view({4, 2, 3}).select(1, 1); });
  check({2, 6}, [](const Tensor& x) { return x.view({2, 3, 2}).slice(2, 1).slice(1, {}, {}, 2); });
  check({2, 3, 4}, [](const Tensor& x) { return x.view({6, 4}).narrow(0, 2, 3).T()[1]; });
  check({4, 4}, [](const Tensor& x) { return x.diagonal(); });
  check({3, 5}, [](const Tensor& x) { return x.diagonal(1).narrow(0, 1, 2); });
  check({2, 3, 3}, [](const Tensor& x) { return x.diagonal(-1, 1, 2); });
}

TEST_P(ViewWrites, EveryFunctionInPlace) {
  const auto written = [&](const std::function<void(Tensor)>& write) {
    Tensor x = counted({3, 3});
    write(x[1]);
    Floats all = x.to_vector<float>();
    EXPECT_EQ(Floats(all.begin(), all.begin() + 3), (Floats{0, 1, 2}));
    EXPECT_EQ(Floats(all.begin() + 6, all.end()), (Floats{6, 7, 8}));
    return Floats(all.begin() + 3, all.begin() + 6);
  };
  const Tensor at = Tensor::from(std::vector<int32_t>{2, 0}, {2}, options());
  const Tensor put = counted({2}, 10);
  EXPECT_EQ(written([](Tensor t) { t.assign(t * 2); }), (Floats{6, 8, 10}));
  EXPECT_EQ(written([](Tensor t) { t += 1, t *= t, t -= 1; }), (Floats{15, 24, 35}));
  EXPECT_EQ(written([](Tensor t) { t.add_(1).mul_(t).sub_(1).div_(2); }),
            (Floats{7.5, 12, 17.5}));
  EXPECT_EQ(written([](Tensor t) { t.zero_(); }), (Floats{0, 0, 0}));
  EXPECT_EQ(written([](Tensor t) { t.fill_(2); }), (Floats{2, 2, 2}));
  EXPECT_EQ(written([](Tensor t) { t.clamp_(4, 4); }), (Floats{4, 4, 4}));
  EXPECT_EQ(written([](Tensor t) { t.masked_fill_(t == 4, 9); }), (Floats{3, 9, 5}));
  EXPECT_EQ(written([](Tensor t) { t.index_put_({1}, 9); }), (Floats{3, 9, 5}));
  EXPECT_EQ(written([](Tensor t) { t.index_put_({Slice{{}, {}, 2}}, 9); }), (Floats{9, 4, 9}));
  EXPECT_EQ(written([](Tensor t) { t.index_put_({t > 3}, 9); }), (Floats{3, 9, 9}));
  EXPECT_EQ(written([&](Tensor t) { t.index_put_({at}, put, true); }), (Floats{14, 4, 15}));
  EXPECT_EQ(written([&](Tensor t) { t.scatter_(0, at, put); }), (Floats{11, 4, 10}));
  EXPECT_EQ(written([&](Tensor t) { t.index_add_(0, at, put); }), (Floats{14, 4, 15}));
  EXPECT_EQ(written([&](Tensor t) { t.index_fill_(0, at, 7); }), (Floats{7, 4, 7}));
  EXPECT_EQ(written([&](Tensor t) { t.put_(at, put); }), (Floats{11, 4, 10}));
  EXPECT_EQ(written([](Tensor t) {
              const Floats host{7, 8, 9};
              t.copy_from(host.data(), 3 * sizeof(float));
            }),
            (Floats{7, 8, 9}));
  EXPECT_EQ(written([](Tensor t) {
              const Floats host{7, 8, 9};
              t.reshape({1, 3}).copy_from(host.data(), 3 * sizeof(float));
            }),
            (Floats{7, 8, 9}));
}

// The library's one difference from PyTorch.
TEST_P(ViewWrites, OthersKeepWhatTheyWereAskedFor) {
  Tensor x = counted({2, 2}), row = x[0], first = row[0], turned = x.T();
  x += 10;
  EXPECT_EQ(row.to_vector<float>(), (Floats{0, 1}));
  row += 100;  // of what x holds by now
  EXPECT_EQ(x.to_vector<float>(), (Floats{110, 111, 12, 13}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{110, 111}));
  EXPECT_EQ(first.to_vector<float>(), (Floats{0}));
  EXPECT_EQ(turned.to_vector<float>(), (Floats{0, 2, 1, 3}));
  turned.index_put_({1}, 5);
  EXPECT_EQ(x.to_vector<float>(), (Floats{110, 5, 12, 5}));
  EXPECT_EQ(turned.to_vector<float>(), (Floats{110, 12, 5, 5}));
}

TEST_P(ViewWrites, GoToAllThatAViewWasTakenOf) {
  Tensor x = counted({4}), square = x.view({2, 2}), row = square[1];
  row.zero_();
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 0, 0}));
  EXPECT_EQ(square.to_vector<float>(), (Floats{0, 1, 0, 0}));
  // What has gone is not written.
  x = Tensor();
  row.fill_(7);
  EXPECT_EQ(square.to_vector<float>(), (Floats{0, 1, 7, 7}));
  Tensor made = (counted({4}) + 1).view({2, 2});
  made[0].zero_();
  EXPECT_EQ(made.to_vector<float>(), (Floats{0, 0, 3, 4}));
}

TEST_P(ViewWrites, PartsAreWrittenOneAfterTheOther) {
  Tensor x = counted({4, 2});
  const std::vector<Tensor> halves = x.chunk(2);
  Tensor a = halves[0], b = halves[1];
  a += b;
  b *= 2;
  a[0] -= a[1];
  EXPECT_EQ(x.to_vector<float>(), (Floats{-4, -4, 8, 10, 8, 10, 12, 14}));
  for (Tensor row : x.unbind(0)) row += row.sum();
  EXPECT_EQ(x.to_vector<float>(), (Floats{-12, -12, 26, 28, 26, 28, 38, 40}));
}

// x[0] += 1 is, in Python, a view, a sum in place, and the view put back.
TEST_P(ViewWrites, WhatIsPutBackCostsNothing) {
  Tensor x = counted({3, 2}), row = x[1];
  row += 1;
  const uint64_t written = detail::uop(x)->serial;
  x.index_put_({1}, row);
  EXPECT_EQ(detail::uop(x)->serial, written);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 3, 4, 4, 5}));
}

// The row of a large tensor, found in several ways, is one small kernel.
TEST_P(ViewWrites, StoreTheRowAlone) {
  const std::function<Tensor(const Tensor&)> rows[] = {
      [](const Tensor& x) { return x[7]; },
      [](const Tensor& x) { return x.T().select(1, 7); },
      [](const Tensor& x) { return x.view({-1}).narrow(0, 7 * 64, 64); },
      [](const Tensor& x) { return x.view({-1, 8, 8})[7].T(); },
      [](const Tensor& x) { return x.view({2, -1, 64})[0].slice(0, {}, {}, -1).select(0, -8); },
  };
  for (const auto& row : rows) {
    std::vector<uint64_t> bytes;
    for (const int64_t count : {int64_t(1) << 6, int64_t(1) << 15}) {
      Tensor x = Tensor::zeros({count, 64}, options()).realize();
      const Tensor value = counted({64}, 1);
      const auto& counters = engine::counters();
      const uint64_t kernels = counters.kernels, before = counters.bytes;
      row(x).copy_(value.reshape(row(x).sizes()));
      x.realize();
      bytes.push_back(counters.bytes - before);
      EXPECT_EQ(counters.kernels - kernels, 1u);
      EXPECT_EQ(x.sum().item(), 65 * 32);
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_LE(bytes[0], 4 * 64 * sizeof(float));  // with what TUFF_CHECK_OOB reports
  }
}

TEST_P(ViewWrites, AViewKeepsNoMemory) {
  const auto live = [&] {
    return engine::Device::get(GetParam())->hcq().allocator().stats().live_bytes;
  };
  const uint64_t before = live();
  Tensor row;
  {
    const Tensor x = Tensor::zeros({1024, 256}, options()).realize();
    row = x[3].realize();
    EXPECT_GE(live() - before, uint64_t(1024 * 256 * 4));
  }
  EXPECT_LT(live() - before, uint64_t(256 * 1024));
  row.fill_(2);
  EXPECT_EQ(row.sum().item(), 512);
}

TEST_P(ViewWrites, GradientsFlow) {
  const Tensor x = counted({2, 2}, 1).set_requires_grad();
  const Tensor weights = Tensor::from({1, 10, 100, 1000}, {2, 2}, options());
  Tensor y = x * 2;
  Tensor row = y[0];
  row *= x[1];           // y = ((2a c, 2b d), (2c, 2d))
  y.T()[1].mul_(3);      // its second column
  y.view({-1})[2].zero_();
  ((y * weights).sum() + row.sum()).backward();
  // row is (2a c, 2b d), as it was when written
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{6 + 6, 8 * 30 + 8, 2 + 2, 4 * 30 + 4 + 6000}));
}

TEST_P(ViewWrites, LeavesAreProtectedThroughViews) {
  Tensor w = counted({2, 2}).set_requires_grad();
  EXPECT_THROW(w[0].zero_(), InvalidArgument);
  EXPECT_THROW(w.T()[0].assign(counted({2})), InvalidArgument);
  EXPECT_THROW(w[0].index_put_({1}, 2), InvalidArgument);
  {
    const NoGradGuard guard;
    w[0].fill_(5);
    w.T()[1] += 1;
  }
  EXPECT_EQ(w.to_vector<float>(), (Floats{5, 6, 2, 4}));
  w.detach()[1].fill_(3);
  EXPECT_EQ(w.to_vector<float>(), (Floats{5, 6, 3, 3}));
  w.square().sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{10, 12, 6, 6}));
  // What is computed of a leaf goes on with its history around what was written detached.
  Tensor y = w * 2;
  y.detach()[0].zero_();
  w.set_grad({});
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{0, 0, 2, 2}));
}

TEST_P(ViewWrites, ExpandedTensorsAreRefused) {
  Tensor x = counted({3, 1});
  Tensor wide = x.expand({3, 4});
  EXPECT_THROW(wide.zero_(), InvalidArgument);
  EXPECT_THROW(wide += 1, InvalidArgument);
  EXPECT_THROW(wide.index_put_({0}, 1), InvalidArgument);
  wide.T()[2].fill_(9);  // one place of each
  EXPECT_EQ(x.to_vector<float>(), (Floats{9, 9, 9}));
  Tensor copy = x.expand({3, 2}).clone();
  copy += 1;
  EXPECT_EQ(x.to_vector<float>(), (Floats{9, 9, 9}));
}

TEST_P(ViewWrites, CopiesAreNoViews) {
  const Tensor x = counted({2, 2});
  for (Tensor t : {x.repeat({1, 1}), x.tile({1}), x.repeat_interleave(1, 0), x.roll({0}, {0}),
                   x.rot90(0), x.flip({0}), x.clone(), x + 0, x.pad({0, 0}), x.diag(), x.tril(5),
                   x.index_put({Slice{0, 0}}, 1), Tensor::cat({x}), x.cast(DType::F32).clone()})
    t.zero_();
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 2, 3}));
  const Tensor n = Tensor::from(std::vector<int32_t>{5, -7}, {2}, options());
  for (Tensor t : {n.floor(), n.trunc(), n.round(), n.nan_to_num(), n[0].cumsum(0)}) t.zero_();
  EXPECT_EQ(n.to_vector<int32_t>(), (std::vector<int32_t>{5, -7}));
}

TEST_P(ViewWrites, WhatWasConvertedIsNoViewAnyMore) {
  Tensor x = counted({2, 2}), row = x[0];
  x.to_("CPU");
  row.to_("CPU");
  row.zero_();
  EXPECT_EQ(row.to_vector<float>(), (Floats{0, 0}));
  const float first = GetParam() == "CPU" ? 0.0f : 1.0f;  // there nothing was moved
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, first, 2, 3}));
}

TEST_P(ViewWrites, LongChains) {
  Tensor x = counted({100}), rest = x.slice(0, 1);
  for (int i = 0; i < 90; i++) rest = rest.slice(0, 1);
  rest = rest.view({3, 3});
  for (int i = 0; i < 51; i++) rest = rest.T().detach();
  rest[0][2].fill_(-1);
  EXPECT_EQ(x.to_vector<float>()[97], -1);
  EXPECT_EQ(x.sum().item(), 4950 - 98);
}

TEST_P(ViewWrites, AJitWritesPartsOfState) {
  Tensor state = Tensor::zeros({3, 2}, options()).realize();
  Tensor outside = state[2];
  Jit step([&](const std::vector<Tensor>& in) {
    state[0].copy_(in[0]);
    state.T()[1] += 1;
    outside += in[0];
    return std::vector<Tensor>{state * 2};
  });
  for (int i = 1; i <= 4; i++) {
    const Floats got = step({counted({2}, float(i))})[0].to_vector<float>();
    const float n = float(i), sum = n * (n + 1) / 2;
    EXPECT_EQ(got, (Floats{2 * n, 2 * (n + 2), 0, 2 * n, 2 * sum, 2 * (sum + 2 * n)})) << i;
  }
  EXPECT_EQ(state.to_vector<float>(), (Floats{4, 6, 0, 4, 10, 18}));
}

TEST_P(ViewWrites, AJitWritesPartsOfItsArguments) {
  Jit step([&](const std::vector<Tensor>& in) {
    in[0].view({-1})[1].fill_(7);
    in[0][1].add_(in[1]);
    return std::vector<Tensor>{in[0] * 2};
  });
  for (int i = 0; i < 4; i++) {
    const Tensor x = counted({2, 2}), by = counted({2}, float(i));
    EXPECT_EQ(step({x, by})[0].to_vector<float>(),
              (Floats{0, 14, 4 + 2 * float(i), 8 + 2 * float(i)}));
    EXPECT_EQ(x.to_vector<float>(), (Floats{0, 7, 2 + float(i), 4 + float(i)}));
  }
}

TEST_P(ViewWrites, AJitWritesWhereItsVariableSays) {
  Tensor cache = Tensor::zeros({2, 8, 3}, options()).realize();
  Jit step(
      [&](const std::vector<Tensor>& in) {
        const Size seen = in[0].size(0);
        cache.transpose(0, 1).narrow(0, seen - 1, 1).squeeze(0).copy_(in[1].reshape({2, 3}));
        cache[0].slice(0, 0, seen)[0].add_(1);
        return std::vector<Tensor>{cache.sum()};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 8}}});
  Floats want(2 * 8 * 3);
  for (const int64_t at : {3, 0, 7, 2, 3}) {
    step({counted({at + 1}), counted({6}, float(at))});
    for (int64_t k = 0; k < 6; k++) want[size_t(k / 3 * 24 + at * 3 + k % 3)] = float(k + at);
    for (size_t k = 0; k < 3; k++) want[k] += 1;
  }
  EXPECT_EQ(cache.to_vector<float>(), want);
}

// A tensor, the places of the first one that it shows, and the numbers that it should hold.
struct Shown {
  Tensor t;
  std::vector<size_t> places;
  Floats held;
  int parent;
};

class Model {
 public:
  Model(uint64_t seed, const Sizes& sizes, const std::string& device)
      : random_(seed), device_(device) {
    const Tensor all = Tensor::arange(0, 24, 1, {DType::F32, "CPU"}).reshape(sizes);
    Floats v = all.to_vector<float>();
    Tensor x = Tensor::from(v, sizes, {.device = device});
    if (pick(2) == 0) x = x * 1;
    std::vector<size_t> places(v.size());
    std::iota(places.begin(), places.end(), size_t{0});
    tensors_.push_back({x, places, v, -1});
    numbers_.push_back(all);
  }
  void take() {
    const int from = pick(int(tensors_.size()));
    const uint64_t kind = random_();
    // By value: the list grows.
    const Tensor of = tensors_[size_t(from)].t, numbers = numbers_[size_t(from)];
    const Tensor n = moved(numbers, kind);
    if (n.numel() == 0) return;
    std::vector<size_t> places;
    Floats held;
    for (const float at : n.to_vector<float>()) places.push_back(size_t(at));
    for (const size_t at : positions(n, numbers)) held.push_back(tensors_[size_t(from)].held[at]);
    tensors_.push_back({moved(of, kind), places, held, from});
    numbers_.push_back(n);
  }
  void write() {
    const int which = pick(int(tensors_.size()));
    Shown& s = tensors_[size_t(which)];
    const Floats all = tensors_[0].held;
    Floats now;
    // The first one holds what it holds, another what it would be now.
    for (const size_t at : s.places) now.push_back(all[at]);
    const float c = float(pick(7)) - 3;
    switch (pick(5)) {
      case 0:
        s.t += c;
        for (float& v : now) v += c;
        break;
      case 1:
        s.t.fill_(c);
        for (float& v : now) v = c;
        break;
      case 2:
        s.t.assign(s.t * 0.5 + c);
        for (size_t i = 0; i < now.size(); i++) now[i] = s.held[i] * 0.5f + c;
        break;
      case 3:
        s.t.masked_fill_(s.t > 8, c);
        for (size_t i = 0; i < now.size(); i++)
          if (s.held[i] > 8) now[i] = c;
        break;
      default:
        if (s.t.dim() == 0) return;
        s.t.index_put_({0}, c);
        for (size_t i = 0; i < now.size() / size_t(int64_t(s.t.size(0))); i++) now[i] = c;
    }
    Floats& root = tensors_[0].held;
    for (size_t i = 0; i < now.size(); i++) root[s.places[i]] = now[i];
    for (int t = which; t > 0; t = tensors_[size_t(t)].parent) {
      Shown& seen = tensors_[size_t(t)];
      for (size_t i = 0; i < seen.places.size(); i++) seen.held[i] = root[seen.places[i]];
    }
  }
  void read() { check(tensors_[size_t(pick(int(tensors_.size())))]); }
  void check_all() {
    for (const Shown& s : tensors_) check(s);
  }
  int pick(int n) { return int(random_() % uint64_t(n)); }

 private:
  void check(const Shown& s) { EXPECT_EQ(s.t.to_vector<float>(), s.held); }
  // Where the elements of a view stand in what it was taken of.
  static std::vector<size_t> positions(const Tensor& view, const Tensor& of) {
    const Floats a = view.to_vector<float>(), b = of.to_vector<float>();
    std::vector<size_t> out;
    for (const float v : a)
      out.push_back(size_t(std::find(b.begin(), b.end(), v) - b.begin()));
    return out;
  }
  static Tensor moved(const Tensor& x, uint64_t kind) {
    const int64_t rank = x.dim(), n = int64_t(x.numel());
    const auto by = [&](int64_t m) { return int64_t((kind >> 8) % uint64_t(m)); };
    if (rank == 0) return x.reshape({1, 1});
    const int64_t d = int64_t((kind >> 40) % uint64_t(rank)), extent = x.size(d);
    switch (kind % 10) {
      case 0: return x.select(d, by(extent));
      case 1: return x.slice(d, by(extent));
      case 2: return x.slice(d, {}, {}, by(2) ? 2 : -1);
      case 3: return x.slice(d, {}, {}, by(2) ? -2 : 3);
      case 4: return x.transpose(0, d);
      case 5: return x.flatten();
      case 6: return n % 2 == 0 ? x.reshape({n / 2, 2}) : x.unsqueeze(d);
      case 7: return n % 3 == 0 ? x.reshape({3, n / 3}) : x.squeeze();
      case 8: return rank >= 2 ? x.diagonal(by(3) - 1, 0, 1) : x.detach();
      default: return x.narrow(d, by(extent), extent - by(extent));
    }
  }
  std::mt19937_64 random_;
  std::string device_;
  std::vector<Shown> tensors_;
  std::vector<Tensor> numbers_;  // the places as a tensor of the view's shape
};

TEST_P(ViewWrites, AsInAModelOfPlainArrays) {
  const Sizes shapes[] = {{4, 6}, {2, 3, 4}, {24}};
  const int rounds = GetParam() == "CPU" ? 12 : 3;
  for (int round = 0; round < rounds && !HasFailure(); round++) {
    SCOPED_TRACE(round);
    Model model(uint64_t(round), shapes[round % 3], GetParam());
    for (int i = 0; i < 5; i++) model.take();
    for (int i = 0; i < 6; i++) {
      model.write();
      if (model.pick(3) == 0) model.take();
      if (model.pick(4) == 0) model.read();
    }
    model.check_all();
  }
}

}  // namespace
}  // namespace tuff::test
