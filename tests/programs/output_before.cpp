// What was printed to a stdout that is a pipe is still in a buffer. It must be written when weft ends the process.
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <weft/weft.hpp>

namespace {

int end_by(std::string_view how) {
  return weft::run([=] {
    std::printf("printed before");
    if (how == "deadlock") weft::chan<int>().recv();
    if (how == "misuse") weft::mutex().unlock();
    if (how == "sigquit") ::raise(SIGQUIT);
    weft::sleep(std::chrono::seconds(10));
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return end_by(argv[1]);
  int wrong = 0;
  for (const char* how : {"deadlock", "misuse", "sigquit"}) {
    FILE* out = ::popen(("exec " + std::string(argv[0]) + " " + how + " 2>/dev/null").c_str(), "r");
    if (!out) return 1;
    char text[100];
    const std::size_t n = std::fread(text, 1, sizeof text, out);
    const int status = ::pclose(out);
    if (std::string_view(text, n) == "printed before" && WIFEXITED(status) && WEXITSTATUS(status) == 2) continue;
    std::fprintf(stderr, "%s: \"%.*s\", status %d\n", how, static_cast<int>(n), text, status);
    ++wrong;
  }
  return wrong;
}
