// The layers of a transformer as a graph of tensors. Called by Model and Sequence.
// Must never know files, texts or who captures it.
#pragma once

#include <vector>

#include "language/config.h"
#include "language/kv_pages.h"
#include "language/rope.h"
#include "language/weights.h"

namespace tuff::language {

struct LayerPages {
  KvPages keys, values;
};

// Where the rows of a call stand: as many behind each other of each sequence. Keys and values of
// the rows are put into their slots, which are counted through all pages; then a row reads the
// pages of its sequence up to its own position. Without pages the rows of a sequence are a whole
// text, or several behind each other: rows see those of their own text, which are numbered.
struct Place {
  int64_t sequences = 1;
  Tensor positions, slots;  // (rows)
  Tensor table;             // (sequences, pages): the pages of each, in order
  std::vector<LayerPages>* pages = nullptr;
  Tensor texts = {};         // (rows), with positions in them; undefined: one of each sequence
  bool checkpoints = false;  // what is inside of layers is computed again for gradients
  Tensor present = {};  // of an encoder's rows (rows): those that are no padding; undefined: all
};

// (rows) tokens -> (rows, width), before the last norm.
Tensor decode(const Config& config, const Weights& weights, const RopeTables& rope,
              const Tensor& tokens, const Place& place);
// (rows, width) -> (rows, width), by the norm behind all layers.
Tensor last_norm(const Config& config, const Weights& weights, const Tensor& x);
// (rows, width) -> (rows, vocabulary).
Tensor logits(const Config& config, const Weights& weights, const Tensor& x);
// Their cross entropy with targets (tokens).
Tensor loss(const Config& config, const Weights& weights, const Tensor& x, const Tensor& targets,
            int64_t ignore_index, Reduction reduction);

}  // namespace tuff::language
