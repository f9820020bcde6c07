// A program that is killed at any instant, while it starts, works or ends, must leave no process and no file behind.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

namespace fs = std::filesystem;

int work() {
  for (;;) {
    weft::run([] {
      auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
      weft::chan<int> c;
      weft::wait_group all;
      for (int i = 0; i < 20; ++i) {
        all.go([=] { c.send(i); });
        all.go([=] { c.recv(); });
      }
      all.wait();
    });
  }
}

// Returns what is wrong, or null.
const char* killed_after(unsigned microseconds, const fs::path& folder) {
  pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    fs::current_path(folder);
    ::setenv("TMPDIR", folder.c_str(), 1);
    ::execl("/proc/self/exe", "killed", "work", nullptr);
    _exit(99);
  }
  ::setpgid(child, child);
  ::usleep(microseconds);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "it ended by itself";
  if (::kill(-child, 0) == 0 || errno != ESRCH) return "a process is left";
  for (const auto& file : fs::directory_iterator(folder)) {
    bool is_sanitizers = file.path().filename().string().starts_with("tsan.");  // TSan makes one as the program starts
    if (!is_sanitizers) return "a file is left";
    fs::remove(file);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) return work();
  std::string folder = "/tmp/weft-killed-XXXXXX";
  if (!::mkdtemp(folder.data())) return 1;
  const char* wrong = nullptr;
  for (unsigned i = 0; i < 60 && !wrong; ++i) wrong = killed_after(i * 500, folder);
  fs::remove_all(folder);
  if (wrong) std::fprintf(stderr, "%s\n", wrong);
  return wrong ? 1 : 12;
}
