#include "runtime/held_locks.hpp"

#include "runtime/atomic.hpp"
#include "runtime/config.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack.hpp"
#include "runtime/thread.hpp"

#include <cstdint>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <link.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::rt {

namespace {

// --- a thread's list. It is not a thread_local: all code of the process calls these functions, from a thread's first
// instruction to its last, so they must not allocate anything.

pthread_key_t key;
constinit atomic<bool> has_key{false};

// Null: there is no key, or no memory.
held_locks* list_of_this_thread() noexcept {
  if (!has_key.load(acquire)) return nullptr;
  auto* list = static_cast<held_locks*>(pthread_getspecific(key));
  if (list) return list;
  errno_stays keep;
  void* at = ::mmap(nullptr, sizeof(held_locks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED) {
    list = new (at) held_locks;
    pthread_setspecific(key, list);
  }
  return list;
}

void add(held_locks* list, const held_lock& lock) noexcept {
  for (std::size_t i = 0; i < list->size; ++i) {
    if (list->list[i].mutex != lock.mutex) continue;
    list->list[i].depth += lock.depth;
    return;
  }
  if (list->size < held_locks::most) list->list[list->size++] = lock;
}

// True if a whole frame record may lie at `record`, on the stack s.
bool contains(const stack* s, const void* record) noexcept {
  auto at = reinterpret_cast<std::uintptr_t>(record);
  return at % sizeof(void*) == 0 && at >= reinterpret_cast<std::uintptr_t>(s->lo) &&
         at + 2 * sizeof(void*) <= reinterpret_cast<std::uintptr_t>(s->hi);
}

// A frame record is {the caller's frame record, the return address}, on x86-64 and on aarch64.
using frame_record = const void* const*;

#define frame_of_this_function() static_cast<frame_record>(__builtin_frame_address(0))

// Code without frame pointers may make this read anything on the stack, also what AddressSanitizer has poisoned.
__attribute__((no_sanitize("address"))) void follow(frame_record frame, const void** callers) noexcept {
  *callers++ = frame[1];
  const thread_state* ts = this_thread_or_null();
  const stack* s = ts && ts->g ? ts->g->own_stack : nullptr;
  if (!s || !contains(s, frame)) return;  // the bounds of this stack are not known
  for (std::size_t i = 1; i < held_lock::most_callers; ++i) {
    auto next = static_cast<frame_record>(frame[0]);
    if (next <= frame || !contains(s, next)) return;
    frame = next;
    *callers++ = frame[1];
  }
}

void locked(const void* mutex, frame_record frame) noexcept {
  held_locks* list = list_of_this_thread();
  if (!list) return;
  held_lock lock{mutex, {}, 1};
  follow(frame, lock.callers);
  add(list, lock);
}

void unlocked(const void* mutex) noexcept {
  held_locks* list = list_of_this_thread();
  for (std::size_t i = list ? list->size : 0; i-- > 0;) {
    if (list->list[i].mutex != mutex) continue;
    if (--list->list[i].depth == 0) list->list[i] = list->list[--list->size];
    return;
  }
}

// --- the functions that are called in place of the real ones, which they call

int (*real_lock)(pthread_mutex_t*);
int (*real_trylock)(pthread_mutex_t*);
int (*real_timedlock)(pthread_mutex_t*, const timespec*);
int (*real_clocklock)(pthread_mutex_t*, clockid_t, const timespec*);
int (*real_unlock)(pthread_mutex_t*);

bool is_locked(int result) noexcept { return result == 0 || result == EOWNERDEAD; }

int our_lock(pthread_mutex_t* m) {
  int r = real_lock(m);
  if (is_locked(r)) locked(m, frame_of_this_function());
  return r;
}

int our_trylock(pthread_mutex_t* m) {
  int r = real_trylock(m);
  if (is_locked(r)) locked(m, frame_of_this_function());
  return r;
}

int our_timedlock(pthread_mutex_t* m, const timespec* until) {
  int r = real_timedlock(m, until);
  if (is_locked(r)) locked(m, frame_of_this_function());
  return r;
}

int our_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* until) {
  int r = real_clocklock(m, clock, until);
  if (is_locked(r)) locked(m, frame_of_this_function());
  return r;
}

int our_unlock(pthread_mutex_t* m) {
  unlocked(m);  // first: afterwards the mutex may be gone, and another one lie there
  return real_unlock(m);
}

struct hook {
  const char* name;
  void* ours;
  void** real;
};

// reinterpret_cast, because the loader passes functions as void*.
template <class F>
hook make_hook(const char* name, F* ours, F** real) noexcept {
  return {name, reinterpret_cast<void*>(ours), reinterpret_cast<void**>(real)};
}

const hook hooks[] = {
    make_hook("pthread_mutex_lock", our_lock, &real_lock),
    make_hook("pthread_mutex_trylock", our_trylock, &real_trylock),
    make_hook("pthread_mutex_timedlock", our_timedlock, &real_timedlock),
    make_hook("pthread_mutex_clocklock", our_clocklock, &real_clocklock),
    make_hook("pthread_mutex_unlock", our_unlock, &real_unlock),
};

// --- putting our functions in place of the real ones

#if defined(__x86_64__)
bool is_address(std::uint64_t type) noexcept {
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
}
#else
bool is_address(std::uint64_t type) noexcept {
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}
#endif

std::uintptr_t page_size() noexcept { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

struct loaded_file {
  std::uintptr_t base = 0;
  std::uintptr_t relro_begin = 0, relro_end = 0;  // read-only since the relocations were done
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  // The dynamic linker has added the base to the addresses in the dynamic section, except in the kernel's own library.
  template <class T>
  const T* at(std::uintptr_t address) const noexcept {
    return reinterpret_cast<const T*>(address < base ? base + address : address);
  }

  void store(std::uintptr_t slot, void* value) const noexcept {
    const std::uintptr_t page = page_size();
    bool read_only = slot >= relro_begin && slot < relro_end;
    auto* from = reinterpret_cast<void*>(slot & ~(page - 1));
    if (read_only && ::mprotect(from, page, PROT_READ | PROT_WRITE) != 0) return;
    // Relaxed: other threads may call either function.
    __atomic_store_n(reinterpret_cast<void**>(slot), value, __ATOMIC_RELAXED);
    if (read_only) ::mprotect(from, page, PROT_READ);
  }

  void redirect(const ElfW(Rela) * relocations, std::size_t bytes) const noexcept {
    for (std::size_t i = 0; i < bytes / sizeof *relocations; ++i) {
      const ElfW(Rela)& r = relocations[i];
      if (!is_address(ELF64_R_TYPE(r.r_info)) || r.r_addend != 0) continue;
      const char* name = names + symbols[ELF64_R_SYM(r.r_info)].st_name;
      for (const hook& h : hooks) {
        if (*h.real && std::strcmp(name, h.name) == 0) store(base + r.r_offset, h.ours);
      }
    }
  }
};

int redirect_file(dl_phdr_info* info, std::size_t, void*) noexcept {
  loaded_file f;
  f.base = info->dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    std::uintptr_t begin = f.base + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (segment.p_type == PT_GNU_RELRO) {
      f.relro_begin = begin;
      f.relro_end = (begin + segment.p_memsz) & ~(page_size() - 1);  // the rest of its last page stays writable
    }
  }
  std::uintptr_t plt = 0, others = 0;
  std::size_t plt_bytes = 0, other_bytes = 0;
  for (const ElfW(Dyn)* d = dynamic; d && d->d_tag != DT_NULL; ++d) {
    switch (d->d_tag) {
      case DT_SYMTAB: f.symbols = f.at<ElfW(Sym)>(d->d_un.d_ptr); break;
      case DT_STRTAB: f.names = f.at<char>(d->d_un.d_ptr); break;
      case DT_JMPREL: plt = d->d_un.d_ptr; break;
      case DT_PLTRELSZ: plt_bytes = d->d_un.d_val; break;
      case DT_RELA: others = d->d_un.d_ptr; break;
      case DT_RELASZ: other_bytes = d->d_un.d_val; break;
      default: break;
    }
  }
  if (!f.symbols || !f.names) return 0;
  if (plt) f.redirect(f.at<ElfW(Rela)>(plt), plt_bytes);
  if (others) f.redirect(f.at<ElfW(Rela)>(others), other_bytes);
  return 0;
}

unsigned long long files_loaded() noexcept {
  unsigned long long n = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &n);
  return n;
}

}  // namespace

void watch_mutexes() noexcept {
  if (tsan_running()) return;
  static const bool prepared = [] {
    // RTLD_NEXT finds what the files behind ours define. The very first definition may be a stub of the executable that
    // calls by the address that is about to be replaced.
    for (const hook& h : hooks) *h.real = ::dlsym(RTLD_NEXT, h.name);
    if (pthread_key_create(&key, [](void* list) { ::munmap(list, sizeof(held_locks)); }) != 0) return false;
    has_key.store(true, release);
    return true;
  }();
  static constinit atomic<unsigned long long> seen{0};
  unsigned long long loaded = files_loaded();
  // Relaxed: a thread that comes second reads nothing that the first one wrote, and both would write the same.
  if (!prepared || seen.exchange(loaded, relaxed) == loaded) return;
  ::dl_iterate_phdr(redirect_file, nullptr);
}

void take_held_locks(held_locks* out) noexcept {
  out->size = 0;
  if (tsan_running()) return;
  if (held_locks* list = list_of_this_thread()) {
    *out = *list;
    list->size = 0;
  }
}

void give_held_locks(const held_locks& locks) noexcept {
  if (locks.size == 0) return;
  held_locks* list = list_of_this_thread();
  for (std::size_t i = 0; list && i < locks.size; ++i) add(list, locks.list[i]);
}

}  // namespace weft::rt
