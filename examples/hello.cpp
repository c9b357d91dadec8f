// Fits a line to noisy points: tensors, autograd, an optimizer.
#include <cstdio>

#include <tuff/optim.h>
#include <tuff/tensor.h>

int main() {
  using tuff::Tensor;
  Tensor x = Tensor::rand({256, 1}), y = x * 3 + 0.5 + Tensor::randn({256, 1}) * 0.1;
  Tensor w = Tensor::zeros({1, 1}, {.requires_grad = true}), b = Tensor::zeros({1}, {.requires_grad = true});
  tuff::optim::SGD optimizer({w, b}, {.lr = 0.5});
  Tensor::realize({x, y});
  for (int step = 0; step < 100; step++) {
    (x.matmul(w) + b - y).square().mean().backward();
    optimizer.step();
  }
  std::printf("y = %.2f x + %.2f\n", w.item(), b.item());
}
