#include "interpreter.h"

#include <cxxabi.h>
#include <pthread.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tuff::python {
namespace {

namespace py = pybind11;
using Clock = std::chrono::steady_clock;

// With calls of other threads when the interpreter is about to end; so long new ones are held up,
// and go on then: the interpreter may be waiting for their thread.
constexpr std::chrono::seconds kPatience(5);

thread_local int depth = 0;
std::atomic<int> calls{0};      // of threads
std::atomic<int> unlocked{0};   // threads in Unlocked
std::atomic<bool> ending{false};
std::thread::id ender;
Clock::time_point since;

// What Python does, in which the thread may be ended; it never comes back then.
template <class Action>
auto outlive(Action action) {
  try {
    return action();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// The thread counts as unlocked until it has the lock.
template <class Take>
auto take(Take take_lock) {
  return outlive([&] {
    struct Counted {
      ~Counted() { unlocked--; }
    } counted;
    return take_lock();
  });
}

void hold_up() {
  if (!ending || std::this_thread::get_id() == ender) return;
  PyThreadState* const state = PyEval_SaveThread();
  std::this_thread::sleep_until(since + kPatience);
  unlocked++;
  take([state] { PyEval_RestoreThread(state); });
}

// Who still computes then must not see what it computes with destroyed.
void end_process(int status, void*) {
  if (unlocked == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

void after_fork() {
  calls = depth > 0;
  unlocked = 0;
}

PyCFunction dispatcher = nullptr;  // of all functions that pybind11 makes

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const Inside inside;
  return reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(dispatcher))(
      self, args, kwargs);
}

}  // namespace

Unlocked::Unlocked() {
  unlocked++;
  state_ = PyEval_SaveThread();
}
Unlocked::~Unlocked() {
  take([this] { PyEval_RestoreThread(state_); });
}

Locked::Locked() : state_(outlive([] { return PyGILState_Ensure(); })) {}

PyObject* call_python(PyObject* function, PyObject* arguments) {
  return outlive([=] { return PyObject_CallObject(function, arguments); });
}

Inside::Inside() {
  if (depth == 0) {
    hold_up();
    calls++;
  }
  depth++;
}
Inside::~Inside() {
  if (--depth == 0) calls--;
}

void guard_calls(PyCFunctionObject* function) {
  const auto guarded = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
  if (function->m_ml->ml_meth == guarded) return;
  if (dispatcher == nullptr) {
    dispatcher = function->m_ml->ml_meth;
    pthread_atfork(nullptr, nullptr, &after_fork);
  }
  if (function->m_ml->ml_meth == dispatcher) function->m_ml->ml_meth = guarded;
}

void wait_for_calls() {
  on_exit(&end_process, nullptr);
  ender = std::this_thread::get_id();
  since = Clock::now();
  ending = true;
  while (calls > (depth > 0) && Clock::now() - since < kPatience) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }
}

}  // namespace tuff::python
