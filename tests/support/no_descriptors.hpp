// While an object of this class exists, the process cannot open a descriptor: EMFILE.
#pragma once

#include <sys/resource.h>

namespace weft::test {

class no_descriptors {
 public:
  no_descriptors() noexcept {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;

 private:
  rlimit before_;
};

}  // namespace weft::test
