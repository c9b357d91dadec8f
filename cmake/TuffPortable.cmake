# TUFF_PORTABLE: programs that need nothing but glibc. Libraries are found as archives, fmt is compiled
# in from its headers (Debian ships no archive of it), GCC's runtime is linked statically. Device
# libraries are opened at run time anyway. tests/cli/portable_test.py checks the result.
if(TUFF_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
endif()

# Turns the imported shared library fmt::fmt into its headers.
function(tuff_portable_fmt)
  if(TUFF_PORTABLE)
    set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  endif()
endfunction()
