# ccache makes a second build directory (sanitizers, packaging tests) cheap. A launcher that the developer has set stays.
if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE ccache)
  if(TESSERA_CCACHE)
    # Without CCACHE_SLOPPINESS, ccache refuses precompiled headers, which the tests use.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TESSERA_CCACHE})
  endif()
endif()
