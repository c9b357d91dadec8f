// The one exception hierarchy. Thrown where a failure is detected; the text names the value,
// the limit and what to do: "matmul: inner dimensions differ: (3,4) x (5,6)".
// Called by every room. Broken invariants are not errors of the user: they use TUFF_CHECK.
#ifndef TUFF_ERROR_H
#define TUFF_ERROR_H

#include <stdexcept>
#include <string>

namespace tuff {
// The base of all: what() is for people, kind() for programs.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual const char* kind() const noexcept { return "Error"; }
};

#define TUFF_ERROR_KIND(Name)                                    \
  class Name : public Error {                                    \
   public:                                                       \
    using Error::Error;                                          \
    const char* kind() const noexcept override { return #Name; } \
  };
TUFF_ERROR_KIND(InvalidArgument)  // a value outside what the function takes
TUFF_ERROR_KIND(ShapeError)       // shapes, axes or sizes that do not fit
TUFF_ERROR_KIND(OutOfMemory)      // host or device memory exhausted
TUFF_ERROR_KIND(CompileError)     // a compiler or driver refused a kernel
TUFF_ERROR_KIND(Unsupported)      // the device or build lacks a feature; named
TUFF_ERROR_KIND(DeviceLost)       // sticky: later calls on that device fail fast
TUFF_ERROR_KIND(IoError)          // a file or stream; the path is in the text
TUFF_ERROR_KIND(InternalError)    // a TUFF_CHECK failed: a bug in tuff, please report
#undef TUFF_ERROR_KIND
// An axis that a tensor does not have, or a position outside of an axis.
class IndexError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
  const char* kind() const noexcept override { return "IndexError"; }
};

}  // namespace tuff

#endif  // TUFF_ERROR_H
