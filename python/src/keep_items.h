// A policy of pybind11's: the object that a constructor makes keeps what is in a sequence that the
// constructor is given, whatever becomes of the sequence.
#pragma once

#include <pybind11/pybind11.h>

namespace tuff::python {

// Of the argument at this place, 0 being the object.
template <size_t place>
struct KeepItems {};

}  // namespace tuff::python

namespace pybind11::detail {

template <size_t place>
struct process_attribute<tuff::python::KeepItems<place>>
    : process_attribute_default<tuff::python::KeepItems<place>> {
  static void precall(function_call&) {}
  static void postcall(function_call& call, handle) {
    const handle self = call.init_self ? call.init_self : call.args[0];
    for (const handle item : reinterpret_borrow<object>(call.args[place]))
      keep_alive_impl(self, item);
  }
};

}  // namespace pybind11::detail
