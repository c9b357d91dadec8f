// Pages: which pages of a cache hold what, for sequences that share those they begin with alike.
// Called by Batch. Must never know tensors or models.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <vector>

namespace tuff::language {

// What a sequence holds: its pages in order, and what the full ones among them are.
struct HeldPages {
  std::vector<int32_t> pages;
  size_t named = 0;    // so many of them are known by their text
  uint64_t text = 0;   // that these end
  bool changed = false;  // what follows them is not what reading its text would give
};

class Pages {
 public:
  Pages(int64_t count, int64_t positions);
  // Takes the pages of the longest known beginning of a text, its last token apart: the tokens that
  // need not be read. `held` is empty.
  size_t take_known(HeldPages& held, std::span<const int32_t> text);
  // Takes pages for so many positions. False, and nothing is taken, if there are too few.
  bool grow(HeldPages& held, size_t positions);
  // The positions of this text have been read: whoever begins alike finds the pages that are full.
  void name(HeldPages& held, std::span<const int32_t> text);
  // Pages from `first` on are about to be changed: they are nobody else's and not known by their
  // text any more. Others take the place of those that are shared. False, and nothing has changed,
  // if there are too few.
  bool change(HeldPages& held, size_t first);
  // Gives back those behind so many positions.
  void shrink(HeldPages& held, size_t positions);
  // What was named can be found until its page is needed: the one not used for longest goes first.
  void release(HeldPages& held);
  size_t pages_for(size_t positions) const { return (positions + positions_ - 1) / positions_; }
  size_t count() const { return pages_.size(); }
  size_t free() const { return idle_.size(); }

 private:
  // A full page is its tokens behind those of another, which has a number that is never used again.
  struct Text {
    uint64_t before;
    std::vector<int32_t> tokens;
    bool operator<(const Text& o) const {
      return before != o.before ? before < o.before : tokens < o.tokens;
    }
  };
  struct Known {
    int32_t page;
    uint64_t number;
  };
  using Texts = std::map<Text, Known>;
  struct Page {
    int users = 0;
    std::list<int32_t>::iterator idle = {};
    Texts::iterator text = {};
    bool named = false;
  };
  Text text_at(uint64_t before, std::span<const int32_t> text, size_t page) const;
  void take(int32_t page);
  int32_t take_idle();
  void forget(int32_t page);  // what it was known by
  void give_back(int32_t page);

  const size_t positions_;
  std::vector<Page> pages_;
  std::list<int32_t> idle_;  // the next one to be used first
  Texts texts_;
  uint64_t last_ = 0;
};

}  // namespace tuff::language
