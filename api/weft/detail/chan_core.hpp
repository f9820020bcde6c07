// The channel without its type: what the templates in chan.hpp and select.hpp call. Not for users.
#pragma once

#include <weft/detail/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weft::detail {

class chan_core;

// How to move one element. If `move` is null, its bytes are copied.
struct element {
  std::size_t size;
  std::size_t align;
  void (*move)(void* to, void* from) noexcept;  // constructs *to from *from
  void (*destroy)(void* at) noexcept;
};

// What a sender may offer in place of a T: an object that is converted to a T when it is taken, and stays as it is
// until then. The lowest bit of the address marks it.
struct conversion {
  void (*make)(conversion* from, void* to) noexcept;

  void* marked() noexcept { return reinterpret_cast<char*>(this) + 1; }
  static bool is_marked(void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at) & 1; }
  static conversion* unmarked(void* at) noexcept { return reinterpret_cast<conversion*>(static_cast<char*>(at) - 1); }
};

// True if U, an rvalue of another type, is converted under the channel's lock. If the conversion may throw, it is done
// before.
template <class T, class U>
concept converts_when_taken =
    std::is_class_v<U> && !std::is_const_v<U> && !std::is_same_v<U, T> && !std::is_trivially_copyable_v<T> &&
    alignof(T) % 2 == 0 && std::is_nothrow_constructible_v<T, U>;

template <class T, class U>
class conversion_of : public conversion {
 public:
  explicit conversion_of(U& from) noexcept
      : conversion{[](conversion* c, void* to) noexcept {
          ::new (to) T(std::move(static_cast<conversion_of*>(c)->from_));
        }},
        from_(from) {}

 private:
  U& from_;
};

template <class T>
inline constexpr element element_of = [] {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::is_nothrow_move_constructible_v<T> &&
                    std::is_nothrow_destructible_v<T>,
                "chan<T>: T must be movable without exceptions, so that no value is lost half-way");
  if constexpr (std::is_trivially_copyable_v<T>) {
    return element{sizeof(T), alignof(T), nullptr, nullptr};
  } else {
    return element{sizeof(T), alignof(T),
                   [](void* to, void* from) noexcept {
                     if constexpr (alignof(T) % 2 == 0) {
                       if (conversion::is_marked(from))
                         return conversion::unmarked(from)->make(conversion::unmarked(from), to);
                     }
                     ::new (to) T(std::move(*static_cast<T*>(from)));
                   },
                   [](void* at) noexcept { static_cast<T*>(at)->~T(); }};
  }
}();

inline constexpr element no_element{0, 1, nullptr, nullptr};

enum class chan_status : std::uint8_t { done, would_block, closed };

inline constexpr std::int64_t wait_forever = INT64_MAX;
inline constexpr std::int64_t dont_wait = 0;

// Throws std::bad_alloc, std::length_error.
WEFT_API chan_core* chan_make(const element& e, std::size_t capacity);
WEFT_API void chan_retain(chan_core* c) noexcept;
WEFT_API void chan_release(chan_core* c) noexcept;

// c may be null (a nil channel). `value` is moved from only if the result is `done`. `timeout` is in ns; the result is
// `would_block` if it passed.
WEFT_API chan_status chan_send(chan_core* c, void* value);  // waits for as long as it takes
WEFT_API chan_status chan_send(chan_core* c, void* value, std::int64_t timeout);
WEFT_API bool chan_send_would_block(const chan_core* c) noexcept;  // as of some instant during the call
// Constructs the element at `out` only if the result is done.
WEFT_API chan_status chan_recv(chan_core* c, void* out);
WEFT_API chan_status chan_recv(chan_core* c, void* out, std::int64_t timeout);
WEFT_API void chan_close(chan_core* c);  // throws channel_closed, std::logic_error
WEFT_API std::size_t chan_size(const chan_core* c) noexcept;
WEFT_API std::size_t chan_capacity(const chan_core* c) noexcept;

[[noreturn]] WEFT_API void throw_channel_closed(const char* operation);
[[noreturn]] WEFT_API void throw_context_over(std::error_code why, const char* operation);

struct select_op {
  chan_core* chan;  // null: never ready
  void* value;      // send: what to move from; receive: where to construct
  bool send;
};

// The chosen case, and how its operation went.
struct select_outcome {
  static constexpr std::size_t none = SIZE_MAX >> 8;  // nothing was ready, or the time passed
  std::size_t index;
  chan_status status;
};

// A select_outcome in one register, so that a function that waits can end by a jump (runtime/way_back.hpp).
enum class packed_outcome : std::uint64_t {};
constexpr packed_outcome pack(select_outcome o) noexcept {
  return static_cast<packed_outcome>(std::uint64_t{o.index} << 8 | static_cast<std::uint8_t>(o.status));
}
constexpr select_outcome unpack(packed_outcome o) noexcept {
  auto word = static_cast<std::uint64_t>(o);
  return {static_cast<std::size_t>(word >> 8), static_cast<chan_status>(word & 0xff)};
}

// Performs one of the operations, chosen with equal chance among those that are ready. Waits at most `timeout` ns for
// one to be ready.
WEFT_API packed_outcome chan_select(const select_op* ops, std::size_t count, std::int64_t timeout);
// Returns the index of an operation that can be done at once, chosen with equal chance, or select_outcome::none.
WEFT_API std::size_t chan_choose(const select_op* ops, std::size_t count);

// Storage for a T that the core constructs.
template <class T>
class slot {
 public:
  slot() noexcept = default;
  slot(const slot&) noexcept {}  // only empty slots are copied
  slot& operator=(const slot&) = delete;
  void* address() noexcept { return bytes_; }
  T* get() noexcept { return std::launder(reinterpret_cast<T*>(bytes_)); }
  // Moves the element out and destroys it here.
  T take() noexcept {
    T v(std::move(*get()));
    std::destroy_at(get());
    return v;
  }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

}  // namespace weft::detail
