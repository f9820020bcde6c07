// What the plugin of these programs can do, and how they load it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

struct plugin_calls {
  int (*sum)(int n);      // 0 + ... + n-1, by goroutines and channels of the plugin
  int (*run_sum)(int n);  // the same in a run() of its own
  bool (*waits)();        // for 1 ms in a channel that nobody sends to; returns false
  void (*start)();        // only go()
};

class plugin {
 public:
  explicit plugin(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      std::exit(90);
    }
    auto get = reinterpret_cast<const plugin_calls* (*)()>(::dlsym(handle_, "plugin_entry"));
    if (!get) std::exit(91);
    calls_ = get();
  }
  plugin(const plugin&) = delete;
  plugin& operator=(const plugin&) = delete;
  ~plugin() {
    if (::dlclose(handle_) != 0) std::exit(92);
  }
  const plugin_calls* operator->() const { return calls_; }

  static bool is_loaded(const char* path) {
    void* h = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (h) ::dlclose(h);
    return h != nullptr;
  }

 private:
  void* handle_;
  const plugin_calls* calls_ = nullptr;
};
