# Compiler settings and the function that declares a room of the corridor.
# Rooms of src, in order; those of the program lie in apps/, models beside both. emu is a library of its own,
# aco a program.
set(TUFF_ROOMS base emu aco ir sched kernel render hcq devices engine tensor nn io text language onnx models serve check bench gpu docs cli)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(TUFF_CCACHE ccache)
if(TUFF_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache needs to cache what a precompiled header is used in, and to find again in one
  # checkout what another has compiled: names of files relative to the checkout.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TUFF_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TUFF_CCACHE})
endif()
find_program(TUFF_MOLD mold)
if(TUFF_MOLD)
  # What replays run (gnu::hot) side by side, as GNU ld puts it unasked: few pages, which are cold by then.
  add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix)
endif()

include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# Sources are compiled in lumps, and the graph's node precompiled, by Release builds and those under
# sanitizers (half the time): the others, the preset dev above all, find a #include that a source lacks
# and another of its lump has. Those of standard headers, which all precompile, are found by
# tools/check_includes.py.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  set(TUFF_PCH OFF)
endif()
set(TUFF_LUMPS OFF)
if(TUFF_PCH AND (CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_CXX_FLAGS MATCHES "-fsanitize"))
  set(TUFF_LUMPS ON)
endif()

# GCC 12 warns of overlapping copies inside std::string's operator+ (GCC bug 105651).
set(TUFF_WARNINGS -Wall -Wextra -Wno-missing-field-initializers -Wno-psabi)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND TUFF_WARNINGS -Wno-restrict)
  if(TUFF_PCH)
    # The same of a std::string that comes precompiled; builds without it keep these warnings.
    list(APPEND TUFF_WARNINGS -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
endif()
if(TUFF_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A source is no header, though it is included where several are compiled as one (tuff_lumps).
  list(APPEND TUFF_WARNINGS -Wno-subobject-linkage)
endif()

# Debuggers and sanitizers name sources relative to the checkout, wherever an object was compiled.
add_compile_options($<$<CONFIG:Debug>:-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.>)

add_library(tuff_settings INTERFACE)
target_include_directories(tuff_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/apps>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:include>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tuff_settings INTERFACE $<BUILD_INTERFACE:-fpch-preprocess>)  # for ccache
endif()
target_compile_options(tuff_settings INTERFACE
  $<BUILD_INTERFACE:${TUFF_WARNINGS}>
  $<BUILD_INTERFACE:$<$<BOOL:${TUFF_WERROR}>:-Werror>>)

# Of the headers that most sources include, parsed once for many sources: the standard ones and fmt for
# all rooms, the graph's node besides for those whose sources nearly all include it.
set(TUFF_HEADERS <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <unordered_map>
  <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
set(TUFF_NODE_ROOMS ir sched kernel render engine tensor nn check)
# Headers that are precompiled have guards: `#pragma once` goes by the time of a file, and one that ccache
# has from an earlier checkout would be taken twice.
set(TUFF_NODE_HEADER ${PROJECT_SOURCE_DIR}/src/ir/uop.h)

# tuff_shared_header(<target> <header>...): an object that has the headers precompiled. Who reuses them
# has to be compiled with the same flags.
function(tuff_shared_header target)
  set(source ${PROJECT_BINARY_DIR}/${target}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int ${target}_is_not_empty;\n")
  add_library(${target} OBJECT ${source})
  target_link_libraries(${target} PRIVATE tuff_settings tuff_fmt)
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# What owns and shares memory: compiled once more for tests of lifetimes, whose objects take the
# place of a library's. So none of them may lie in one object with other sources.
set(TUFF_SANITIZED_SOURCES
  src/devices/opencl/interop.cpp
  src/devices/opencl/memory.cpp
  src/devices/vulkan/interop.cpp
  src/devices/vulkan/memory/blocks.cpp
  src/engine/buffer.cpp
  src/engine/uses.cpp
  src/hcq/allocator.cpp
  src/tensor/blob.cpp
  src/tensor/interop_opencl.cpp
  src/tensor/interop_vulkan.cpp
  src/tensor/lent_device.cpp
  src/tensor/realize.cpp
  src/tensor/tensor.cpp)

# tuff_lumps(<target> <number>): at most so many of the target's sources at a time, all of one folder, are
# one for the compiler, which parses and instantiates once what they share. For whoever edits one source
# a lump should take a few seconds; heavy sources stay out of them by SKIP_UNITY_BUILD_INCLUSION.
function(tuff_lumps target number)
  get_target_property(sources ${target} SOURCES)
  set(folders)
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    if(NOT alone AND NOT path IN_LIST TUFF_SANITIZED_SOURCES)
      cmake_path(GET path PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" folder)
      list(APPEND folders ${folder})
      list(APPEND ${folder} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH ${folder} count)
    math(EXPR lumps "(${count} + ${number} - 1) / ${number}")
    set(index 0)
    foreach(source IN LISTS ${folder})
      math(EXPR lump "${index} * ${lumps} / ${count}")
      math(EXPR index "${index} + 1")
      if(count GREATER 1)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${lump})
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUFF_LUMPS} UNITY_BUILD_MODE GROUP)
endfunction()

# tuff_room(<name> [SOURCES <file>...] [DEPS <room>...] [LIBS <target>...] [PRIVATE_LIBS <target>...]
#           [OPTIONS <flag>...] [LUMPS <number>])
# One static library per room, target tuff_<name>; DEPS may only name rooms to its left. OPTIONS are
# flags for its sources alone, LUMPS tuff_lumps' number.
function(tuff_room name)
  cmake_parse_arguments(ROOM "" "LUMPS" "SOURCES;DEPS;LIBS;PRIVATE_LIBS;OPTIONS" ${ARGN})
  list(TRANSFORM ROOM_DEPS PREPEND tuff_)
  if(ROOM_SOURCES)
    add_library(tuff_${name} STATIC ${ROOM_SOURCES})
    target_link_libraries(tuff_${name} PUBLIC tuff_settings ${ROOM_DEPS} ${ROOM_LIBS}
                                       PRIVATE ${ROOM_PRIVATE_LIBS})
    target_compile_options(tuff_${name} PRIVATE ${ROOM_OPTIONS})
    if(NOT ROOM_LUMPS)
      set(ROOM_LUMPS 5)
    endif()
    tuff_lumps(tuff_${name} ${ROOM_LUMPS})
    if(TUFF_PCH AND ROOM_OPTIONS)
      target_precompile_headers(tuff_${name} PRIVATE ${TUFF_HEADERS})
    elseif(TUFF_PCH)
      if(TUFF_LUMPS AND name IN_LIST TUFF_NODE_ROOMS)
        target_precompile_headers(tuff_${name} REUSE_FROM tuff_node_header)
      else()
        target_precompile_headers(tuff_${name} REUSE_FROM tuff_std_header)
      endif()
    endif()
  else()
    add_library(tuff_${name} INTERFACE)
    target_link_libraries(tuff_${name} INTERFACE tuff_settings ${ROOM_DEPS} ${ROOM_LIBS})
  endif()
  set_property(GLOBAL APPEND PROPERTY TUFF_ROOM_TARGETS tuff_${name})
endfunction()

# One precompiled header for all tests. It belongs to a program, because GCC takes it only for sources
# that are compiled with the same flags (-fPIE among them).
function(tuff_test_header)
  set(source ${PROJECT_BINARY_DIR}/test_header.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
  add_executable(tuff_test_header ${source})
  target_link_libraries(tuff_test_header PRIVATE tuff_settings GTest::gtest tuff_fmt)
  target_compile_options(tuff_test_header PRIVATE ${TUFF_TEST_OPTIONS})
  set(headers <algorithm> <cmath> <functional> <map> <memory> <random> <string> <unordered_map> <vector>
    <gtest/gtest.h> <fmt/format.h>)
  if(TUFF_PCH)
    list(APPEND headers ${TUFF_HEADERS} <fstream> <thread>)
  endif()
  if(TUFF_LUMPS)
    list(APPEND headers ${TUFF_NODE_HEADER})
  endif()
  target_precompile_headers(tuff_test_header PRIVATE ${headers})
endfunction()

# Most of a test's time goes by in libraries: its own code need not be optimized for long.
set(TUFF_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
# Addresses that a library gives are looked at in tests too; to look for undefined behaviour in the tests
# themselves takes as long again as to compile them.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*undefined")
  list(APPEND TUFF_TEST_OPTIONS -fno-sanitize=undefined)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND TUFF_TEST_OPTIONS -Wno-array-bounds)  # at -O1 the same bug speaks of bounds
endif()

# tuff_test_library(<name> SOURCES <file>... DEPS <room>... [LIBS <target>...])
# What several tests share, compiled once, as a test is.
function(tuff_test_library name)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM T_DEPS PREPEND tuff_)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${T_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TUFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${T_DEPS} ${T_LIBS} GTest::gtest)
  # The tests' precompiled header is that of a program.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${TUFF_TEST_OPTIONS} ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_precompile_headers(${name} REUSE_FROM tuff_test_header)
  tuff_lumps(${name} 5)
endfunction()

# tuff_tested_elsewhere(<result> <room>...): whether the folder's room and those given are left of
# TUFF_FIRST_TESTED_ROOM.
function(tuff_tested_elsewhere result)
  list(FIND TUFF_ROOMS "${TUFF_FIRST_TESTED_ROOM}" first)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(${result} TRUE PARENT_SCOPE)
  foreach(room IN LISTS ARGN folder)
    list(FIND TUFF_ROOMS ${room} place)
    if(place EQUAL -1 OR NOT place LESS first)
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# tuff_test(<name> SOURCES <file>... DEPS <room>... [LABEL quick|conformance|slow] [UNSANITIZED])
# One GoogleTest executable, one ctest entry with the label. Whatever a test submits is proven free of
# hazards on the way. There is no target where another build runs the test (TUFF_FIRST_TESTED_ROOM), nor,
# if it takes minutes under sanitizers (UNSANITIZED), in a build that ends before the devices.
function(tuff_test name)
  cmake_parse_arguments(T "UNSANITIZED" "LABEL" "SOURCES;DEPS;LIBS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL quick)
  endif()
  tuff_tested_elsewhere(elsewhere ${T_DEPS})
  if((T_UNSANITIZED AND NOT TARGET tuff_devices) OR (elsewhere AND NOT T_UNSANITIZED))
    return()
  endif()
  list(TRANSFORM T_DEPS PREPEND tuff_)
  add_executable(${name} ${T_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TUFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${T_DEPS} ${T_LIBS} GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${TUFF_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM tuff_test_header)
  tuff_lumps(${name} 5)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT 900
    ENVIRONMENT TUFF_CHECK_HAZARDS=1)
endfunction()
