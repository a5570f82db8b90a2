# cmake --install: the library, its headers, find_package(tessera) and pkg-config; the programs that are built; the
# licence and the documents.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
get_target_property(TESSERA_LIBRARY_TYPE tessera TYPE)

install(TARGETS tessera EXPORT tesseraTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN unstable EXCLUDE)
if(TARGET tessera-c)
  install(TARGETS tessera-c tessera-c-static EXPORT tesseraTargets)
  install(FILES ${PROJECT_SOURCE_DIR}/include/tessera.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
foreach(program ${programs})
  install(TARGETS ${program} COMPONENT programs)
endforeach()
include(TesseraCompletions)
if(TARGET tessera-server AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  configure_file(${PROJECT_SOURCE_DIR}/packaging/systemd/tessera-server.service.in tessera-server.service @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tessera-server.service DESTINATION lib/systemd/system COMPONENT programs)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/systemd/tessera-server.default DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench FILES_MATCHING PATTERN "*.md")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tesseraConfig.cmake.in tesseraConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tesseraConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tesseraConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/TesseraLibraries.cmake DESTINATION ${package_dir})

# The prefix is relative to the .pc file, so that the installed tree can be moved (and --install --prefix is right).
file(RELATIVE_PATH TESSERA_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TESSERA_PC_PREFIX "${TESSERA_PC_PREFIX}")
if(TESSERA_LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
  # A static library does not name the libraries that it needs, so plain `pkg-config --libs` must list them.
  set(TESSERA_PC_REQUIRES "Requires: ${TESSERA_PKGCONFIG_REQUIRES}")
  set(TESSERA_PC_LIBS "-ltessera -pthread")
  if(CMAKE_DL_LIBS)
    string(APPEND TESSERA_PC_LIBS " -l${CMAKE_DL_LIBS}")
  endif()
else()
  set(TESSERA_PC_REQUIRES "")
  set(TESSERA_PC_LIBS "-ltessera")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/tessera.pc.in tessera.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The C library has all of tessera inside, so a program needs nothing else.
if(TARGET tessera-c)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tessera-c.pc.in tessera-c.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tessera-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
