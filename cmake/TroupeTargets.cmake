# What every folder's CMakeLists.txt uses: build settings of this project and the functions that make its targets.

# ccache, where it is installed, unless the user or an enclosing project has chosen a launcher.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TROUPE_CCACHE ccache)
  mark_as_advanced(TROUPE_CCACHE)
  if(TROUPE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile-with-ccache")
  endif()
endif()

# Names of sources in programs (__FILE__) are relative to the source root, for the same reason.
if(PROJECT_IS_TOP_LEVEL)
  add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
endif()

set(TROUPE_SANITIZER "" CACHE STRING "Sanitizers to build with: empty, address,undefined or thread")
set_property(CACHE TROUPE_SANITIZER PROPERTY STRINGS "" "address,undefined" "thread")
if(NOT TROUPE_SANITIZER MATCHES "^(|address,undefined|thread)$")
  message(FATAL_ERROR "TROUPE_SANITIZER is '${TROUPE_SANITIZER}': leave it empty or set it to 'address,undefined' or 'thread'")
endif()
if(TROUPE_SANITIZER)
  add_compile_options("-fsanitize=${TROUPE_SANITIZER}")
  add_link_options("-fsanitize=${TROUPE_SANITIZER}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang") # which does not define what g++ does, and sources ask for
    if(TROUPE_SANITIZER MATCHES "address")
      add_compile_definitions(__SANITIZE_ADDRESS__=1)
    else()
      add_compile_definitions(__SANITIZE_THREAD__=1)
    endif()
  endif()
  if(TROUPE_SANITIZER MATCHES "undefined")
    # CAF 0.17 spawns functions without arguments through a reference that is bound to null and never read;
    # AddressSanitizer still catches every access through a null pointer. Without optimisation no size of an object is
    # known. The check of indirect calls, which g++ does not have, doubles the programs.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,object-size)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
endif()
if(TROUPE_SANITIZER STREQUAL "thread" AND NOT DEFINED CAF_ROOT AND NOT DEFINED ENV{CAF_ROOT})
  # A CAF that is not instrumented makes ThreadSanitizer report races that are none.
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/cmake/build-caf-tsan" --where
    OUTPUT_VARIABLE TROUPE_CAF_TSAN OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT EXISTS "${TROUPE_CAF_TSAN}/complete")
    message(FATAL_ERROR "TROUPE_SANITIZER=thread needs a CAF that is built with it: run cmake/build-caf-tsan once, "
      "which puts it into ${TROUPE_CAF_TSAN}, or set CAF_ROOT to one")
  endif()
  set(CAF_ROOT "${TROUPE_CAF_TSAN}")
endif()

# Public headers are included as <troupe/runtime/...> in the tree and after installation alike: the build tree has a
# link include/troupe to the source root. <troupe/troupe.hpp>, the one header of job authors, forwards to
# runtime/api; it stands in a directory of its own since nothing may be written through that link.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
if(NOT EXISTS "${PROJECT_BINARY_DIR}/include/troupe")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/include/troupe" SYMBOLIC)
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/troupe.hpp.in" "${PROJECT_BINARY_DIR}/include-api/troupe/troupe.hpp" @ONLY)

# The fastest linker that is there: mold takes a quarter of gold's time, and gold half of that of binutils' own. The
# build of the tests links some forty programs.
if(PROJECT_IS_TOP_LEVEL)
  include(CheckLinkerFlag)
  foreach(linker mold gold)
    check_linker_flag(CXX -fuse-ld=${linker} TROUPE_LINKS_WITH_${linker})
    if(TROUPE_LINKS_WITH_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

# Flags of every target of this project.
function(troupe_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>" "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include-api>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<CONFIG:Debug>>>:-Wno-restrict>)
  if(TROUPE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# troupe_add_library(NAME): a library of this project; sources are added by target_sources in subfolders. The presets
# compile several small sources at a time, which takes a third of the time.
function(troupe_add_library target)
  add_library(${target} STATIC)
  troupe_target_defaults(${target})
endfunction()

# troupe_add_test(NAME SOURCES... [LIBRARIES ...] [LABELS ...] [SANITIZERS address undefined thread] [COST seconds]):
# one GoogleTest program, which is one CTest entry. SANITIZERS names those that may find something in it: it gets the
# labels address and thread, and belongs to the targets troupe_address_tests and troupe_thread_tests. `undefined`
# compiles the test itself with UndefinedBehaviorSanitizer, too, which is for tests of templates: the libraries always
# have it, and it takes a quarter of the compiler's time. COST is about what the test takes; those that take longest
# start first. How long a test may take is for tests/run to say, since that depends on the machine.
foreach(sanitizer address thread)
  if(TROUPE_BUILD_TESTS)
    add_custom_target(troupe_${sanitizer}_tests)
  endif()
endforeach()
function(troupe_add_test name)
  cmake_parse_arguments(arg "" "COST" "SOURCES;LIBRARIES;LABELS;SANITIZERS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  troupe_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  if(TROUPE_SANITIZER MATCHES "undefined" AND NOT "undefined" IN_LIST arg_SANITIZERS)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  list(REMOVE_ITEM arg_SANITIZERS undefined)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS};${arg_SANITIZERS}")
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  foreach(sanitizer IN LISTS arg_SANITIZERS)
    add_dependencies(troupe_${sanitizer}_tests ${name})
  endforeach()
endfunction()

# troupe_add_slow_test(NAME PROGRAM FILTER): tests of a program that it leaves out by itself since they take
# minutes, or gigabytes; run by `ctest -C slow`, one after the other.
function(troupe_add_slow_test name program filter)
  add_test(NAME ${name} COMMAND ${program} --gtest_filter=${filter} CONFIGURATIONS slow)
  set_tests_properties(${name} PROPERTIES
    LABELS slow ENVIRONMENT TROUPE_SLOW_TESTS=1 RUN_SERIAL ON FAIL_REGULAR_EXPRESSION "SKIPPED")
endfunction()
