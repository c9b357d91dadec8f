# What owns and shares memory once more, with the address and undefined-behaviour sanitizers: for
# tests of lifetimes in C++ and Python (label sanitizers; built by the target tuff_sanitized alone).
# The rest of the rooms is linked as it is: their allocations and calls of libc's functions are seen
# all the same, their own accesses are not.
set(TUFF_SANITIZERS -fsanitize=address,undefined -fno-sanitize-recover=all)

set(sources ${TUFF_SANITIZED_SOURCES})
if(NOT TUFF_HAS_VULKAN)
  list(FILTER sources EXCLUDE REGEX "vulkan")
endif()
if(NOT TUFF_HAS_OPENCL)
  list(FILTER sources EXCLUDE REGEX "opencl")
endif()

# vptr asks for the types of classes that the rooms, compiled without it, do not export.
set(TUFF_SANITIZED_OPTIONS ${TUFF_SANITIZERS} -fno-sanitize=vptr -fno-omit-frame-pointer -O1 -g1)
add_library(tuff_sharing_sanitized OBJECT EXCLUDE_FROM_ALL ${sources})
target_compile_definitions(tuff_sharing_sanitized PRIVATE TUFF_POISON_FREED_MEMORY)
target_compile_options(tuff_sharing_sanitized PRIVATE ${TUFF_SANITIZED_OPTIONS})
target_link_libraries(tuff_sharing_sanitized PRIVATE tuff_settings tuff_fmt)
if(TUFF_HAS_OPENCL)
  target_include_directories(tuff_sharing_sanitized SYSTEM PRIVATE ${TUFF_OPENCL_INCLUDE})
endif()
add_custom_target(tuff_sanitized DEPENDS tuff_sharing_sanitized)

# tuff_sanitize(target): the target's sources and those above with the sanitizers.
function(tuff_sanitize target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:tuff_sharing_sanitized>)
  target_compile_options(${target} PRIVATE ${TUFF_SANITIZED_OPTIONS})
  target_link_options(${target} PRIVATE ${TUFF_SANITIZERS})
  add_dependencies(tuff_sanitized ${target})
endfunction()
