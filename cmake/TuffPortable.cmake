# tuff_fmt, which every room links, tuff_portable_program and tuff_portable_module.
# TUFF_PORTABLE: the program tuff needs nothing but glibc. Libraries are found as archives, fmt is
# compiled here (Debian ships no archive of it), the compiler's runtime is linked statically. Device
# libraries are opened at run time anyway. tests/cli/portable_test.py checks the result.
find_package(fmt REQUIRED)
if(TUFF_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_library(tuff_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
  get_target_property(folder fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(tuff_fmt SYSTEM PUBLIC ${folder})
else()
  add_library(tuff_fmt INTERFACE)
  target_link_libraries(tuff_fmt INTERFACE fmt::fmt)
endif()
# As a room's LIBS names it: installed rooms take their consumer's own fmt.
set(TUFF_FMT $<BUILD_INTERFACE:tuff_fmt> $<INSTALL_INTERFACE:fmt::fmt>)

# A module of another program's process: glibc ends threads by libgcc_s's unwinder, and frames of another
# copy of it, as an archive would bring, abort there.
function(tuff_portable_module target)
  if(TUFF_PORTABLE)
    target_link_options(${target} PRIVATE -static-libstdc++ -shared-libgcc -Wl,--as-needed -Wl,--gc-sections)
  endif()
endfunction()

function(tuff_portable_program target)
  if(TUFF_PORTABLE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
  endif()
endfunction()
