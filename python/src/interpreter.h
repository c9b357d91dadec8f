// The interpreter's lock, and its end. CPython ends threads that ask for the lock once the
// interpreter is gone: by unwinding their stack, which no frame of C++ on it is made for.
#pragma once

#include <Python.h>

namespace tuff::python {

// Others run meanwhile. A thread that outlives the interpreter stops where this ends, for good.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// The lock inside of Unlocked.
class Locked {
 public:
  Locked();
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// A call into tuff, with the lock. The interpreter's end waits for those of other threads, and
// holds up new ones.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
};

// Calls what may run for long; nothing after an exception, which is set. Stops as Unlocked does, so
// that nothing is let go of without the lock.
PyObject* call_python(PyObject* function, PyObject* arguments);

// Makes calls of what pybind11 made of a function calls into tuff.
void guard_calls(PyCFunctionObject* function);

// Before the interpreter ends, in the thread that ends it.
void wait_for_calls();

}  // namespace tuff::python
