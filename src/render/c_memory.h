// CMemory: loads and stores of the C renderer, one instance at a time: a scalar, or a vector whose
// lanes are neighbours, repeat elements, walk memory with a stride or lie anywhere, all or some of
// them behind gates. Must never know which op an access is of.
#pragma once

#include <string>

#include "render/c_body.h"

namespace tuff::render {

// Vectors that are shuffled into one, at most.
constexpr int64_t kMostInterleaved = 4;

class CMemory {
 public:
  explicit CMemory(CBody& b) : b_(b) {}

  CAccess access(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  std::string pointer(const CAccess& a) const;
  std::string element(const CAccess& a, int lane) const;
  std::string vector_at(const CAccess& a, int width) const;  // as it lies there
  // What the compiler cannot see where many operations lie between an index and its factors: how
  // neighbours that the op loads are aligned, as far as divisors prove it and loads are wide.
  void claim_alignment(size_t i, const ir::Node& index);

  CValue load(const CAccess& a);
  CValue load_contiguous(const CAccess& a);
  CValue load_strided(const CAccess& a);
  bool is_strided(const CAccess& a) const;  // of vectors that are masked and shuffled
  void store(const CAccess& a, const CValue& v);
  // Of a dialect without SIMD lanes: an atomic operation on one element, or on the word of a float.
  void combine(const CAccess& a, const CValue& v, ir::Op op, DType t);
  bool streams() const { return streams_; }  // whether some stores went past the caches

 private:
  CValue load_repeated(const CAccess& a);
  bool is_gathered(const CAccess& a) const;
  CValue load_gathered(const CAccess& a);
  void store_strided(const CAccess& a, const CValue& v);
  std::string every_nth_of_vector(int v, int n, const CAccess& a);
  std::string pointer_name(const ir::Node& index) const;
  std::string masked(const char* verb, const CAccess& a) const;
  std::string or_zero(const CAccess& a, const std::string& text) const;

  CBody& b_;
  bool streams_ = false;
};

}  // namespace tuff::render
