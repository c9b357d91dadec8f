// Config: the numbers of a transformer, whatever file they come from, and the table of
// architectures. Called by Model::open(). Must never know tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tuff/metadata.h>

namespace tuff::language {

// Which elements of a head are rotated together: neighbours, or one of each half.
enum class RopePairs : uint8_t { None, Neighbours, Halves };
enum class Activation : uint8_t { Silu, GeluTanh, Gelu };

// What an architecture does that its files do not say. What they do say are tensors that are there
// (biases, norms of heads, norms behind branches, joined projections) and numbers.
struct Architecture {
  const char* name = "";  // general.architecture
  RopePairs pairs = RopePairs::None;  // None: positions are learned
  Activation activation = Activation::Silu;
  bool scales_embedding = false;  // by the root of the width
  // Every so many layers one sees all positions, the others a window; 0: as the file says, all.
  int64_t window_period = 0;
  double window_rope_base = 0;  // of layers with a window, if no file says it; 0: as the others
  bool normalizes_experts = true;  // the weights of those that are chosen sum up to 1
  bool layer_norms = false;        // norms take the mean off, and have biases
  bool gated = true;               // feed-forward branches are
  bool encodes = false;            // tokens see all others; norms stand behind sums
};

struct RopeScaling {
  // None; Linear: positions are divided; Llama3 and LongRope: frequencies are, by a tensor;
  // Yarn: by ramps.
  enum class Kind : uint8_t { None, Linear, Yarn } kind = Kind::None;
  double factor = 1, original_context = 0, attention_factor = 1, beta_fast = 32, beta_slow = 1;
};

struct Config {
  Architecture architecture{};
  std::string name;
  int64_t layers = 0, width = 0, hidden = 0, heads = 0, kv_heads = 0, vocabulary = 0, context = 0;
  int64_t key_size = 0, value_size = 0;  // of a head
  int64_t rotated = 0;                   // of a head's elements
  double rope_base = 10000, norm_epsilon = 1e-5;
  double window_rope_base = 0;  // of layers with a window; 0: as the others
  RopeScaling scaling;
  // What frequencies are divided by, in texts of up to the original context and in longer ones;
  // empty: nothing.
  std::vector<float> rope_divisors, long_rope_divisors;
  int64_t window = 0;  // 0: every layer sees everything
  double score_cap = 0, logit_cap = 0;  // 0: none
  double score_scale = 0;
  // Of layers with a router; 0: none.
  int64_t experts = 0, experts_used = 0, expert_hidden = 0, shared_hidden = 0;
  bool normalizes_experts = true;
  // How an encoder's tokens become one vector.
  enum class Pooling : uint8_t { Mean, First } pooling = Pooling::Mean;

  bool has_window(int64_t layer) const {
    const int64_t period = architecture.window_period;
    return window > 0 && (period == 0 || layer % period != period - 1);
  }
};

// Unsupported names those that are known.
const Architecture& architecture_of(const std::string& name);
// InvalidArgument for more experts than there are.
void require_experts(const Config& config);
// InvalidArgument for numbers of heads, and of their elements, that do not fit each other.
void require_heads(const Config& config);
// Of a GGUF file's metadata (github.com/ggml-org/ggml, docs/gguf.md). InvalidArgument names a key
// that is missing or makes no sense; Unsupported an architecture or feature.
Config config_of(const Metadata& metadata);

}  // namespace tuff::language
