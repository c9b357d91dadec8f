// Wrong input for every public function of Tensor, and for nn and optim: a row per way to be wrong.
// Called by errors_test.cpp.
#pragma once

#include <functional>
#include <vector>

namespace tuff::test {

// The name's first word is the function.
struct Wrong {
  const char* name;
  const char* kind;
  const char* text;  // part of the message
  std::function<void()> call;
  bool computes_before = false;  // what the call needs (an optimizer's state, initial weights)
};

std::vector<const Wrong*> wrong_rows();
// Part of them: of Tensor's bases and losses.
std::vector<const Wrong*> wrong_rows_of_parts();
// Of functions that are made of others, under PyTorch's names.
std::vector<const Wrong*> wrong_rows_of_names();
// Convolutions, pools, resizing, sampling.
std::vector<const Wrong*> wrong_rows_of_windows();

}  // namespace tuff::test
