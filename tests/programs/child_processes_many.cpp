// Children are started in every way, all at once, by goroutines and by a thread that a goroutine started, while others
// allocate. Each child checks what it inherited.
#include "tests/support/slice.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

using weft::test::slice_of_thread;

extern char** environ;

namespace {

int complain(const char* what, long is, long should_be) {
  std::fprintf(stderr, "a child's %s: %ld, not %ld\n", what, is, should_be);
  return 1;
}

// What a child does. Returns 7 if all is right.
int child(std::uint64_t usual_slice) {
  if (usual_slice != 0 && slice_of_thread() != usual_slice)
    return complain("turn", static_cast<long>(slice_of_thread()), static_cast<long>(usual_slice));
  DIR* d = ::opendir("/proc/self/fd");
  while (const dirent* e = ::readdir(d)) {
    int fd = std::atoi(e->d_name);
    // Only weft's own descriptors matter: popen has pipes, and the caller of this program may have left others open.
    char target[64] = {};
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target, sizeof target - 1) > 0 && std::string(target).starts_with("anon_inode:"))
      return complain("descriptor of the runtime's", fd, -1);
  }
  ::closedir(d);
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int s = 1; s < 32; ++s) {
    if (::sigismember(&mask, s)) return complain("signal mask", s, 0);
  }
  if (std::signal(SIGPIPE, SIG_DFL) == SIG_IGN) return complain("ignored signal", SIGPIPE, 0);
  return 7;
}

struct command {
  std::string self, turn;
  std::string line() const { return "exec " + self + " " + turn; }
};

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status); }

int wait_for(pid_t pid) {
  int status = 0;
  weft::blocking([&] { ::waitpid(pid, &status, 0); });
  return code_of(status);
}

int by_fork(const command& c, bool v) {
  char* argv[] = {const_cast<char*>(c.self.c_str()), const_cast<char*>(c.turn.c_str()), nullptr};
  pid_t pid = v ? ::vfork() : ::fork();
  if (pid == 0) {
    ::execv(argv[0], argv);
    _exit(99);
  }
  return wait_for(pid);
}

int by_spawn(const command& c) {
  char* argv[] = {const_cast<char*>(c.self.c_str()), const_cast<char*>(c.turn.c_str()), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ) != 0) return 98;
  return wait_for(pid);
}

int by_system(const command& c) {
  return weft::blocking([&] { return code_of(std::system(c.line().c_str())); });
}

int by_popen(const command& c) {
  std::FILE* p = ::popen(c.line().c_str(), "r");
  return p ? weft::blocking([&] { return code_of(::pclose(p)); }) : 97;
}

int start(int way, const command& c) {
  switch (way) {
    case 0: return by_fork(c, false);
    case 1: return by_fork(c, true);
    case 2: return by_spawn(c);
    case 3: return by_system(c);
    default: return by_popen(c);
  }
}
constexpr int ways = 5;

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return child(std::strtoull(argv[1], nullptr, 10));
  command c;
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
  c.self = self;
  // At a nice value below zero, children have the time slices of weft's threads (runtime/time_slice.cpp).
  const std::uint64_t usual = ::getpriority(PRIO_PROCESS, 0) < 0 ? 0 : slice_of_thread();
  c.turn = std::to_string(usual);

  return weft::run(
      [&] {
        std::atomic<bool> stop = false;
        weft::task_group others;
        for (int i = 0; i < 8; ++i) {
          others.go([&] {
            while (!stop) {
              auto some = std::make_unique<std::string>(1000, 'x');  // so that children start while malloc is locked
              weft::yield();
            }
          });
        }
        std::atomic<int> bad = 0;
        auto look = [&](int way, const char* from) {
          int code = start(way, c);
          if (code != 7) {
            std::fprintf(stderr, "way %d from %s: %d\n", way, from, code);
            ++bad;
          }
        };
        weft::wait_group done;
        for (int way = 0; way < ways; ++way) {
          for (int i = 0; i < 3; ++i) done.go([&, way] { look(way, "a goroutine"); });
        }
        done.go([&] {
          std::thread t([&] {
            if (usual != 0 && slice_of_thread() != usual)
              ++bad, complain("thread's turn", static_cast<long>(slice_of_thread()), static_cast<long>(usual));
            for (int way = 0; way < ways; ++way) look(way, "a goroutine's thread");
          });
          weft::blocking([&] { t.join(); });
        });
        done.wait();
        stop = true;
        others.wait();
        return bad == 0 ? 12 : 1;
      },
      {.procs = 4});
}
