# The Homebrew formula. It has not been run: there is no released archive yet, so it builds the newest commit
# (brew install --HEAD ./packaging/homebrew/tessera.rb, with HOMEBREW_TESSERA_REPOSITORY set to the address of a clone).
class Tessera < Formula
  desc "LLM inference library for C++20 and C, with a server and tools"
  homepage ENV.fetch("HOMEBREW_TESSERA_REPOSITORY", "https://tessera.invalid")
  license "MIT"
  version "0.1.0"
  head ENV.fetch("HOMEBREW_TESSERA_REPOSITORY", "https://tessera.invalid"), using: :git, branch: "main"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "help2man" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "xxhash" => :build
  depends_on "fmt"
  depends_on "openssl@3"
  depends_on "pcre2"
  depends_on "utf8proc"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DBUILD_SHARED_LIBS=ON", "-DTESSERA_CUDA=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--build", "build", "--target", "man"
    system "cmake", "--install", "build"
  end

  service do
    run [opt_bin/"tessera-server", "--host", "127.0.0.1", "--port", "8080"]
    keep_alive true
    log_path var/"log/tessera-server.log"
    error_log_path var/"log/tessera-server.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tessera-inspect --version")
    assert_match "Once", shell_output("#{bin}/tessera-generate -p Once -n 8 --seed 1")
    (testpath/"test.c").write <<~C
      #include <stdio.h>
      #include <tessera.h>
      int main(void) { return puts(tessera_version()) < 0; }
    C
    system ENV.cc, "test.c", "-I#{include}", "-L#{lib}", "-ltessera-c", "-o", "test"
    assert_equal version.to_s, shell_output("./test").strip
  end
end
