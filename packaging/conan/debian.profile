# The libraries of Debian 12 in place of ConanCenter's packages, to try the recipe without a network: scripts/check-conan
[settings]
os=Linux
arch={{ {"aarch64": "armv8"}.get(platform.machine(), platform.machine()) }}
compiler=gcc
compiler.version=12
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release

[platform_requires]
fmt/9.1.0
pcre2/10.42
utf8proc/2.8.0
xxhash/0.8.1

[conf]
tools.gnu:pkg_config=/usr/bin/pkg-config
tools.cmake.cmaketoolchain:generator=Ninja
tools.cmake.cmaketoolchain:extra_variables={"TESSERA_KERNEL_SETS": "native"}
tools.build:jobs=2
