# Finds the C++ Actor Framework: by its own config package where it has one, else by header and libraries (Debian's
# libcaf-dev ships neither a config package nor a pkg-config file). Gives CAF::core and CAF::io, and CAF_VERSION.
#
# CAF_ROOT, a CMake or environment variable, may name another installation, for example one that was built with a
# sanitizer. Then only that one is looked at: a mixture of two would link and go wrong at run time.

if(NOT CAF_ROOT AND DEFINED ENV{CAF_ROOT})
  set(CAF_ROOT "$ENV{CAF_ROOT}")
endif()
if(CAF_ROOT)
  set(_caf_where HINTS "${CAF_ROOT}" NO_DEFAULT_PATH)
else()
  set(_caf_where)
endif()

find_package(CAF CONFIG QUIET ${_caf_where})
if(NOT TARGET CAF::core)
  find_path(CAF_INCLUDE_DIR caf/config.hpp ${_caf_where} PATH_SUFFIXES include)
  find_library(CAF_core_LIBRARY caf_core ${_caf_where} PATH_SUFFIXES lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  find_library(CAF_io_LIBRARY caf_io ${_caf_where} PATH_SUFFIXES lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  mark_as_advanced(CAF_INCLUDE_DIR CAF_core_LIBRARY CAF_io_LIBRARY)
  if(CAF_INCLUDE_DIR)
    # "1706" stands for 0.17.6.
    file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "#define CAF_VERSION [0-9]+")
    string(REGEX REPLACE ".*CAF_VERSION ([0-9]+).*" "\\1" _caf_number "${_caf_line}")
    math(EXPR _caf_major "${_caf_number} / 10000")
    math(EXPR _caf_minor "(${_caf_number} / 100) % 100")
    math(EXPR _caf_patch "${_caf_number} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(CAF
    REQUIRED_VARS CAF_core_LIBRARY CAF_io_LIBRARY CAF_INCLUDE_DIR
    VERSION_VAR CAF_VERSION
    REASON_FAILURE_MESSAGE "install Debian's libcaf-dev, or set CAF_ROOT")
  if(CAF_FOUND)
    find_package(Threads REQUIRED)
    add_library(CAF::core UNKNOWN IMPORTED)
    set_target_properties(CAF::core PROPERTIES
      IMPORTED_LOCATION "${CAF_core_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES Threads::Threads)
    add_library(CAF::io UNKNOWN IMPORTED)
    set_target_properties(CAF::io PROPERTIES
      IMPORTED_LOCATION "${CAF_io_LIBRARY}"
      INTERFACE_LINK_LIBRARIES CAF::core)
  endif()
endif()
if(CAF_VERSION AND (CAF_VERSION VERSION_LESS 0.17 OR (CAF_VERSION VERSION_GREATER_EQUAL 0.18 AND CAF_VERSION VERSION_LESS 1)))
  set(CAF_FOUND FALSE)
  set(CAF_NOT_FOUND_MESSAGE
    "Troupe needs the C++ Actor Framework 0.17, or 1 and newer; this is ${CAF_VERSION}: install Debian's libcaf-dev, or set CAF_ROOT to one of these")
  if(CAF_FIND_REQUIRED)
    message(FATAL_ERROR "${CAF_NOT_FOUND_MESSAGE}")
  endif()
endif()
unset(_caf_where)
