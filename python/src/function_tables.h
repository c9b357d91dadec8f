// Rows of functions of Tensor that are bound alike, and how. Included by what binds such tables.
#pragma once

#include <span>

#include "module.h"

namespace tuff::python {

struct Unary {
  const char* name;
  Tensor (Tensor::*function)() const;
  const char* doc;
};
struct Binary {
  const char* name;
  Tensor (Tensor::*function)(const Tensor&) const;
  const char* parameter;
  const char* doc;
};
// Of a tensor, or of a number.
struct WithNumber {
  const char* name;
  Tensor (Tensor::*tensor)(const Tensor&) const;
  Tensor (Tensor::*number)(Number) const;
  const char* parameter;
  const char* doc;
};

inline void bind_tables(TensorClass& c, std::span<const Unary> unary,
                        std::span<const Binary> binary, std::span<const WithNumber> with_number) {
  for (const Unary& f : unary) c.def(f.name, f.function, f.doc);
  for (const Binary& f : binary) c.def(f.name, f.function, py::arg(f.parameter), f.doc);
  for (const WithNumber& f : with_number) {
    c.def(f.name, f.tensor, py::arg(f.parameter), f.doc);
    c.def(f.name, f.number, py::arg(f.parameter), f.doc);
  }
}

}  // namespace tuff::python
