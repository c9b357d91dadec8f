// CudaApi: the table of CUDA's driver functions, from NVIDIA's library as it is found at run time.
// Every call of this device goes through one. Must never link against the library, and holds no
// state but pointers.
#pragma once

#include <string>

#include "devices/cuda/types.h"

namespace tuff::devices::cuda {

struct CudaApi {
#define TUFF_CUDA(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
#include "devices/cuda/functions.def"
  std::string path;  // of the library
};

// TUFF_CUDA_LIBRARY, else libcuda.so.1, and initialized. Throws Unsupported with the remedy where
// there is none, or one that is too old or finds no GPU.
const CudaApi& cuda_api();
// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
std::string error_text(const CudaApi& api, CUresult code);

}  // namespace tuff::devices::cuda
