# Third-party libraries, all of them private. Their targets are global because a parent project that adds us as a
# subdirectory links a static tessera, and so these, from its own directory.
option(TESSERA_PORTABLE_PROGRAMS "Programs that need nothing but the C library, for machines without these packages" OFF)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
if(TESSERA_PORTABLE_PROGRAMS)
  # Debian has no archive of fmt: its headers do, and --as-needed leaves the shared library out.
  add_compile_definitions(FMT_HEADER_ONLY)
  add_link_options(-static-libstdc++ -static-libgcc LINKER:--as-needed)
  set(suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
include(TesseraLibraries)
tessera_libraries()
foreach(name pcre2 utf8proc)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "tessera needs ${name}: install libpcre2-dev and libutf8proc-dev (scripts/packages.txt), or have CMake or pkg-config find them")
  endif()
endforeach()
if(TESSERA_PORTABLE_PROGRAMS)
  set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
endif()
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL OFF)

set(TESSERA_DEPENDENCIES fmt::fmt tessera::pcre2 tessera::utf8proc Threads::Threads ${CMAKE_DL_LIBS})
# The same, for tessera.pc.
set(TESSERA_PKGCONFIG_REQUIRES "fmt libpcre2-8 libutf8proc")
