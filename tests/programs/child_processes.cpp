// Goroutines start children by system, by popen, and by fork with exec.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::chan<int> codes;
    weft::go([=] { codes.send(weft::blocking([] { return WEXITSTATUS(std::system("exit 3")); })); });
    weft::go([=] {
      std::FILE* p = ::popen("echo 4", "r");
      int n = 0;
      if (std::fscanf(p, "%d", &n) != 1) n = 100;
      ::pclose(p);
      codes.send(n);
    });
    weft::go([=] {
      pid_t child = ::fork();
      if (child == 0) {
        ::execl("/bin/sh", "sh", "-c", "exit 5", nullptr);
        _exit(99);
      }
      int status = 0;
      weft::blocking([&] { ::waitpid(child, &status, 0); });
      codes.send(WEXITSTATUS(status));
    });
    int sum = 0;
    for (int i = 0; i < 3; ++i) sum += *codes.recv();
    return sum;
  });
}
