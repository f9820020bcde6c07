#include "runtime/symbols.hpp"

#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::rt {

namespace {

constexpr const char* own_file = "/proc/self/exe";  // right even if its name leads elsewhere by now

// Returns the `n` items of type T at `offset` of a file, or null if they do not lie in it.
template <class T>
const T* part(const void* file, std::size_t size, std::uint64_t offset, std::uint64_t n) noexcept {
  if (offset > size || n > (size - offset) / sizeof(T) || offset % alignof(T) != 0) return nullptr;
  return reinterpret_cast<const T*>(static_cast<const std::byte*>(file) + offset);
}

bool covers(const ElfW(Phdr) * segments, std::size_t n, std::uintptr_t base, std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    if (segments[i].p_type == PT_LOAD && address - base - segments[i].p_vaddr < segments[i].p_memsz) return true;
  }
  return false;
}

bool is_function(const ElfW(Sym) & s) noexcept {
  auto type = s.st_info & 0xf;
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && s.st_shndx != SHN_UNDEF;
}

}  // namespace

symbol_finder::~symbol_finder() {
  for (std::size_t i = 0; i < count_; ++i) {
    if (objects_[i].file) ::munmap(objects_[i].file, objects_[i].file_size);
  }
}

symbol symbol_finder::find(const void* address) noexcept {
  symbol found;
  auto at = reinterpret_cast<std::uintptr_t>(address);
  object* o = object_of(at);
  if (!o) return found;
  found.object = o->path;
  found.object_offset = at - o->base;
  // Symbols from assembler have no size. The nearest of these below the address is found, unless a symbol with a size
  // contains the address.
  const ElfW(Sym)* best = nullptr;
  for (std::size_t i = 0; i < o->symbol_count; ++i) {
    const ElfW(Sym)& s = o->symbols[i];
    if (s.st_value > found.object_offset || !is_function(s) || s.st_name >= o->names_size) continue;
    if (found.object_offset - s.st_value < s.st_size) {
      best = &s;
      break;
    }
    if (s.st_size == 0 && (!best || s.st_value > best->st_value)) best = &s;
  }
  if (best) {
    found.function = o->names + best->st_name;
    found.function_offset = found.object_offset - best->st_value;
  }
  return found;
}

symbol_finder::object* symbol_finder::object_of(std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    object& o = objects_[i];
    if (covers(o.segments, o.segment_count, o.base, address)) return &o;
  }
  struct search {
    std::uintptr_t address;
    object found;
  } s{address, {}};
  auto visit = [](dl_phdr_info* info, std::size_t, void* arg) {
    auto* q = static_cast<search*>(arg);
    if (!covers(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, q->address)) return 0;
    q->found.base = info->dlpi_addr;
    q->found.path = info->dlpi_name;
    q->found.segments = info->dlpi_phdr;
    q->found.segment_count = info->dlpi_phnum;
    return 1;
  };
  if (::dl_iterate_phdr(visit, &s) == 0) return nullptr;
  bool room = count_ < objects_.size();
  object* o = room ? &objects_[count_++] : &one_more_;
  *o = s.found;
  if (room) open(o);
  return o;
}

void symbol_finder::open(object* o) noexcept {
  bool is_executable = !o->path || !*o->path;
  int fd = ::open(is_executable ? own_file : o->path, O_RDONLY | O_CLOEXEC);
  if (is_executable) {
    ssize_t n = ::readlink(own_file, executable_, sizeof executable_ - 1);
    executable_[n > 0 ? n : 0] = '\0';
    o->path = n > 0 ? executable_ : own_file;
  }
  if (fd < 0) return;
  struct stat about {};
  if (::fstat(fd, &about) == 0 && about.st_size > 0) {
    auto size = static_cast<std::size_t>(about.st_size);
    void* file = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) {
      o->file = file;
      o->file_size = size;
      if (!read_tables(o)) o->symbol_count = 0;
    }
  }
  ::close(fd);
}

bool symbol_finder::read_tables(object* o) noexcept {
  auto* header = part<ElfW(Ehdr)>(o->file, o->file_size, 0, 1);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  // Another file may lie there by now, under the same name.
  auto* segments = part<ElfW(Phdr)>(o->file, o->file_size, header->e_phoff, header->e_phnum);
  if (!segments || header->e_phnum != o->segment_count ||
      std::memcmp(segments, o->segments, o->segment_count * sizeof *segments) != 0) {
    return false;
  }
  auto* sections = part<ElfW(Shdr)>(o->file, o->file_size, header->e_shoff, header->e_shnum);
  if (!sections) return false;
  const ElfW(Shdr)* table = nullptr;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type == SHT_SYMTAB) table = &sections[i];
    if (sections[i].sh_type == SHT_DYNSYM && !table) table = &sections[i];  // what a stripped file has
  }
  if (!table || table->sh_link >= header->e_shnum) return false;
  const ElfW(Shdr)& names = sections[table->sh_link];
  o->names = part<char>(o->file, o->file_size, names.sh_offset, names.sh_size);
  o->names_size = names.sh_size;
  if (!o->names || o->names_size == 0 || o->names[o->names_size - 1] != '\0') return false;
  o->symbol_count = table->sh_size / sizeof(ElfW(Sym));
  o->symbols = part<ElfW(Sym)>(o->file, o->file_size, table->sh_offset, o->symbol_count);
  return o->symbols != nullptr;
}

}  // namespace weft::rt
