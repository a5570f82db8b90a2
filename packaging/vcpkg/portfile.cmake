# As an overlay port the sources are the tree that the port stands in. In a registry, put this in place of the next line, with the
# repository, the tag and the sum of the archive: vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO ... REF v${VERSION} SHA512 ...)
get_filename_component(SOURCE_PATH ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)

vcpkg_find_acquire_program(PKGCONFIG)
set(cuda OFF)
if("cuda" IN_LIST FEATURES)
  set(cuda ON)
endif()

vcpkg_cmake_configure(
  SOURCE_PATH ${SOURCE_PATH}
  OPTIONS
    -DTESSERA_CUDA=${cuda}
    -DTESSERA_BUILD_TOOLS=OFF
    -DTESSERA_BUILD_EXAMPLES=OFF
    -DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tessera)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share ${CURRENT_PACKAGES_DIR}/share/doc)
file(INSTALL ${CMAKE_CURRENT_LIST_DIR}/usage DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT})
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
