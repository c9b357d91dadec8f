// The optimizers beside SGD and Adam against their formulas, computed here in double; groups,
// captured steps, states, averages.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/optim.h>

#include <cmath>
#include <functional>
#include <memory>

namespace tuff::optim::kinds_tests {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
const TensorOptions kCpu{.device = "CPU"};
const Floats kStart{1.0f, -2.0f, 0.5f, 3.0f}, kTarget{0.0f, 1.0f, 2.0f, 2.5f};

Tensor parameter(const Floats& values, const Sizes& sizes) {
  return Tensor::from(values, sizes, kCpu).set_requires_grad();
}

// sum((p - target)^2), whose gradient is 2 (p - target).
Tensor loss_of(const Tensor& p) {
  const Tensor target = Tensor::from(kTarget, {4}, kCpu).reshape(p.sizes());
  return (p - target).square().sum();
}
void step(Optimizer& optimizer, const Tensor& p) {
  loss_of(p).backward();
  optimizer.step();
}
Doubles gradient_at(const Doubles& x) {
  Doubles g;
  for (size_t i = 0; i < x.size(); i++) g.push_back(2 * (x[i] - kTarget[i]));
  return g;
}

// Moves x by its gradient in step t, counted from 1.
using Formula = std::function<void(Doubles& x, const Doubles& g, int t)>;

void check(const Sizes& sizes, const std::function<std::unique_ptr<Optimizer>(Tensor)>& make,
           const Formula& formula, double tolerance = 5e-6) {
  const Tensor p = parameter(kStart, sizes);
  const auto optimizer = make(p);
  Doubles x(kStart.begin(), kStart.end());
  for (int t = 1; t <= 8; t++) {
    step(*optimizer, p);
    formula(x, gradient_at(x), t);
    const Floats got = p.to_vector<float>();
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_NEAR(got[i], x[i], tolerance) << "element " << i << " in step " << t;
  }
}

template <class Kind>
auto maker(const typename Kind::Options& options) {
  return [=](const Tensor& p) {
    return std::make_unique<Kind>(std::vector<Tensor>{p}, options);
  };
}

// Of four elements, each on its own.
using Element = std::function<void(double& x, double g, int t, Doubles& kept)>;
Formula by_element(const Element& f, double first = 0) {
  const auto kept = std::make_shared<std::vector<Doubles>>(4, Doubles(4, first));
  return [=](Doubles& x, const Doubles& g, int t) {
    for (size_t i = 0; i < x.size(); i++) f(x[i], g[i], t, (*kept)[i]);
  };
}

TEST(Kinds, SgdWithDampeningAndMaximize) {
  check({4},
        maker<SGD>({.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.5,
                    .maximize = true}),
        by_element([](double& x, double g, int t, Doubles& k) {
          const double d = -g + 0.1 * x;
          k[0] = t == 1 ? d : 0.9 * k[0] + 0.5 * d;
          x -= 0.02 * k[0];
        }));
}

TEST(Kinds, AdamWithTheLargestSecondMoment) {
  check({4}, maker<Adam>({.lr = 0.1, .beta2 = 0.7, .amsgrad = true}),
        by_element([](double& x, double g, int t, Doubles& k) {
          k[0] = 0.9 * k[0] + 0.1 * g;
          k[1] = 0.7 * k[1] + 0.3 * g * g;
          k[2] = std::max(k[2], k[1]);
          const double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(0.7, t);
          x -= 0.1 * k[0] / c1 / (std::sqrt(k[2] / c2) + 1e-8);
        }));
}

TEST(Kinds, RmspropCenteredWithMomentum) {
  check({4},
        maker<RMSprop>({.lr = 0.01, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5,
                        .centered = true}),
        by_element([](double& x, double g, int, Doubles& k) {
          g += 0.1 * x;
          k[0] = 0.9 * k[0] + 0.1 * g * g;
          k[1] = 0.9 * k[1] + 0.1 * g;
          k[2] = 0.5 * k[2] + g / (std::sqrt(k[0] - k[1] * k[1]) + 1e-8);
          x -= 0.01 * k[2];
        }));
}

TEST(Kinds, Adagrad) {
  check({4},
        maker<Adagrad>({.lr = 0.1, .lr_decay = 0.2, .initial_accumulator_value = 0.5}),
        by_element(
            [](double& x, double g, int t, Doubles& k) {
              k[0] += g * g;
              x -= 0.1 / (1 + (t - 1) * 0.2) * g / (std::sqrt(k[0]) + 1e-10);
            },
            0.5));
}

TEST(Kinds, Adadelta) {
  check({4}, maker<Adadelta>({.lr = 2, .rho = 0.8, .eps = 1e-4}),
        by_element([](double& x, double g, int, Doubles& k) {
          k[0] = 0.8 * k[0] + 0.2 * g * g;
          const double d = std::sqrt(k[1] + 1e-4) / std::sqrt(k[0] + 1e-4) * g;
          k[1] = 0.8 * k[1] + 0.2 * d * d;
          x -= 2 * d;
        }));
}

TEST(Kinds, Adamax) {
  check({4}, maker<Adamax>({.lr = 0.1, .beta2 = 0.8, .weight_decay = 0.1}),
        by_element([](double& x, double g, int t, Doubles& k) {
          g += 0.1 * x;
          k[0] = 0.9 * k[0] + 0.1 * g;
          k[1] = std::max(0.8 * k[1], std::abs(g) + 1e-8);
          x -= 0.1 / (1 - std::pow(0.9, t)) * k[0] / k[1];
        }));
}

TEST(Kinds, NAdam) {
  const auto product = std::make_shared<double>(1);
  check({4}, maker<NAdam>({.lr = 0.1, .beta2 = 0.9, .momentum_decay = 0.1}),
        [=, kept = std::vector<Doubles>(4, Doubles(2))](Doubles& x, const Doubles& g,
                                                        int t) mutable {
          const double mu = 0.9 * (1 - 0.5 * std::pow(0.96, t * 0.1));
          const double next = 0.9 * (1 - 0.5 * std::pow(0.96, (t + 1) * 0.1));
          *product *= mu;
          for (size_t i = 0; i < 4; i++) {
            double &m = kept[i][0], &v = kept[i][1];
            m = 0.9 * m + 0.1 * g[i];
            v = 0.9 * v + 0.1 * g[i] * g[i];
            const double root = std::sqrt(v / (1 - std::pow(0.9, t))) + 1e-8;
            x[i] -= 0.1 * (1 - mu) / (1 - *product) * g[i] / root;
            x[i] -= 0.1 * next / (1 - *product * next) * m / root;
          }
        });
}

// With PyTorch's beta2, where rho is 6 in the sixth step: a number of 7 digits minus another.
TEST(Kinds, RAdam) {
  for (const double b2 : {0.999, 0.8}) {
    check({4}, maker<RAdam>({.lr = 0.1, .beta2 = b2}),
          by_element([b2](double& x, double g, int t, Doubles& k) {
            k[0] = 0.9 * k[0] + 0.1 * g;
            k[1] = b2 * k[1] + (1 - b2) * g * g;
            const double c2 = 1 - std::pow(b2, t), limit = 2 / (1 - b2) - 1;
            const double rho = limit - 2 * t * (1 - c2) / c2;
            double scale = 1;
            if (rho > 5) {
              scale = std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
              scale *= std::sqrt(c2) / (std::sqrt(k[1]) + 1e-8);
            }
            x -= 0.1 * k[0] / (1 - std::pow(0.9, t)) * scale;
          }),
          2e-5);
  }
}

TEST(Kinds, Asgd) {
  const Tensor p = parameter(kStart, {4});
  ASGD optimizer({p}, {.lr = 0.1, .lambd = 0.05, .alpha = 0.75, .t0 = 3});
  Doubles x(kStart.begin(), kStart.end()), mean(4);
  double eta = 0.1, mu = 1;
  for (int t = 1; t <= 8; t++) {
    step(optimizer, p);
    const Doubles g = gradient_at(x);
    for (size_t i = 0; i < 4; i++) {
      x[i] = x[i] * (1 - 0.05 * eta) - eta * g[i];
      mean[i] += (x[i] - mean[i]) * mu;
    }
    eta = 0.1 / std::pow(1 + 0.05 * 0.1 * t, 0.75);
    mu = 1 / std::max(1.0, t - 3.0);
  }
  for (const nn::NamedTensor& t : optimizer.state_dict()) {
    if (t.name == "state.0.eta") {
      EXPECT_NEAR(t.tensor.item(), eta, 1e-7);
    }
    if (t.name != "state.0.ax") continue;
    const Floats ax = t.tensor.to_vector<float>(), got = p.to_vector<float>();
    for (size_t i = 0; i < 4; i++) {
      EXPECT_NEAR(got[i], x[i], 1e-6);
      EXPECT_NEAR(ax[i], mean[i], 1e-6);
    }
  }
}

TEST(Kinds, Lion) {
  check({4}, maker<Lion>({.lr = 0.03, .weight_decay = 0.1}),
        by_element([](double& x, double g, int, Doubles& k) {
          const double u = 0.9 * k[0] + 0.1 * g;
          x = x * (1 - 0.03 * 0.1) - 0.03 * (u > 0 ? 1 : u < 0 ? -1 : 0);
          k[0] = 0.99 * k[0] + 0.01 * g;
        }));
}

double norm(const Doubles& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

TEST(Kinds, Lamb) {
  check({2, 2}, maker<LAMB>({.lr = 0.1, .weight_decay = 0.1}),
        [m = Doubles(4), v = Doubles(4)](Doubles& x, const Doubles& g, int t) mutable {
          Doubles r(4);
          for (size_t i = 0; i < 4; i++) {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
            r[i] = m[i] / (1 - std::pow(0.9, t)) /
                       (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-6) +
                   0.1 * x[i];
          }
          const double trust = norm(x) / norm(r);
          for (size_t i = 0; i < 4; i++) x[i] -= 0.1 * trust * r[i];
        },
        3e-5);  // 1 - 0.999^t has lost digits in F32
}

TEST(Kinds, Lars) {
  check({2, 2}, maker<LARS>({.lr = 0.5, .weight_decay = 0.1, .nesterov = true, .trust = 0.05}),
        [v = Doubles(4)](Doubles& x, const Doubles& g, int) mutable {
          const double trust = 0.05 * norm(x) / (norm(g) + 0.1 * norm(x));
          for (size_t i = 0; i < 4; i++) {
            const double d = trust * (g[i] + 0.1 * x[i]);
            v[i] = 0.9 * v[i] + d;
            x[i] -= 0.5 * (d + 0.9 * v[i]);
          }
        });
}

TEST(Kinds, NormsOfZeroScaleByOne) {
  const Tensor p = parameter({0, 0, 0, 0}, {4});
  LARS lars({p}, {.lr = 0.25, .momentum = 0});
  step(lars, p);
  EXPECT_EQ(p.to_vector<float>(), (Floats{0, 0.5f, 1, 1.25f}));
}

TEST(Kinds, AdafactorOfAMatrix) {
  check({2, 2}, maker<Adafactor>({.lr = 0.1, .weight_decay = 0.1}),
        [row = Doubles(2), column = Doubles(2)](Doubles& x, const Doubles& g, int t) mutable {
          const double fresh = std::pow(t, -0.8), alpha = std::max(1e-3, norm(x) / 2) *
                                                          std::min(0.1, 1 / std::sqrt(t));
          for (size_t i = 0; i < 2; i++) {
            row[i] += ((g[2 * i] * g[2 * i] + g[2 * i + 1] * g[2 * i + 1]) / 2 - row[i]) * fresh;
            column[i] += ((g[i] * g[i] + g[2 + i] * g[2 + i]) / 2 - column[i]) * fresh;
          }
          Doubles u(4);
          for (size_t i = 0; i < 4; i++)
            u[i] = g[i] / std::sqrt(row[i / 2] * column[i % 2] / ((row[0] + row[1]) / 2));
          const double bound = std::max(1.0, norm(u) / 2);
          for (size_t i = 0; i < 4; i++)
            x[i] = x[i] * (1 - 0.1 * 0.1) - alpha / bound * u[i];
        });
}

TEST(Kinds, AdafactorOfAVector) {
  check({4}, maker<Adafactor>({.lr = 0.2, .d = 0.5}),
        [v = Doubles(4)](Doubles& x, const Doubles& g, int t) mutable {
          const double alpha = norm(x) / 2 * std::min(0.2, 1 / std::sqrt(t));
          Doubles u(4);
          for (size_t i = 0; i < 4; i++) {
            v[i] += (g[i] * g[i] - v[i]) * std::pow(t, -0.8);
            u[i] = g[i] / std::sqrt(v[i]);
          }
          const double bound = std::max(1.0, norm(u) / 2 / 0.5);
          for (size_t i = 0; i < 4; i++) x[i] -= alpha / bound * u[i];
        });
}

using Matrix = std::vector<Doubles>;
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), Doubles(b[0].size()));
  for (size_t i = 0; i < a.size(); i++)
    for (size_t j = 0; j < b[0].size(); j++)
      for (size_t k = 0; k < b.size(); k++) out[i][j] += a[i][k] * b[k][j];
  return out;
}
Matrix turned(const Matrix& a) {
  Matrix out(a[0].size(), Doubles(a.size()));
  for (size_t i = 0; i < a.size(); i++)
    for (size_t j = 0; j < a[0].size(); j++) out[j][i] = a[i][j];
  return out;
}

// A column is turned round, a row is not: both shapes of four elements.
void check_muon(size_t rows) {
  check({int64_t(rows), int64_t(4 / rows)}, maker<Muon>({.lr = 0.1}),
        [=, v = Doubles(4)](Doubles& x, const Doubles& g, int) mutable {
          const size_t columns = 4 / rows;
          Matrix m(rows, Doubles(columns));
          Doubles u(4);
          for (size_t i = 0; i < 4; i++) {
            v[i] = 0.95 * v[i] + 0.05 * g[i];
            u[i] = 0.05 * g[i] + 0.95 * v[i];
          }
          for (size_t i = 0; i < 4; i++) m[i / columns][i % columns] = u[i] / norm(u);
          if (rows > columns) m = turned(m);
          for (int k = 0; k < 5; k++) {
            const Matrix a = product(m, turned(m)), aa = product(a, a);
            Matrix b = a;
            for (size_t i = 0; i < a.size(); i++)
              for (size_t j = 0; j < a.size(); j++)
                b[i][j] = -4.775 * a[i][j] + 2.0315 * aa[i][j];
            const Matrix bm = product(b, m);
            for (size_t i = 0; i < m.size(); i++)
              for (size_t j = 0; j < m[0].size(); j++) m[i][j] = 3.4445 * m[i][j] + bm[i][j];
          }
          if (rows > columns) m = turned(m);
          const double scale = std::sqrt(std::max(1.0, double(rows) / double(columns)));
          for (size_t i = 0; i < 4; i++)
            x[i] = x[i] * (1 - 0.1 * 0.1) - 0.1 * scale * m[i / columns][i % columns];
        },
        1e-4);
}
TEST(Kinds, MuonOfASquare) { check_muon(2); }
TEST(Kinds, MuonOfARow) { check_muon(1); }
TEST(Kinds, MuonOfAColumn) { check_muon(4); }

TEST(Kinds, MuonRefusesVectors) {
  EXPECT_THROW(Muon({parameter(kStart, {4})}, {}), InvalidArgument);
}

// The parameters after eight steps whose rates change between, and the state's names.
template <class Kind>
std::pair<Floats, std::vector<std::string>> trained(const typename Kind::Options& options,
                                                    bool captured, bool resumed) {
  const Sizes sizes{2, 2};
  Tensor p = parameter(kStart, sizes);
  auto optimizer = std::make_unique<Kind>(std::vector<Tensor>{p}, options);
  const auto run = [&](const std::vector<Tensor>&) {
    optimizer->zero_grad();
    const Tensor loss = loss_of(p);
    loss.backward();
    optimizer->step({loss});
    return std::vector<Tensor>{loss};
  };
  Jit jit(run);
  for (int t = 0; t < 8; t++) {
    captured ? jit({}).at(0).item() : run({}).at(0).item();
    optimizer->set_lr(options.lr * (t % 2 ? 1.0 : 0.5));
    if (!resumed || t != 3) continue;
    const nn::StateDict state = optimizer->state_dict();
    p = parameter(p.to_vector<float>(), sizes);
    auto next = std::make_unique<Kind>(std::vector<Tensor>{p}, options);
    next->load_state_dict(state);
    optimizer = std::move(next);
  }
  EXPECT_EQ(jit.captured(), captured);
  std::vector<std::string> names;
  for (const nn::NamedTensor& t : optimizer->state_dict()) names.push_back(t.name);
  return {p.to_vector<float>(), names};
}

template <class Kind>
void check_jit_and_state(const typename Kind::Options& options,
                         const std::vector<std::string>& kept) {
  const auto [plain, names] = trained<Kind>(options, false, false);
  std::vector<std::string> wanted{"param_groups.0.lr"};
  for (const std::string& name : kept) wanted.push_back("state.0." + name);
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(trained<Kind>(options, true, false).first, plain);
  EXPECT_EQ(trained<Kind>(options, false, true).first, plain);
}

TEST(Kinds, AreCapturedAndGoOn) {
  check_jit_and_state<SGD>({.momentum = 0.9, .dampening = 0.5}, {"momentum_buffer"});
  check_jit_and_state<Adam>({.lr = 0.1, .amsgrad = true},
                            {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
  check_jit_and_state<RMSprop>({.momentum = 0.5, .centered = true},
                               {"step", "square_avg", "momentum_buffer", "grad_avg"});
  check_jit_and_state<Adagrad>({.lr = 0.1, .lr_decay = 0.1}, {"step", "sum"});
  check_jit_and_state<Adadelta>({}, {"step", "square_avg", "acc_delta"});
  check_jit_and_state<Adamax>({.lr = 0.1}, {"step", "exp_avg", "exp_inf"});
  check_jit_and_state<NAdam>({.lr = 0.1}, {"step", "mu_product", "exp_avg", "exp_avg_sq"});
  check_jit_and_state<RAdam>({.lr = 0.1}, {"step", "exp_avg", "exp_avg_sq"});
  check_jit_and_state<ASGD>({.lr = 0.1, .t0 = 2}, {"step", "eta", "mu", "ax"});
  check_jit_and_state<Adafactor>({.lr = 0.1}, {"step", "row_var", "col_var"});
  check_jit_and_state<LAMB>({.lr = 0.1}, {"step", "exp_avg", "exp_avg_sq"});
  check_jit_and_state<LARS>({.lr = 1}, {"momentum_buffer"});
  check_jit_and_state<Muon>({.lr = 0.1}, {"momentum_buffer"});
  check_jit_and_state<Lion>({.lr = 0.1}, {"exp_avg"});
}

TEST(Groups, HaveOptionsOfTheirOwn) {
  const Tensor a = parameter(kStart, {4}), b = parameter(kStart, {4});
  SGD optimizer(SGD::Groups{{{a}, {.lr = 0.1}}, {{b}, {.lr = 0.01, .weight_decay = 0.5}}});
  (loss_of(a) + loss_of(b)).backward();
  optimizer.step();
  const Floats x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < 4; i++) {
    const double g = 2 * (kStart[i] - kTarget[i]);
    EXPECT_NEAR(x[i], kStart[i] - 0.1 * g, 1e-6);
    EXPECT_NEAR(y[i], kStart[i] - 0.01 * (g + 0.5 * kStart[i]), 1e-6);
  }
  optimizer.set_lr(0.5, 1);
  EXPECT_EQ(optimizer.lr_value(0), 0.1);
  EXPECT_EQ(optimizer.lr(1).item(), 0.5);
  EXPECT_EQ(optimizer.state_dict()[1].name, "param_groups.1.lr");
  EXPECT_THROW(optimizer.set_lr(0.5, 2), InvalidArgument);
  StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  EXPECT_EQ(optimizer.lr_value(0), 0.05);
  EXPECT_EQ(optimizer.lr_value(1), 0.25);
  EXPECT_THROW(SGD(SGD::Groups{{{a}, {}}, {{a}, {}}}), InvalidArgument);
  EXPECT_THROW(SGD(SGD::Groups{}), InvalidArgument);
  EXPECT_THROW(SGD(SGD::Groups{{{a}, {}}, {{}, {}}}), InvalidArgument);
}

TEST(Groups, OfOptimizersStepTogether) {
  const Tensor a = parameter(kStart, {2, 2}), b = parameter(kStart, {4});
  const Tensor c = parameter(kStart, {2, 2}), d = parameter(kStart, {4});
  Muon first({a}, {.lr = 0.1}), alone({c}, {.lr = 0.1});
  AdamW second({b}, {.lr = 0.1}), apart({d}, {.lr = 0.1});
  OptimizerGroup both({&first, &second});
  const auto joined = [](const Tensor& x, const Tensor& y) {
    return loss_of(x) + loss_of(y) * x.sum();
  };
  for (int t = 0; t < 3; t++) {
    joined(a, b).backward();
    both.step();
    joined(c, d).backward();
    const Tensor gradient = d.grad();
    Tensor::realize({gradient});
    alone.step();
    apart.step();
  }
  for (size_t i = 0; i < 4; i++) {
    EXPECT_NEAR(a.to_vector<float>()[i], c.to_vector<float>()[i], 1e-5);
    EXPECT_NEAR(b.to_vector<float>()[i], d.to_vector<float>()[i], 1e-5);
  }
  nn::StateDict state = both.state_dict();
  EXPECT_EQ(state[0].name, "0.param_groups.0.lr");
  EXPECT_EQ(state.back().name, "1.state.0.exp_avg_sq");
  both.load_state_dict(state);
  state[0].name = "2.param_groups.0.lr";
  EXPECT_THROW(both.load_state_dict(state), InvalidArgument);
  EXPECT_THROW(both.step(), InvalidArgument);
  EXPECT_THROW(OptimizerGroup({}), InvalidArgument);
}

// Rosenbrock's valley, whose minimum is at (1, 1).
Tensor valley(const Tensor& p) {
  const Tensor x = p[0], y = p[1];
  return (1.0 - x).square() + 100.0 * (y - x.square()).square();
}

TEST(Lbfgs, FindsTheMinimum) {
  const Tensor p = parameter({-0.5f, 0.5f}, {2});
  LBFGS optimizer({p}, {.lr = 0.5});
  int calls = 0;
  double first = 0;
  for (int i = 0; i < 12; i++) {
    const double loss = optimizer.step([&] {
      calls++;
      const Tensor value = valley(p);
      value.backward();
      return value;
    });
    if (i == 0) first = loss;
  }
  EXPECT_NEAR(first, 1.5 * 1.5 + 100 * 0.0625, 1e-4);
  EXPECT_LT(valley(p).item(), 1e-6);
  EXPECT_LE(calls, 12 * 20);
  valley(p).backward();
  EXPECT_THROW(static_cast<Optimizer&>(optimizer).step(), InvalidArgument);
}

// Steps of gradients 1, infinity and NaN: the scale falls and grows, and what is not finite leaves
// parameters, moments and count alone; captured or not.
void check_scaler(bool captured) {
  const Tensor p = parameter({1, 1}, {2}), q = parameter({1, 1}, {2});
  Adam scaled({p}, {.lr = 0.1}), plain({q}, {.lr = 0.1});
  GradScaler scaler({.init_scale = 8, .growth_interval = 2, .device = "CPU"});
  const auto run = [&](const std::vector<Tensor>& in) {
    scaler.scale((p * in[0]).sum()).backward();
    scaler.step(scaled);
    return std::vector<Tensor>{};
  };
  Jit jit(run);
  const std::vector<std::pair<float, double>> steps{{1, 8},         {2, 16}, {INFINITY, 8}, {1, 8},
                                                    {NAN, 4}, {3, 4},  {-1, 8}};
  for (const auto& [g, scale] : steps) {
    const Tensor in = Tensor::from({g, 1}, {2}, kCpu);
    captured ? (void)jit({in}) : (void)run({in});
    EXPECT_EQ(scaler.get_scale(), scale) << g;
    if (std::isfinite(g)) {
      (q * in).sum().backward();
      plain.step();
    }
    for (size_t i = 0; i < 2; i++)
      EXPECT_NEAR(p.to_vector<float>()[i], q.to_vector<float>()[i], 1e-6) << g;
  }
  EXPECT_EQ(scaled.state_dict()[1].tensor.item(), 5);
  EXPECT_EQ(jit.captured(), captured);
}
TEST(Scaler, LeavesOutWhatIsNotFinite) { check_scaler(false); }
TEST(Scaler, WorksInACapturedStep) { check_scaler(true); }

TEST(Scaler, UnscalesForClipping) {
  const Tensor p = parameter({0, 0}, {2});
  SGD optimizer({p}, {.lr = 1});
  GradScaler scaler({.init_scale = 1024, .device = "CPU"});
  scaler.scale((p * Tensor::from({3, -4}, {2}, kCpu)).sum()).backward();
  scaler.unscale_(optimizer);
  EXPECT_THROW(scaler.unscale_(optimizer), InvalidArgument);
  EXPECT_NEAR(clip_grad_norm_({p}, 2.5).item(), 5, 1e-5);
  scaler.step(optimizer);
  EXPECT_NEAR(p.to_vector<float>()[0], -1.5, 1e-5);
  EXPECT_NEAR(p.to_vector<float>()[1], 2, 1e-5);
  EXPECT_THROW(scaler.step(optimizer), InvalidArgument);
  EXPECT_EQ(scaler.state_dict()[0].name, "scale");
  EXPECT_EQ(scaler.state_dict()[1].tensor.item(), 1);
  EXPECT_THROW(GradScaler({.init_scale = 0}), InvalidArgument);
  EXPECT_THROW(GradScaler({.growth_interval = 0}), InvalidArgument);
}

TEST(Averages, AreExponentialOrEqual) {
  const Tensor p = parameter({0}, {1});
  AveragedParameters equal({p}), decaying({p}, 0.75);
  SGD optimizer({p}, {.lr = 1});
  double wanted = 0, sum = 0;
  for (int t = 1; t <= 4; t++) {
    (p * -double(t)).sum().backward();  // adds t
    optimizer.step();
    equal.update();
    decaying.update();
    const double value = p.item();
    sum += value;
    wanted = t == 1 ? value : 0.75 * wanted + 0.25 * value;
    EXPECT_NEAR(equal.averages()[0].item(), sum / t, 1e-6);
    EXPECT_NEAR(decaying.averages()[0].item(), wanted, 1e-6);
  }
  equal.swap();
  EXPECT_NEAR(p.item(), sum / 4, 1e-6);
  EXPECT_EQ(equal.averages()[0].item(), 10);
  equal.swap();
  EXPECT_EQ(p.item(), 10);
  AveragedParameters other({p});
  other.load_state_dict(equal.state_dict());
  equal.update();
  other.update();
  EXPECT_EQ(other.averages()[0].item(), equal.averages()[0].item());
  EXPECT_THROW(AveragedParameters({p}, 1.5), InvalidArgument);
}

TEST(Averages, AreCapturedAlong) {
  const auto averaged = [](bool captured) {
    const Tensor p = parameter(kStart, {4});
    SGD optimizer({p}, {.lr = 0.1});
    AveragedParameters averages({p}, 0.9);
    const auto run = [&](const std::vector<Tensor>&) {
      loss_of(p).backward();
      optimizer.step();
      averages.update();
      return std::vector<Tensor>{};
    };
    Jit jit(run);
    for (int t = 0; t < 5; t++) captured ? (void)jit({}) : (void)run({});
    return averages.averages()[0].to_vector<float>();
  };
  EXPECT_EQ(averaged(true), averaged(false));
}

}  // namespace
}  // namespace tuff::optim::kinds_tests
