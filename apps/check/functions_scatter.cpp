// Stores by index: rows of scripts/tensor-values.py's later_scatter().
#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> elements() {
  return {
      {"scatter", Exact, [](Inputs x) { return x[0].scatter(0, x[1], x[2]); }},
      {"scatter_along", Exact, [](Inputs x) { return x[0].scatter(1, x[1], x[2]); }},
      {"scatter_value", Exact, [](Inputs x) { return x[0].scatter(0, x[1], 2.5); }},
      {"scatter_multiply", Rounded,
       [](Inputs x) { return x[0].detach().scatter(0, x[1], x[2].detach(), "multiply"); }},
      {"scatter_add", Rounded, [](Inputs x) { return x[0].scatter_add(0, x[1], x[2]); }},
      {"scatter_add_few", Rounded,
       [](Inputs x) { return x[0].scatter_add(0, x[1], x[2].detach()); }},
      {"put", Exact, [](Inputs x) { return x[0].put(x[1], x[2]); }},
      {"put_accumulate", Rounded, [](Inputs x) { return x[0].put(x[1], x[2], true); }},
      {"index_put_accumulate", Rounded,
       [](Inputs x) { return x[0].index_put({x[1]}, x[2], true); }},
      {"masked_scatter", Exact, [](Inputs x) { return x[0].masked_scatter(x[1], x[2]); }},
      {"take_along_dim", Exact, [](Inputs x) { return x[0].take_along_dim(x[1], 0); }},
      {"embedding_many", Exact, [](Inputs x) { return Tensor::embedding(x[0], x[1]); }},
  };
}

Function reduced(const std::string& by, bool own) {
  return {"scatter_reduce_" + by + (own ? "" : "_others"), Rounded,
          [by, own](Inputs x) { return x[0].scatter_reduce(0, x[1], x[2], by, own); }};
}

std::vector<Function> rows() {
  return {
      {"index_add", Rounded, [](Inputs x) { return x[0].index_add(0, x[1], x[2], 2); }},
      {"index_add_along", Rounded, [](Inputs x) { return x[0].index_add(1, x[1], x[2]); }},
      {"index_copy", Exact, [](Inputs x) { return x[0].index_copy(0, x[1], x[2]); }},
      {"index_fill", Exact, [](Inputs x) { return x[0].index_fill(1, x[1], -1.5); }},
      {"index_reduce", Exact,
       [](Inputs x) {
         return x[0].detach().index_reduce(0, x[1], x[2].detach(), "amax", false);
       }},
  };
}

}  // namespace

std::vector<Function> functions_of_scatter() {
  std::vector<Function> out;
  for (const auto part : {elements, rows})
    for (Function& f : part()) out.push_back(std::move(f));
  for (const char* by : {"sum", "prod", "mean", "amax", "amin"})
    for (const bool own : {true, false}) out.push_back(reduced(by, own));
  return out;
}

}  // namespace tuff::check
