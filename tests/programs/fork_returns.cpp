// A child of fork() that neither execs nor ends, but returns from main: it must say so, and must not stay forever.
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  pid_t parent = ::getpid();
  weft::run([] {
    pid_t child = ::fork();
    if (child == 0) return;
    int status = 0;
    weft::blocking([&] { ::waitpid(child, &status, 0); });
    std::fprintf(stderr, "the child ended with %d\n", WEXITSTATUS(status));
  });
  return ::getpid() == parent ? 0 : 1;
}
