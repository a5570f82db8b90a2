# Third-party libraries, all of them private. Their targets are global because a parent project that adds us as a
# subdirectory links a static tessera, and so these, from its own directory.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TESSERA_PCRE2 REQUIRED IMPORTED_TARGET GLOBAL libpcre2-8)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL OFF)

set(TESSERA_DEPENDENCIES fmt::fmt PkgConfig::TESSERA_PCRE2 Threads::Threads)
# The same, for tessera.pc.
set(TESSERA_PKGCONFIG_REQUIRES "fmt libpcre2-8")
