#include "runtime/copies.hpp"

#include "runtime/atomic.hpp"
#include "runtime/fatal.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

namespace weft::rt {

// Copies of other versions read this: members may change only at its end.
struct copy_state {
  // seq_cst for the store and for the load: of two copies that start at the same time, each first stores its own flag
  // and then reads the other's, so at least one sees the other.
  atomic<std::uint32_t> running{0};
};

// extern "C", because the note refers to the state by name.
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] constinit copy_state weft_this_copy{};
}

// The note has one entry: the sizes of its name and of its contents, its type, its name, and its contents, which are
// the distance from there to the state.
asm(".pushsection .note.weft, \"a\", %note\n"
    ".balign 4\n"
    ".long 5, 4, 1\n"
    ".asciz \"weft\"\n"
    ".balign 4\n"
    ".long weft_this_copy - .\n"
    ".popsection\n");

namespace {

constexpr char note_name[] = "weft";

const copy_state* copy_in_note(const char* at, std::size_t size, std::size_t align) noexcept {
  auto up = [align](std::size_t n) { return (n + align - 1) & ~(align - 1); };
  ElfW(Nhdr) head;
  while (size >= sizeof head) {
    std::memcpy(&head, at, sizeof head);
    std::size_t contents = sizeof head + up(head.n_namesz);
    std::size_t all = contents + up(head.n_descsz);
    if (all > size) return nullptr;
    if (head.n_namesz == sizeof note_name && head.n_descsz == 4 &&
        std::memcmp(at + sizeof head, note_name, sizeof note_name) == 0) {
      std::int32_t distance;
      std::memcpy(&distance, at + contents, sizeof distance);
      return reinterpret_cast<const copy_state*>(at + contents + distance);
    }
    at += all;
    size -= all;
  }
  return nullptr;
}

struct copies {
  static constexpr std::size_t path_size = 512;
  bool other_runs = false;
  char own[path_size] = "?", other[path_size] = "?";
};

void copy_path(char* to, const char* path) noexcept {
  if (*path) {
    std::strncpy(to, path, copies::path_size - 1);
  } else if (ssize_t n = ::readlink("/proc/self/exe", to, copies::path_size - 1); n > 0) {
    to[n] = '\0';
  }
}

int look_at(dl_phdr_info* file, std::size_t, void* arg) {
  auto* found = static_cast<copies*>(arg);
  for (int i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = file->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const copy_state* c = copy_in_note(reinterpret_cast<const char*>(file->dlpi_addr + part.p_vaddr), part.p_memsz,
                                       part.p_align == 8 ? 8 : 4);
    if (!c) continue;
    if (c == &weft_this_copy) {
      copy_path(found->own, file->dlpi_name);
    } else if (c->running.load(seq_cst)) {
      found->other_runs = true;
      copy_path(found->other, file->dlpi_name);
    }
  }
  return 0;
}

}  // namespace

void begin_as_only_copy() noexcept {
  weft_this_copy.running.store(1, seq_cst);
  refuse_beside_other_copy();
}

void stay_loaded() noexcept {
  Dl_info at;
  // For the program itself, dlopen() finds nothing by that name; but the program is never unloaded.
  if (::dladdr(&weft_this_copy, &at)) ::dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void end_as_only_copy() noexcept { weft_this_copy.running.store(0, seq_cst); }

void refuse_beside_other_copy() noexcept {
  copies found;
  ::dl_iterate_phdr(look_at, &found);
  if (!found.other_runs) return;
  fatal(
      "two copies of weft in one process: {} is used while that in {} runs; link all files of a program that use weft "
      "with the shared library",
      found.own, found.other);
}

}  // namespace weft::rt
