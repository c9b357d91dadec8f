// Drafts: tokens that are read together with one that was drawn, in the hope that they are drawn
// next. Those that followed before, or those that a smaller model proposes. Called by generate()
// and Batch, which draw as without them. Must never know how tokens are drawn.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <tuff/language.h>

#include "language/paged_reader.h"

namespace tuff::language {

// InvalidArgument for a number that no call reads, and for a draft model that goes without one.
void require_drafts(const GenerateOptions& options, bool has_model);
// InvalidArgument for a model whose tokens are others.
void require_same_vocabulary(const Model& model, const Model& draft);

// What followed the last tokens of a text where they stood before, the last time.
std::span<const int32_t> followed_before(std::span<const int32_t> text, size_t most);
// The likeliest tokens behind a text, as a sequence of another model sees it.
std::vector<int32_t> proposed(Sequence& draft, std::span<const int32_t> text, size_t most);

// How many first tokens are the same.
size_t equal_tokens(std::span<const int32_t> a, std::span<const int32_t> b);
int32_t likeliest(std::span<const float> logits);

// The model that proposes tokens for the answers of a Batch. Each has a context of its own.
class DraftModel {
 public:
  DraftModel(const Model& model, size_t answers, int64_t context, CacheType cache);
  // Of an answer; there are as many as answers.
  size_t take_slot();
  void give_back(size_t slot) { free_.push_back(slot); }
  // A text of a slot, and how many tokens are to be proposed behind it.
  struct Wish {
    size_t slot;
    std::span<const int32_t> text;
    size_t most;
  };
  // As PagedReader's, for rows of several answers.
  void warm_up(int64_t rows, const std::function<bool(size_t)>& on_graph) {
    reader_.warm_up(rows, on_graph);
  }
  // Of each; fewer where the context ends.
  std::vector<std::vector<int32_t>> propose(std::span<const Wish> wishes);

 private:
  struct Slot {
    std::vector<int32_t> pages, read;
  };
  void read_prompt(Slot& slot, std::span<const int32_t> text);
  size_t that_fit(const Wish& wish) const;

  const Model model_;
  const int64_t context_;
  PagedReader reader_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_;
};

}  // namespace tuff::language
