# The public names of the libraries, in this build and after `cmake --install` alike, and what is installed.

include(CMakePackageConfigHelpers)

# Library targets and the names under which others link them. troupe_launcher has everything that troupe::run needs.
set(_troupe_public
  troupe_runtime=runtime troupe_messages=messages troupe_actors=actors troupe_launcher=troupe troupe_testing=testing
  troupe_testing_main=testing_main)
foreach(_pair IN LISTS _troupe_public)
  string(REPLACE "=" ";" _pair "${_pair}")
  list(GET _pair 0 _target)
  list(GET _pair 1 _name)
  if(TARGET ${_target})
    add_library(Troupe::${_name} ALIAS ${_target})
    set_target_properties(${_target} PROPERTIES EXPORT_NAME ${_name})
    install(TARGETS ${_target} EXPORT TroupeTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endforeach()
if(TARGET troupe_testing_main)
  install(FILES "${PROJECT_SOURCE_DIR}/tests/support/testing_main.cpp" DESTINATION "${CMAKE_INSTALL_DATADIR}/troupe")
endif()
if(TARGET troupe)
  install(TARGETS troupe RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

foreach(_folder runtime messages actors launcher tests/support)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${_folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${_folder}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/troupe/${_folder}"
      FILES_MATCHING PATTERN "*.hpp"
      # The codec's own tools include Protobuf, which nobody else is to see.
      # What a driver knows is its own.
      REGEX "/(messages/wire[^/]*|actors/driver_state)\\.hpp$" EXCLUDE)
  endif()
endforeach()
install(FILES "${PROJECT_BINARY_DIR}/include-api/troupe/troupe.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/troupe")
if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/configs")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION "${CMAKE_INSTALL_DATADIR}/troupe"
    FILES_MATCHING PATTERN "*.yaml" PATTERN "*.txt")
endif()

# Messages name pages, and pages name examples and each other.
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${PROJECT_SOURCE_DIR}/LICENSE"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/troupe")
foreach(_folder docs examples)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${_folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${_folder}" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/troupe")
  endif()
endforeach()

set(_troupe_cmake "${CMAKE_INSTALL_LIBDIR}/cmake/Troupe")
list(TRANSFORM TROUPE_DEPENDENCIES REPLACE "(.+)" "find_dependency(\\1)" OUTPUT_VARIABLE TROUPE_FIND_DEPENDENCIES)
list(JOIN TROUPE_FIND_DEPENDENCIES "\n" TROUPE_FIND_DEPENDENCIES)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/TroupeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TroupeConfig.cmake" INSTALL_DESTINATION "${_troupe_cmake}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TroupeConfig.cmake" "${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake" DESTINATION "${_troupe_cmake}")
install(EXPORT TroupeTargets NAMESPACE Troupe:: DESTINATION "${_troupe_cmake}")
