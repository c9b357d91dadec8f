// Vectors of lanes of other vectors. Called by the parts of the C renderer that access memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "render/c_body.h"

namespace tuff::render {

// A vector of lanes of two others: those of `a` are numbered first.
std::string shuffled(CBody& b, const std::string& first, const std::string& second, DType t,
                     std::span<const int> lanes);
// Vectors of `n` lanes side by side as one.
std::string joined(CBody& b, std::vector<std::string> parts, DType t, int n);
// Vectors of as many lanes as there are vectors: lane l of vector v is lane v of vector l.
std::vector<std::string> transposed(CBody& b, std::vector<std::string> rows, DType t);
// Of the lanes of all vectors in a row, every n-th from the one `first` on; n: so many vectors.
std::string every_nth(CBody& b, const std::vector<std::string>& vectors, DType t, int first,
                      int width);
// n vectors lie interleaved in memory: which of their lanes the v-th vector there has.
std::vector<int> interleaved_lanes(int v, int n, int width);

}  // namespace tuff::render
