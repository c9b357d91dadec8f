// Loops over sequences. Called by programs and by recurrent layers.
#pragma once

#include <functional>

#include <tuff/autograd.h>

namespace tuff {

/// What a step of scan() gives: the states after it, and what is kept of it. And what scan() gives:
/// the last states, and per output all steps' along a new first axis.
struct Scanned {
  Tensors states;
  Tensors outputs;
};
using ScanStep = std::function<Scanned(const Tensors& states, const Tensors& rows)>;

/// How a loop runs.
struct ScanOptions {
  Size steps = -1;       // -1: as many as the sequences have rows; needed where there are none
  bool reverse = false;  // from the last row to the first; outputs stay with their rows
  // What a step computes of its rows alone is computed of all rows at once, before, and what is the
  // same in every step once. false: by each step, in the memory of one.
  bool ahead = true;
};

/// A loop: step t gets the states of the step before and row t of each sequence (its slice along
/// axis 0). f is called once, with tensors that stand for them, and must not read their values or
/// write memory that depends on them; other tensors that it uses are the same in every step, and so
/// are random numbers. Compiling takes as long as one step does, however many there are; all
/// states are kept for the gradient, which is a loop back. What a step computes of its rows alone
/// is computed for all rows at once before (see ScanOptions::ahead), and outputs for all steps at
/// once afterwards.
///
/// The number of steps may be symbolic (an axis of a Jit that varies): there is one loop for all
/// lengths, which runs as many steps as each call has, in memory for the most. So may the first
/// extents of states and of rows.
///
/// States keep their shapes and have one dtype: ShapeError or InvalidArgument naming the state
/// otherwise, for sequences of different lengths and for no steps, Unsupported for other symbolic
/// extents of states and rows and for more than 2^20 steps, each of which is launched.
///
///     const Scanned s = scan([&](const Tensors& h, const Tensors& x) {
///       const Tensor next = (x[0] + h[0].matmul(w)).tanh();
///       return Scanned{{next}, {next}};
///     }, {h0}, {x});
Scanned scan(const ScanStep& f, const Tensors& initial, const Tensors& sequences,
             const ScanOptions& options = {});

}  // namespace tuff
