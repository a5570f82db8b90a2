"""The Conan 2 recipe of tessera, of the sources that it stands in: conan create packaging/conan."""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.4"


class TesseraConan(ConanFile):
    name = "tessera"
    version = "0.1.0"
    description = "An LLM inference library for C++20, and its C library"
    license = "MIT"
    topics = ("llm", "inference", "gguf", "machine-learning")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "cuda": [True, False]}
    default_options = {"shared": False, "fPIC": True, "cuda": False}
    implements = ["auto_shared_fpic"]
    languages = "C++"

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "README.md", "capi/*", "cmake/*", "cuda/*", "include/*", "src/*", "docs/*", "bench/results/*", "packaging/systemd/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("fmt/[>=9.1 <13]")
        self.requires("pcre2/[>=10.40 <11]")
        self.requires("utf8proc/[>=2.8 <3]")
        self.requires("xxhash/[>=0.8.1 <0.9]")

    def build_requirements(self):
        if not self.conf.get("tools.gnu:pkg_config", check_type=str):
            self.tool_requires("pkgconf/[>=1.8 <3]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"tessera has kernels for x86_64 and armv8, not for {self.settings.arch}")

    def _packages(self):
        """The requirements that are Conan's packages, by name: without those of [platform_requires], which the system has."""
        return {dependency.ref.name: dependency for dependency in self.dependencies.direct_host.values()}

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TESSERA_CUDA"] = "ON" if self.options.cuda else "OFF"
        for part in ("TOOLS", "EXAMPLES", "TESTS", "BENCH"):
            toolchain.cache_variables[f"TESSERA_BUILD_{part}"] = False
        xxhash = self._packages().get("xxhash")
        if xxhash is not None:
            # A header that the library includes, of a package that its build does not look for.
            toolchain.cache_variables["CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES"] = ";".join(xxhash.cpp_info.aggregated_components().includedirs)
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan writes these for the packages that it knows.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "tessera")
        self.cpp_info.set_property("cmake_target_name", "tessera::all")  # else it would be the C++ library's name

        cpp = self.cpp_info.components["tessera"]
        cpp.set_property("cmake_target_name", "tessera::tessera")
        cpp.set_property("pkg_config_name", "tessera")
        cpp.libs = ["tessera"]
        components = {"fmt": "fmt", "pcre2": "pcre2-8", "utf8proc": "utf8proc", "xxhash": "xxhash"}
        packages = self._packages()
        cpp.requires = [f"{name}::{component}" for name, component in components.items() if name in packages]
        if self.settings.os == "Linux":
            cpp.system_libs = ["pthread", "dl", "m"]
        if not self.options.shared:  # of the system's libraries, a static tessera needs all but the header
            cpp.system_libs += [library for name, library in components.items() if name not in packages and name != "xxhash"]

        # The shared C library has all of tessera inside; the static one is the functions of the C ABI over the C++ library.
        c = self.cpp_info.components["tessera-c"]
        c.set_property("cmake_target_name", "tessera::c")
        c.set_property("pkg_config_name", "tessera-c")
        if self.options.shared:
            c.libs = ["tessera-c"]
        else:
            c.libs = ["tessera-c-static"]
            c.defines = ["TESSERA_C_STATIC"]
            c.requires = ["tessera"]
