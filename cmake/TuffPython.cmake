# TUFF_PYTHON: whether the Python module is built. AUTO builds it where a Python has its headers and
# pybind11 is there, and says what is missing elsewhere; ON fails then. TUFF_PYTHON_EXECUTABLE names
# the Python; without it the first one with headers is taken, one with NumPy before others, since the
# tests want it. Sets TUFF_PYTHON_FOUND, TUFF_PYTHON_INCLUDE, TUFF_PYTHON_SUFFIX and TUFF_PYTHON_SITE.
set(TUFF_PYTHON AUTO CACHE STRING "Build the Python module: AUTO, ON or OFF")
set_property(CACHE TUFF_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(TUFF_PYTHON_EXECUTABLE "" CACHE FILEPATH "The Python that the module is built for")

# headers, suffix of modules, folder of packages below a prefix, 1 if NumPy is there.
set(TUFF_PYTHON_FACTS [[
import importlib.util, os, sys, sysconfig
include = sysconfig.get_path("include")
assert sys.version_info >= (3, 8) and os.path.exists(os.path.join(include, "Python.h"))
site = "lib/python%d.%d/site-packages" % sys.version_info[:2]
numpy = int(importlib.util.find_spec("numpy") is not None)
print(include, sysconfig.get_config_var("EXT_SUFFIX"), site, numpy, sep=";")
]])

function(tuff_find_python)
  set(candidates ${TUFF_PYTHON_EXECUTABLE})
  if(NOT candidates)
    find_program(first python3)
    set(candidates ${first} /usr/bin/python3)
  endif()
  set(best -1)
  foreach(python IN LISTS candidates)
    execute_process(COMMAND ${python} -c "${TUFF_PYTHON_FACTS}" OUTPUT_VARIABLE facts
                    RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      continue()
    endif()
    list(GET facts 3 numpy)
    if(numpy GREATER best)
      set(best ${numpy})
      list(GET facts 0 include)
      list(GET facts 1 suffix)
      list(GET facts 2 site)
      set(TUFF_PYTHON_PROGRAM ${python} PARENT_SCOPE)
      set(TUFF_PYTHON_INCLUDE ${include} PARENT_SCOPE)
      set(TUFF_PYTHON_SUFFIX ${suffix} PARENT_SCOPE)
      set(TUFF_PYTHON_SITE ${site} PARENT_SCOPE)
    endif()
  endforeach()
  unset(first CACHE)
endfunction()

set(TUFF_PYTHON_FOUND FALSE)
if(TUFF_PYTHON)  # AUTO counts as true
  tuff_find_python()
  find_path(TUFF_PYBIND11_INCLUDE pybind11/pybind11.h)
  if(NOT TUFF_PYTHON_INCLUDE)
    set(missing "no Python 3.8 or later with its headers (Debian: python3-dev)")
  elseif(NOT TUFF_PYBIND11_INCLUDE)
    set(missing "no pybind11 (Debian: pybind11-dev)")
  else()
    set(TUFF_PYTHON_FOUND TRUE)
  endif()
  if(NOT TUFF_PYTHON_FOUND)
    if(TUFF_PYTHON STREQUAL "AUTO")
      message(STATUS "The Python module is left out: ${missing}")
    else()
      message(FATAL_ERROR "TUFF_PYTHON=${TUFF_PYTHON}: ${missing}")
    endif()
  endif()
endif()
