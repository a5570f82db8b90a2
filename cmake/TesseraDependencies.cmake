# Third-party libraries, all of them private. Their targets are global because a parent project that adds us as a
# subdirectory links a static tessera, and so these, from its own directory.
option(TESSERA_PORTABLE_PROGRAMS "Programs that need nothing but the C library, for machines without these packages" OFF)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
if(TESSERA_PORTABLE_PROGRAMS)
  # Debian has no archive of fmt: its headers do, and --as-needed leaves the shared library out.
  add_compile_definitions(FMT_HEADER_ONLY)
  add_link_options(-static-libstdc++ -static-libgcc LINKER:--as-needed)
  set(suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
pkg_check_modules(TESSERA_PCRE2 REQUIRED IMPORTED_TARGET GLOBAL libpcre2-8)
pkg_check_modules(TESSERA_UTF8PROC REQUIRED IMPORTED_TARGET GLOBAL libutf8proc)
if(TESSERA_PORTABLE_PROGRAMS)
  set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
endif()
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL OFF)

set(TESSERA_DEPENDENCIES fmt::fmt PkgConfig::TESSERA_PCRE2 PkgConfig::TESSERA_UTF8PROC Threads::Threads ${CMAKE_DL_LIBS})
# The same, for tessera.pc.
set(TESSERA_PKGCONFIG_REQUIRES "fmt libpcre2-8 libutf8proc")
