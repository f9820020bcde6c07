// Tells which function an address lies in, by the symbol tables of the executable and of the loaded libraries. These
// tables also have static functions, of which the dynamic linker knows nothing.
//
// The files are mapped, and searched as they are. Nothing is allocated, and no lock is taken but the loader's, so that
// a signal handler may use this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <link.h>

namespace weft::rt {

struct symbol {
  const char* object = nullptr;      // the path of the file; null: the address is in none
  std::uintptr_t object_offset = 0;  // the address as counted in the file: what addr2line takes
  const char* function = nullptr;    // mangled; null: not known
  std::uintptr_t function_offset = 0;
};

class symbol_finder {
 public:
  symbol_finder() noexcept = default;
  ~symbol_finder();
  symbol_finder(const symbol_finder&) = delete;
  symbol_finder& operator=(const symbol_finder&) = delete;

  // The strings are valid as long as this object is.
  symbol find(const void* address) noexcept;

 private:
  // A loaded file, as the loader describes it, and its symbol table.
  struct object {
    std::uintptr_t base = 0;  // what the loader added to the file's addresses
    const char* path = nullptr;
    const ElfW(Phdr) * segments = nullptr;
    std::size_t segment_count = 0;

    void* file = nullptr;
    std::size_t file_size = 0;
    const ElfW(Sym) * symbols = nullptr;
    std::size_t symbol_count = 0;
    const char* names = nullptr;
    std::size_t names_size = 0;
  };

  object* object_of(std::uintptr_t address) noexcept;
  void open(object* o) noexcept;
  static bool read_tables(object* o) noexcept;

  std::array<object, 24> objects_;
  std::size_t count_ = 0;
  object one_more_;  // the last one that there was no room for: only its file is named
  char executable_[512];
};

}  // namespace weft::rt
