// What nobody may do, each case in a process of its own: the process must end at once, and say what was done to what,
// and by whom.
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <weft/weft.hpp>

extern char** environ;

namespace {

template <class Scope>
void ends_elsewhere() {
  std::optional<Scope> scope(std::in_place);
  weft::spawn([&] { scope.reset(); }).join();
}

template <class Scope>
void ends_on_a_thread() {
  auto scope = std::make_unique<Scope>();
  std::thread([&] { scope.reset(); }).join();
}

struct misuse {
  std::string_view name;
  void (*commit)();
};

constexpr misuse all[] = {
    {"latch below zero",
     [] {
       weft::latch l(1);
       l.count_down(2);
     }},
    {"latch upwards",
     [] {
       weft::latch l(1);
       l.count_down(-1);
     }},
    {"negative latch", [] { weft::latch l(-1); }},
    {"barrier with one too many",
     [] {
       weft::barrier b(2);
       static_cast<void>(b.arrive(3));
     }},
    {"negative semaphore", [] { weft::semaphore s(-5); }},
    {"acquire of less than nothing", [] { weft::semaphore(3).acquire(-2); }},
    {"release of less than nothing", [] { weft::semaphore(3).release(-2); }},
    {"release of too many", [] { weft::semaphore(3).release(weft::semaphore::max()); }},
    {"shared_mutex unlocked twice",
     [] {
       weft::shared_mutex m;
       m.lock();
       m.unlock();
       m.unlock();
     }},
    {"unlock by a reader",
     [] {
       weft::shared_mutex m;
       m.lock_shared();
       m.unlock();
     }},
    {"unlock_shared by a writer",
     [] {
       weft::shared_mutex m;
       m.lock();
       m.unlock_shared();
     }},
    {"wait without the lock",
     [] {
       weft::condition_variable c;
       weft::mutex m;
       std::unique_lock lock(m, std::defer_lock);
       c.wait(lock);
     }},
    {"pin that ends elsewhere", ends_elsewhere<weft::pin>},
    {"pin that ends on a thread", ends_on_a_thread<weft::pin>},
    {"no_preemption that ends elsewhere", ends_elsewhere<weft::no_preemption>},
    {"no_preemption that ends on a thread", ends_on_a_thread<weft::no_preemption>},
};

int commit(std::string_view name) {
  for (const misuse& m : all) {
    if (m.name == name) {
      weft::run(m.commit);
      return 0;
    }
  }
  return 99;
}

int outcome(std::string_view name) {
  char program[] = "misuse";
  std::string argument(name);
  char* const arguments[] = {program, argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 98;
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return commit(argv[1]);
  for (const misuse& m : all) {
    std::fprintf(stderr, "-- %s\n", m.name.data());
    std::fprintf(stderr, "-- exit %d\n", outcome(m.name));
  }
}
