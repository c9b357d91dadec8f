// scan() against the loop that it stands for: values, gradients, what it costs, what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include <tuff/autograd.h>
#include <tuff/jit.h>
#include <tuff/scan.h>
#include "base/check.h"
#include "devices.h"
#include "engine/stats.h"
#include "ir/interpret.h"
#include "ir/loop.h"
#include "ir/walk.h"
#include "tensor/impl.h"
#include "temporaries.h"

namespace tuff::test {
namespace {

class Scan : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions here(DType t = DType::F32) const { return {t, GetParam()}; }
  Tensor random(const Sizes& sizes, uint32_t seed) const {
    std::mt19937 draws(seed);
    int64_t n = 1;
    for (const Size& s : sizes) n *= int64_t(s);
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = float(int(draws() % 2001) - 1000) / 1000;
    return Tensor::from(v, sizes, here()).set_requires_grad();
  }
};
INSTANTIATE_TEST_SUITE_P(, Scan, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);

// Step by step, each a part of the graph.
Scanned unrolled(const ScanStep& f, const Tensors& initial, const Tensors& sequences,
                 const ScanOptions& options) {
  const int64_t steps = sequences.empty() ? options.steps : sequences[0].size(0);
  Tensors states = initial;
  std::vector<Tensors> kept(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; i++) {
    const int64_t t = options.reverse ? steps - 1 - i : i;
    Tensors rows;
    for (const Tensor& x : sequences) rows.push_back(x[t]);
    Scanned step = f(states, rows);
    states = step.states;
    kept[size_t(t)] = step.outputs;
  }
  Scanned out{states, {}};
  for (size_t k = 0; k < kept[0].size(); k++) {
    Tensors column;
    for (const Tensors& row : kept) column.push_back(row[k]);
    out.outputs.push_back(Tensor::stack(column));
  }
  return out;
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const auto a = got.cast(DType::F32).to_vector<float>(),
             b = want.cast(DType::F32).to_vector<float>();
  float largest = 1e-3f;
  for (float x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); i++) ASSERT_NEAR(a[i], b[i], 2e-5f * largest) << what << " " << i;
}

// Values and all gradients, of first and second order, of a loop and of its steps.
void expect_as_unrolled(const ScanStep& f, const Tensors& initial, const Tensors& sequences,
                        const Tensors& others, const ScanOptions& options = {}) {
  const auto everything = [&](const auto& loop) {
    const Scanned all = loop(f, initial, sequences, options);
    Tensors out = all.states;
    out.insert(out.end(), all.outputs.begin(), all.outputs.end());
    Tensor total;
    for (const Tensor& y : out) {
      const Tensor part = (y * y * y).sum() + y.sin().sum();
      total = total.defined() ? total + part : part;
    }
    Tensors leaves = initial;
    for (const Tensors* list : {&sequences, &others})
      leaves.insert(leaves.end(), list->begin(), list->end());
    Tensor slope;
    for (const Tensor& g : total.gradient(leaves)) {
      out.push_back(g);
      const Tensor part = (g * g).sum();
      slope = slope.defined() ? slope + part : part;
    }
    for (const Tensor& g : slope.gradient(leaves)) out.push_back(g);
    return out;
  };
  const Tensors got = everything(scan), want = everything(unrolled);
  Tensors all = got;
  all.insert(all.end(), want.begin(), want.end());
  Tensor::realize(all);
  for (size_t i = 0; i < want.size(); i++) expect_near(got[i], want[i], fmt::format("value {}", i));
}

TEST_P(Scan, MeansItsSteps) {
  const Tensor h = random({3, 5}, 1), x = random({4, 3, 5}, 2), w = random({5, 5}, 3),
               b = random({5}, 4);
  const auto step = [&](const Tensors& s, const Tensors& rows) {
    const Tensor next = (s[0].matmul(w) + rows[0] + b).tanh();
    return Scanned{{next}, {next}};
  };
  expect_as_unrolled(step, {h}, {x}, {w, b});
  expect_as_unrolled(step, {h}, {x}, {w, b}, {.reverse = true});
}

TEST_P(Scan, SeveralStatesSequencesAndOutputs) {
  const Tensor h = random({2, 3}, 1), c = random({7}, 2), x = random({3, 2, 3}, 3),
               y = random({3, 7}, 4), w = random({3, 7}, 5);
  const auto step = [&](const Tensors& s, const Tensors& rows) {
    const Tensor c = (s[1] * 0.5f + s[0].matmul(w).mean(Axes{0}) + rows[1]).sin();
    const Tensor h = s[0] * rows[0].matmul(w).matmul(c.unsqueeze(1)) + rows[0];
    return Scanned{{h, c}, {h * c.sum(), rows[1].exp(), c, s[1]}};
  };
  expect_as_unrolled(step, {h, c}, {x, y}, {w});
  expect_as_unrolled(step, {h, c}, {x, y}, {w}, {.reverse = true});
}

TEST_P(Scan, WithoutSequences) {
  const Tensor h = random({4}, 1), w = random({4, 4}, 2);
  const auto step = [&](const Tensors& s, const Tensors&) {
    return Scanned{{s[0].matmul(w) * 0.7f}, {}};
  };
  expect_as_unrolled(step, {h}, {}, {w}, {.steps = 5});
}

TEST_P(Scan, StatesThatStayOrAreEqual) {
  const Tensor a = random({3}, 1), b = random({3}, 2), x = random({4, 3}, 3);
  expect_as_unrolled(
      [](const Tensors& s, const Tensors& rows) {
        const Tensor next = s[0] * rows[0] + s[1];
        return Scanned{{next, next}, {}};
      },
      {a, b}, {x}, {});
  expect_as_unrolled(
      [](const Tensors& s, const Tensors& rows) {
        return Scanned{{s[1], s[0]}, {rows[0] * s[0]}};
      },
      {a, b}, {x}, {});
}

TEST_P(Scan, LoopsWithinLoops) {
  const Tensor h = random({3}, 1), x = random({2, 3, 3}, 2), w = random({3}, 3);
  const auto with = [&](const auto& inner) {
    return [&w, inner](const Tensors& s, const Tensors& rows) {
      const Scanned in = inner(
          [&](const Tensors& t, const Tensors& r) {
            return Scanned{{(t[0] * w + r[0] * s[0]).sin()}, {t[0]}};
          },
          Tensors{s[0]}, Tensors{rows[0]}, ScanOptions{});
      return Scanned{{in.states[0]}, {in.outputs[0]}};
    };
  };
  const auto gradients = [&](const Scanned& all) {
    const Tensor total = all.states[0].sum() + (all.outputs[0] * all.outputs[0]).sum();
    Tensors out = total.gradient({h, x, w});
    out.push_back(all.outputs[0]);
    return out;
  };
  const Tensors got = gradients(scan(with(scan), {h}, {x})),
                want = gradients(unrolled(with(unrolled), {h}, {x}, {}));
  for (size_t i = 0; i < want.size(); i++) expect_near(got[i], want[i], fmt::format("value {}", i));
}

TEST_P(Scan, ManyBesideEachOther) {
  const Tensor h = random({2, 3}, 1), x = random({4, 2, 3}, 2), w = random({3}, 3);
  const auto one = [&](const Tensors& in) {
    const Scanned all = scan(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensor next = (s[0] * w + rows[0] * s[1].sum()).sin();
          return Scanned{{next, s[1] + 1}, {next * 2}};
        },
        {in[0], Tensor::zeros({2}, here())}, {in[1]});
    return Tensors{all.states[0], all.outputs[0]};
  };
  const Tensors many = vmap(one, {0, 1})({h, x});
  for (int64_t i = 0; i < 2; i++) {
    const Tensors want = one({h[i], x.transpose(0, 1)[i]});
    expect_near(many[0][i], want[0], "state");
    expect_near(many[1][i], want[1], "output");
  }
}

TEST_P(Scan, GradientsThatAreGivenAndWhatIsComputedAgain) {
  const autograd::Function twice{
      [](autograd::FunctionContext&, const Tensors& x) { return Tensors{x[0] * x[1]}; },
      [](autograd::FunctionContext&, const Tensors& g) { return Tensors{g[0] * 2, g[0] * 3}; }};
  const Tensor h = random({3}, 1), x = random({3, 3}, 2), w = random({3}, 3);
  const auto last_of = [&](const auto& loop) {
    const Scanned all = loop(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensor next =
              checkpoint([&](const Tensor& t) { return (twice({t, w})[0] + rows[0]).sin(); }, s[0]);
          return Scanned{{next}, {}};
        },
        Tensors{h}, Tensors{x}, ScanOptions{});
    return all.states[0].sum().gradient({h, x, w});
  };
  const Tensors got = last_of(scan), want = last_of(unrolled);
  for (size_t i = 0; i < want.size(); i++) expect_near(got[i], want[i], fmt::format("value {}", i));
}

// A sum over nothing is a constant when kernels are formed.
TEST_P(Scan, SequencesThatBecomeConstants) {
  const Tensor none = Tensor::zeros({4, 3, 0}, here()).realize();
  const Scanned all = scan(
      [](const Tensors& s, const Tensors& rows) {
        return Scanned{{s[0] + rows[0] + 1}, {}};
      },
      {Tensor::zeros({2, 0}, here()).realize().sum({1}).reshape({2, 1}).expand({2, 3}).narrow(0, 0, 1)
           .reshape({3})},
      {none.sum({2})});
  EXPECT_EQ(all.states[0].to_vector<float>(), (std::vector<float>{4, 4, 4}));
}

TEST_P(Scan, WholeNumbers) {
  const Tensor first = Tensor::from(std::vector<int32_t>{1, 2}, {2}, here(DType::I32)),
               x = Tensor::from(std::vector<int32_t>{1, 2, 3, 4, 5, 6}, {3, 2}, here(DType::I32));
  const Scanned all = scan(
      [](const Tensors& s, const Tensors& rows) {
        return Scanned{{s[0] * 3 + rows[0]}, {s[0]}};
      },
      {first}, {x});
  EXPECT_EQ(all.states[0].to_vector<int32_t>(), (std::vector<int32_t>{50, 90}));
  EXPECT_EQ(all.outputs[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 4, 8, 15, 28}));
}

// However many steps there are, the kernels of one are compiled.
TEST_P(Scan, StepsShareTheirKernels) {
  const Tensor h = random({8}, 1), w = random({8, 8}, 2);
  const auto compiled = [&](int64_t steps) {
    const Tensor x = random({steps, 8}, 3).realize();
    const Scanned all = scan(
        [&](const Tensors& s, const Tensors& rows) {
          return Scanned{{(s[0].matmul(w) + rows[0]).sin()}, {}};
        },
        {h}, {x});
    const Tensor loss = all.states[0].sum();
    const auto made = [] {
      const auto& c = engine::counters();
      return int64_t(c.kernels_compiled.load() + c.kernels_from_disk.load());
    };
    const int64_t before = made();
    Tensor::realize(loss.gradient({w}));
    return made() - before;
  };
  const int64_t few = compiled(5);
  EXPECT_LE(few, 20);
  EXPECT_LE(compiled(60), few);
}

// A step's sums are computed once, for the value and for its gradient, with what is added to them.
// An LSTM: the product and all else, forwards; back all else, the gates beside each other and the
// product.
TEST_P(Scan, SumsAreKeptForGradients) {
  const Tensor h = random({2, 16}, 1), c = random({2, 16}, 2), w = random({64, 16}, 3);
  const auto kernels = [&](int64_t steps) {
    const Tensor x = random({steps, 2, 64}, 4).detach().realize();
    const Scanned all = scan(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensors g = (rows[0] + s[0].linear(w)).chunk(4, -1);
          const Tensor next = g[1].sigmoid() * s[1] + g[0].sigmoid() * g[2].tanh();
          return Scanned{{g[3].sigmoid() * next.tanh(), next}, {}};
        },
        {h, c}, {x});
    const Tensor loss = all.states[0].sum();
    Tensors wanted = loss.gradient({w});
    wanted.push_back(loss);
    const auto before = engine::counters().kernels.load();
    Tensor::realize(wanted);
    return int64_t(engine::counters().kernels.load() - before);
  };
  EXPECT_LE(kernels(30) - kernels(10), 5 * 20);
}

// And no gradient of a weight is stored for each of them.
TEST_P(Scan, WeightsHaveOneSumOverAllSteps) {
  const Tensor h = random({2, 64}, 1), w = random({64, 64}, 2);
  const Tensor x = random({256, 2, 64}, 3).detach().realize();
  const Scanned all = scan(
      [&](const Tensors& s, const Tensors& rows) {
        return Scanned{{(s[0].matmul(w) + rows[0]).tanh()}, {}};
      },
      {h}, {x});
  EXPECT_LT(temporary_bytes(all.states[0].sum().gradient({w})), 256 * 64 * 64 * 4u);
}

// Of the states before the last there is no memory where nothing reads them.
TEST_P(Scan, LastStatesAlone) {
  const Tensor h = random({256}, 1).detach().realize();
  const auto temporaries = [&](bool all) {
    const Scanned s = scan(
        [](const Tensors& states, const Tensors&) {
          const Tensor next = states[0] * 0.5f + 1;
          return Scanned{{next}, {next}};
        },
        {h}, {}, {.steps = 200});
    const Tensor& result = all ? s.outputs[0] : s.states[0];
    EXPECT_NEAR(result.amax().item(), 2, 0.01);
    return temporary_bytes({result * 2});
  };
  EXPECT_GE(temporaries(true), 200 * 1024u);
  EXPECT_LE(temporaries(false), 4 * 1024u);
}

TEST_P(Scan, IsReplayed) {
  const Tensor w = random({4, 4}, 1);
  Jit step([&](const Tensors& in) {
    const Scanned all = scan(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensor next = (s[0].matmul(w) + rows[0]).tanh();
          return Scanned{{next}, {next}};
        },
        {Tensor::zeros({4}, here())}, {in[0]});
    return all.outputs[0].square().sum().gradient({w});
  });
  for (uint32_t i = 0; i < 4; i++) {
    const Tensor x = random({6, 4}, 10 + i).realize();
    const Scanned want = unrolled(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensor next = (s[0].matmul(w) + rows[0]).tanh();
          return Scanned{{next}, {next}};
        },
        {Tensor::zeros({4}, here())}, {x}, {});
    expect_near(step({x})[0], want.outputs[0].square().sum().gradient({w})[0], fmt::format("call {}", i));
  }
}

// One captured graph for sequences of 1 to 5 rows, in any order of lengths.
class ScanOfAnyLength : public Scan {
 protected:
  using Function = std::function<Tensors(const Tensor& x)>;
  // `batch`: the first extent of a row varies too.
  void expect_same(const Function& f, const Sizes& row, bool batch = false) const {
    JitOptions options{.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 5}}};
    if (batch)
      options.dynamic.push_back({.argument = 0, .axis = 1, .name = "B", .min = 1, .max = 4});
    Jit jit([&](const Tensors& in) { return f(in[0]); }, options);
    uint32_t seed = 20;
    for (const int64_t n : {3, 3, 5, 1, 3}) {
      Sizes sizes = row;
      if (batch) sizes[0] = 1 + (n + 1) % 4;
      sizes.insert(sizes.begin(), n);
      const Tensor x = random(sizes, seed++).detach().realize();
      const Tensors got = jit({x}), want = f(x);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); i++)
        expect_near(got[i], want[i], fmt::format("value {} of {} steps", i, n));
      if (HasFailure()) return;
    }
    EXPECT_TRUE(jit.captured());
    EXPECT_EQ(jit.stats().replays, 3u);
  }
};
INSTANTIATE_TEST_SUITE_P(, ScanOfAnyLength, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);

TEST_P(ScanOfAnyLength, ValuesAndGradients) {
  const Tensor h = random({2, 3}, 1), w = random({3, 3}, 2), u = random({3, 3}, 3);
  const auto step = [&](const Tensors& s, const Tensors& rows) {
    const Tensor next = (s[0].matmul(w) + rows[0].matmul(u)).tanh();
    return Scanned{{next}, {next * rows[0], s[0]}};
  };
  for (const bool reverse : {false, true})
    expect_same(
        [&](const Tensor& x) {
          const Scanned all = scan(step, {h}, {x}, {.reverse = reverse});
          Tensors out{all.states[0], all.outputs[0], all.outputs[1]};
          if (!reverse) return out;
          const Tensor total = all.states[0].sum() + all.outputs[0].square().sum();
          const Tensors slopes = total.gradient({h, w, u});
          out.insert(out.end(), slopes.begin(), slopes.end());
          return out;
        },
        {2, 3});
}

TEST_P(ScanOfAnyLength, RowsAndStatesMayVaryToo) {
  const Tensor w = random({3, 3}, 2), u = random({3, 3}, 3);
  const auto step = [&](const Tensors& s, const Tensors& rows) {
    const Tensor next = (s[0].matmul(w) + rows[0].matmul(u)).tanh();
    return Scanned{{next, s[0]}, {next * rows[0] - s[1]}};
  };
  expect_same(
      [&](const Tensor& x) {
        const Tensor first = x.mean({0}).matmul(u);
        const Scanned all = scan(step, {first, first * 2}, {x});
        Tensors out{all.states[0], all.states[1], all.outputs[0]};
        const Tensor total = all.states[1].sum() + all.outputs[0].square().sum();
        out.push_back(total.gradient({w})[0]);
        return out;
      },
      {2, 3}, true);
}

// Two rows of states in turn; and what is copied from one state to another is not where there is no
// such step.
TEST_P(ScanOfAnyLength, LastStatesAlone) {
  const Tensor a = random({3}, 1).detach(), b = random({3}, 2).detach();
  const auto step = [](const Tensors& s, const Tensors& rows) {
    const Tensor next = s[0] * rows[0] + s[1];
    return Scanned{{next, next, s[1] + 1, s[2]}, {}};
  };
  for (const bool reverse : {false, true})
    expect_same(
        [&](const Tensor& x) {
          return scan(step, {a, b, a, b}, {x}, {.reverse = reverse}).states;
        },
        {3});
}

TEST_P(ScanOfAnyLength, LoopsWithinLoops) {
  const Tensor h = random({3}, 1), w = random({3}, 3);
  const auto step = [&w](const Tensors& s, const Tensors& rows) {
    const Scanned in = scan(
        [&](const Tensors& t, const Tensors& r) {
          return Scanned{{(t[0] * w + r[0]).sin()}, {}};
        },
        {s[0]}, {rows[0]});
    const Scanned of_rows = scan(
        [&](const Tensors& t, const Tensors& r) { return Scanned{{t[0] * w + r[0]}, {}}; },
        {rows[0][0]}, {rows[0]}, {.reverse = true});
    return Scanned{{in.states[0] + of_rows.states[0]}, {s[0] + 1}};
  };
  expect_same(
      [&](const Tensor& x) {
        const Scanned all = scan(step, {h}, {x});
        return Tensors{all.states[0], all.outputs[0]};
      },
      {2, 3});
}

TEST_P(ScanOfAnyLength, WithoutSequencesAndManyBesideEachOther) {
  const Tensor h = random({3}, 1).detach(), w = random({2, 3}, 2).detach();
  expect_same(
      [&](const Tensor& x) {
        const auto grown = [](const Tensors& s, const Tensors&) {
          return Scanned{{s[0] * 0.5f + 1}, {}};
        };
        const auto each = [&](const Tensors& in) {
          return scan(
                     [&](const Tensors& s, const Tensors& rows) {
                       return Scanned{{(s[0] + rows[0]).sin() * in[0]}, {s[0]}};
                     },
                     {h}, {x})
              .outputs;
        };
        return Tensors{scan(grown, {h}, {}, {.steps = x.size(0)}).states[0],
                       vmap(each)(Tensors{w})[0]};
      },
      {3});
}

// A loop within each step over what all steps share, whose length varies.
TEST_P(ScanOfAnyLength, OfLoopsInAStep) {
  const Tensor h = random({3}, 1).detach(), y = random({2, 3}, 2).detach();
  expect_same(
      [&](const Tensor& x) {
        return scan(
                   [&](const Tensors& s, const Tensors& rows) {
                     const Scanned in = scan(
                         [&](const Tensors& t, const Tensors& r) {
                           return Scanned{{t[0] * 0.5f + r[0]}, {}};
                         },
                         {s[0]}, {x});
                     return Scanned{{in.states[0] + rows[0]}, {}};
                   },
                   {h}, {y})
            .states;
      },
      {3});
}

// The reference interpreter, which knows no schedules.
TEST(ScanGraph, IsInterpreted) {
  const Tensor x = Tensor::arange(0, 12, 1, {DType::F32, "CPU"}).reshape({3, 4}).realize();
  const Scanned all = scan(
      [](const Tensors& s, const Tensors& rows) {
        return Scanned{{s[0] * 2 + rows[0]}, {s[0] + 1}};
      },
      {Tensor::ones({4}, {DType::F32, "CPU"})}, {x}, {.reverse = true});
  const detail::BuildGuard section;
  std::vector<std::byte> bytes(12 * 4);
  const std::vector<float> values = [] {
    std::vector<float> v(12);
    for (size_t i = 0; i < 12; i++) v[i] = float(i);
    return v;
  }();
  std::memcpy(bytes.data(), values.data(), bytes.size());
  ir::Bindings bindings;
  bindings.storages.emplace(detail::buffer_of(x)->id, bytes);
  const ir::UOp roots[] = {detail::uop(all.states[0]), detail::uop(all.outputs[0])};
  const auto got = ir::interpret(roots, bindings);
  // 1 -> 2 + 8 = 10 -> 20 + 4 = 24 -> 48 + 0 = 48
  EXPECT_EQ(got[0].at(0).as_double(), 48);
  EXPECT_EQ(got[1].at(0).as_double(), 25);
  EXPECT_EQ(got[1].at(4).as_double(), 11);
  EXPECT_EQ(got[1].at(8).as_double(), 2);
}

TEST(ScanErrors, NameTheValueAndTheFix) {
  const TensorOptions cpu{.device = "CPU"};
  const Tensor h = Tensor::zeros({3}, cpu), x = Tensor::zeros({4, 3}, cpu);
  const auto same = [](const Tensors& s, const Tensors&) { return Scanned{s, {}}; };
  const auto message = [&](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto says = [&](const auto& call, const std::string& text) {
    EXPECT_NE(message(call).find(text), std::string::npos) << message(call);
  };
  says([&] { scan(same, {}, {x}); }, "there is no state");
  says([&] { scan(same, {h}, {}); }, "say how many steps");
  says([&] { scan(same, {h}, {x}, {.steps = 5}); }, "sequence 0 has 4 rows for 5 steps");
  says([&] { scan(same, {h}, {Tensor::zeros({0, 3}, cpu)}); }, "there are no steps");
  says([&] { scan(same, {h}, {}, {.steps = int64_t(1) << 62}); }, "at most 1048576: go on from");
  says([&] { scan(same, {h, h.cast(DType::F64)}, {x}); }, "state 0 is float32, state 1 is float64");
  const auto gives = [&](Tensor (*next)(const Tensor&)) {
    return [&, next] {
      scan([next](const Tensors& s, const Tensors&) { return Scanned{{next(s[0])}, {}}; }, {h}, {x});
    };
  };
  says(gives([](const Tensor& t) { return t.sum(); }), "state 0 is (3,), after a step ()");
  says(gives([](const Tensor& t) { return t.cast(DType::F16); }), "after a step float16: cast it");
  says(gives([](const Tensor& t) { return t + t.sum().item(); }),
       "one of scan with those for all steps");
  // Inside a Jit the number of steps and the first extents of rows and states may vary.
  const auto varies = [&](int64_t axis) {
    return [&, axis] {
      Jit jit([&](const Tensors& in) { return scan(same, {h}, {in[0]}).states; },
              {.dynamic = {{.argument = 0, .axis = axis, .name = "T", .min = 1, .max = 9}}});
      for (int i = 0; i < 2; i++) jit({Tensor::ones({4, 3, 2}, cpu).realize()});
    };
  };
  for (const int64_t axis : {0, 1}) EXPECT_EQ(message(varies(axis)), "");
  says(varies(2), "a row of sequence 0 is (3, T), of which more than the first extent varies (T ");
}

}  // namespace
}  // namespace tuff::test
