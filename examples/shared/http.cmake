# tessera_http: the library of connections, keys and errors that programs behind HTTP share. Boost.Beast reads requests, OpenSSL makes TLS.
# The target does not exist if Boost or OpenSSL is missing.
find_package(Boost 1.74 QUIET)
find_package(OpenSSL QUIET)
if(NOT Boost_FOUND OR NOT OPENSSL_FOUND OR TESSERA_PORTABLE_PROGRAMS OR TARGET tessera_http)
  return()
endif()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
foreach(folder ${TESSERA_SYSTEM_FOLDERS})
  file(GLOB of_system CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/system/${folder}/*.cpp)
  list(APPEND sources ${of_system})
endforeach()
add_library(tessera_http STATIC ${sources} ${PROJECT_SOURCE_DIR}/tools/shared/sizes.cpp)
tessera_program_optimisation(tessera_http)
target_include_directories(tessera_http PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(tessera_http PUBLIC tessera_program Boost::headers OpenSSL::SSL OpenSSL::Crypto)
if(WIN32)  # sockets, and the system's libraries that a static OpenSSL needs
  target_link_libraries(tessera_http PUBLIC crypt32 ws2_32 mswsock)
endif()
target_compile_definitions(tessera_http PUBLIC BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_USE_STD_STRING_VIEW)
