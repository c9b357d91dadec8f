# Compiler settings and the function that declares a room of the corridor.
# Rooms of src, in order; those of the program lie in apps/, models beside both. emu is a library of its own.
set(TUFF_ROOMS base emu ir sched kernel render hcq devices engine tensor nn io models check bench docs cli)

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
  add_link_options(-fuse-ld=mold)
endif()

include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# GCC 12 warns of overlapping copies inside std::string's operator+ (GCC bug 105651).
set(TUFF_WARNINGS -Wall -Wextra -Wno-missing-field-initializers -Wno-psabi)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND TUFF_WARNINGS -Wno-restrict)
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

# tuff_room(<name> [SOURCES <file>...] [DEPS <room>...] [LIBS <target>...] [PRIVATE_LIBS <target>...])
# One static library per room, target tuff_<name>; DEPS may only name rooms to its left.
function(tuff_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPS;LIBS;PRIVATE_LIBS" ${ARGN})
  list(TRANSFORM ROOM_DEPS PREPEND tuff_)
  if(ROOM_SOURCES)
    add_library(tuff_${name} STATIC ${ROOM_SOURCES})
    target_link_libraries(tuff_${name} PUBLIC tuff_settings ${ROOM_DEPS} ${ROOM_LIBS}
                                       PRIVATE ${ROOM_PRIVATE_LIBS})
    if(TUFF_PCH AND CMAKE_BUILD_TYPE STREQUAL "Release")
      target_precompile_headers(tuff_${name} PRIVATE
        <algorithm> <array> <memory> <string> <unordered_map> <vector> <fmt/format.h>)
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
  target_precompile_headers(tuff_test_header PRIVATE <algorithm> <cmath> <functional> <map> <memory>
    <random> <string> <unordered_map> <vector> <gtest/gtest.h> <fmt/format.h>)
endfunction()

# Most of a test's time goes by in libraries: its own code need not be optimized for long.
set(TUFF_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND TUFF_TEST_OPTIONS -Wno-array-bounds)  # at -O1 the same bug speaks of bounds
endif()

# tuff_test(<name> SOURCES <file>... DEPS <room>... [LABEL quick|conformance|slow])
# One GoogleTest executable; every TEST in it becomes one ctest entry with the label. Whatever a test
# submits is proven free of hazards on the way.
function(tuff_test name)
  cmake_parse_arguments(T "" "LABEL" "SOURCES;DEPS;LIBS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL quick)
  endif()
  list(TRANSFORM T_DEPS PREPEND tuff_)
  add_executable(${name} ${T_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TUFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${T_DEPS} ${T_LIBS} GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${TUFF_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM tuff_test_header)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT 900
    ENVIRONMENT TUFF_CHECK_HAZARDS=1)
endfunction()
