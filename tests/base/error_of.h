// The text of the one kind of error that something has to throw.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace tuff {

template <class ErrorType, class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const ErrorType& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another error: " << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tuff
