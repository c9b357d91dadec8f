// Uses what is installed, as a user would: headers from the prefix, symbols from the libraries,
// a tensor expression on the default device.
#include <tuff/tensor.h>

#include <cstdio>

int main() {
  using tuff::Tensor;
  const Tensor a = Tensor::from({1, 2, 3}, {3});
  const Tensor b = Tensor::from({4, 5, 6}, {3});
  try {
    const Tensor impossible = a.matmul(Tensor::ones({4, 2}));
    return 1;
  } catch (const tuff::Error&) {
    std::printf(
        "%g %s\n", (a * b).sum().item(),
        tuff::name(tuff::promote(tuff::parse_dtype("half"), tuff::parse_dtype("bfloat16"))));
  }
  return 0;
}
