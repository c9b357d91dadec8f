// What `tuff bench train` measures: a training step on one batch, captured and replayed. The models
// are those of bench/peers/peer.py. Called by bench_command. Must never parse or print.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::bench {

struct TrainFigures {
  uint32_t kernels = 0;
  std::vector<double> ms, host_us;  // of every timed step
  double ready_ms = 0;  // from making the model to the end of the step that was captured
  double first_loss = 0, last_loss = 0;
  bool correct() const;  // the loss of the one batch has fallen, and is a number
};

class TrainBench {
 public:
  // "mlp", "conv" or "gpt".
  TrainBench(const std::string& model, const std::string& device);
  ~TrainBench();
  // Until the step is captured; run() does it too. Later calls do nothing.
  void get_ready();
  // Runs steps for about so long, after a warm-up at the first call, and adds what they took.
  void run(double seconds);
  // One replayed step, not timed.
  void step();
  const TrainFigures& figures() const;
  static const std::vector<std::string>& models();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::bench
