// Channels: typed queues between goroutines, after Go's.
//
//   state of the channel      send                           recv                          close
//   open, not full / empty    puts / hands over              takes                         closes
//   open, full / empty        waits                          waits                         closes, wakes all waiters
//   closed                    throws channel_closed          what is buffered, then "no"   throws channel_closed
//   nil                       waits for ever                 waits for ever                throws std::logic_error
//
// All operations may be called anywhere: from goroutines, which park, and from other threads, which block as threads,
// also while no runtime is running. The end of a run() does not wake threads that wait for a channel; goroutines that
// it leaves behind send and receive nothing more. Waiters are served in order of arrival. No value is lost or
// duplicated.
#pragma once

#include <weft/detail/chan_core.hpp>
#include <weft/detail/time.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weft {

// Thrown by a send on a closed channel, also by one that was waiting when the channel was closed, and by a second
// close().
class WEFT_API channel_closed : public std::runtime_error {
 public:
  explicit channel_closed(const char* what) : std::runtime_error(what) {}
};

enum class recv_result {
  value,   // a value was received
  empty,   // no value was there, or the time limit passed
  closed,  // the channel is closed, and nothing is left in its buffer
};

// The argument that makes a nil channel. A nil channel blocks for ever, and is never ready in a select.
struct nil_t {
  explicit nil_t() = default;
};
inline constexpr nil_t nil{};

template <class T>
class chan;
template <class T>
class send_chan;
template <class T>
class recv_chan;

namespace detail {

// A counted reference to a channel. Copies share the channel; a moved-from handle is nil.
class chan_handle {
 public:
  // Null for a nil channel.
  chan_core* core() const noexcept { return core_; }

  // size() is how many values are in the buffer, capacity() how many fit. Both are 0 for a nil channel. Anywhere.
  std::size_t size() const noexcept { return chan_size(core_); }
  std::size_t capacity() const noexcept { return chan_capacity(core_); }
  bool is_nil() const noexcept { return core_ == nullptr; }

  // True if both are the same channel; the handles may be one-way views. std::hash agrees: a channel and its views have
  // the same hash.
  friend bool operator==(const chan_handle& a, const chan_handle& b) noexcept { return a.core_ == b.core_; }
  friend bool operator==(const chan_handle& c, nil_t) noexcept { return c.is_nil(); }

  chan_handle() noexcept = default;
  explicit chan_handle(chan_core* adopted) noexcept : core_(adopted) {}
  chan_handle(const chan_handle& o) noexcept : core_(o.core_) {
    if (core_) chan_retain(core_);
  }
  chan_handle(chan_handle&& o) noexcept : core_(std::exchange(o.core_, nullptr)) {}
  chan_handle& operator=(chan_handle o) noexcept {
    std::swap(core_, o.core_);
    return *this;
  }
  ~chan_handle() {
    if (core_) chan_release(core_);
  }

 private:
  chan_core* core_ = nullptr;
};

inline recv_result to_recv_result(chan_status s) noexcept {
  switch (s) {
    case chan_status::done: return recv_result::value;
    case chan_status::closed: return recv_result::closed;
    default: return recv_result::empty;
  }
}

// A weft::context, or anything else with done() and err().
template <class C>
concept cancellation = requires(const C& c) {
  c.done();
  c.err();
};

// Waits until the operation is done, or until ctx is cancelled; then it throws.
template <cancellation C>
chan_status operate_within(const C& ctx, const select_op& op, const char* what) {
  if (std::error_code cancelled = ctx.err()) throw_context_over(cancelled, what);
  auto done = ctx.done();
  const select_op ops[] = {op, {done.core(), nullptr, false}};
  select_outcome r = unpack(chan_select(ops, 2, wait_forever));
  if (r.index == 1) throw_context_over(ctx.err(), what);
  return r.status;
}

// U is an rvalue that a send converts to a T. If the send does not happen, the rvalue is left as it was.
template <class U, class T>
concept converts_to = converts_when_taken<T, U> && std::is_convertible_v<U, T>;

// The operations of the sending end. Self: the handle.
template <class T, class Self>
class send_ops {
 public:
  // Waits for a receiver or for room in the buffer, then hands v over. Throws channel_closed.
  void send(T v) const {
    if (chan_send(target(), std::addressof(v)) == chan_status::closed) throw_channel_closed("send");
  }

  // Hands v over if that is possible at once. False: it is not, and v is untouched. The exception is a v of another
  // type whose conversion may throw, or for a T that is trivially copyable: it is converted before the attempt. Throws
  // channel_closed.
  bool try_send(T&& v) const { return send_within(std::addressof(v), dont_wait); }
  template <converts_to<T> U>
  bool try_send(U&& v) const {
    return send_within(conversion_of<T, U>(v).marked(), dont_wait);
  }
  bool try_send(const T& v) const requires std::is_copy_constructible_v<T> {
    if (chan_send_would_block(target())) return false;  // no copy in vain
    T copy(v);
    return send_within(std::addressof(copy), dont_wait);
  }

  // As send(v), but waits at most d. False: the time passed, and v is untouched. Throws channel_closed, and
  // std::bad_alloc if there is no memory for the timer; then v is untouched, too.
  template <class Rep, class Period>
  bool send_for(T&& v, const std::chrono::duration<Rep, Period>& d) const {
    return send_within(std::addressof(v), to_ns(d));
  }
  template <converts_to<T> U, class Rep, class Period>
  bool send_for(U&& v, const std::chrono::duration<Rep, Period>& d) const {
    return send_within(conversion_of<T, U>(v).marked(), to_ns(d));
  }
  template <class Rep, class Period>
  bool send_for(const T& v,
                const std::chrono::duration<Rep, Period>& d) const requires std::is_copy_constructible_v<T> {
    T copy(v);
    return send_within(std::addressof(copy), to_ns(d));
  }

  // As send(v), but gives up when ctx is cancelled, or was cancelled before: it throws std::system_error with
  // ctx.err(), and v is destroyed. Throws channel_closed, and std::bad_alloc as ctx.done() does.
  template <cancellation C>
  void send(T v, const C& ctx) const {
    if (operate_within(ctx, {target(), std::addressof(v), true}, "weft: send") == chan_status::closed) {
      throw_channel_closed("send");
    }
  }

  // Closes the channel and wakes every waiter. Waiting senders throw channel_closed. Receivers get the values in the
  // buffer, and after these "closed". Throws channel_closed if the channel is closed already, and std::logic_error if
  // it is nil.
  void close() const { chan_close(target()); }

 private:
  chan_core* target() const noexcept { return static_cast<const chan_handle*>(static_cast<const Self*>(this))->core(); }
  bool send_within(void* v, std::int64_t ns) const {
    chan_status s = chan_send(target(), v, ns);
    if (s == chan_status::closed) throw_channel_closed("send");
    return s == chan_status::done;
  }
};

template <class Self>
class send_ops<void, Self> {
 public:
  void send() const {
    if (chan_send(target(), nullptr) == chan_status::closed) throw_channel_closed("send");
  }
  bool try_send() const { return send_within(dont_wait); }
  template <class Rep, class Period>
  bool send_for(const std::chrono::duration<Rep, Period>& d) const {
    return send_within(to_ns(d));
  }
  template <cancellation C>
  void send(const C& ctx) const {
    if (operate_within(ctx, {target(), nullptr, true}, "weft: send") == chan_status::closed) {
      throw_channel_closed("send");
    }
  }
  void close() const { chan_close(target()); }

 private:
  chan_core* target() const noexcept { return static_cast<const chan_handle*>(static_cast<const Self*>(this))->core(); }
  bool send_within(std::int64_t ns) const {
    chan_status s = chan_send(target(), nullptr, ns);
    if (s == chan_status::closed) throw_channel_closed("send");
    return s == chan_status::done;
  }
};

// The operations of the receiving end.
template <class T, class Self>
class recv_ops {
 public:
  // Waits for a value and returns it. nullopt: the channel is closed and drained. With a timer's channel it may throw
  // std::bad_alloc (time.hpp).
  std::optional<T> recv() const {
    slot<T> s;
    if (chan_recv(target(), s.address()) != chan_status::done) return std::nullopt;
    return s.take();
  }

  // Waits for a value and assigns it to v; a T that cannot be assigned takes the place of v. False: the channel is
  // closed and drained, and v is untouched. If the assignment throws, the value is gone, as in v = *recv().
  bool recv(T& v) const {
    slot<T> s;
    return take(chan_recv(target(), s.address()), s, v) == recv_result::value;
  }

  // Takes a value into v if one is there. Otherwise v is untouched.
  recv_result try_recv(T& v) const { return recv_within(v, dont_wait); }

  // As recv(v), but waits at most d. recv_result::empty: the time passed. Throws std::bad_alloc if there is no memory
  // for the timer.
  template <class Rep, class Period>
  recv_result recv_for(T& v, const std::chrono::duration<Rep, Period>& d) const {
    return recv_within(v, to_ns(d));
  }

  // As recv(), but gives up when ctx is cancelled, or was cancelled before: it throws std::system_error with ctx.err().
  // Throws std::bad_alloc as ctx.done() does.
  template <cancellation C>
  std::optional<T> recv(const C& ctx) const {
    slot<T> s;
    if (operate_within(ctx, {target(), s.address(), false}, "weft: receive") != chan_status::done) return std::nullopt;
    return s.take();
  }

  // For `for (auto& v : c)`, which receives until the channel is closed and drained. The value lives in the iterator,
  // which receives it when it is first looked at, and not before: `c | std::views::take(n)` takes n values out of c.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    T& operator*() const { return *value(); }
    T* operator->() const { return std::addressof(*value()); }
    iterator& operator++() noexcept {
      value_.reset();
      is_due_ = true;
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return !i.value(); }

   private:
    friend class recv_ops;
    explicit iterator(const recv_ops* from) noexcept : from_(from) {}
    std::optional<T>& value() const {
      if (is_due_) {
        slot<T> s;
        if (chan_recv(from_->target(), s.address()) == chan_status::done) value_.emplace(s.take());
        is_due_ = false;
      }
      return value_;
    }
    const recv_ops* from_;
    mutable std::optional<T> value_;
    mutable bool is_due_ = true;
  };
  iterator begin() const noexcept { return iterator(this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  chan_core* target() const noexcept { return static_cast<const chan_handle*>(static_cast<const Self*>(this))->core(); }
  recv_result recv_within(T& v, std::int64_t ns) const {
    slot<T> s;
    return take(chan_recv(target(), s.address(), ns), s, v);
  }
  static recv_result take(chan_status how, slot<T>& s, T& v) {
    if (how == chan_status::done) {
      if constexpr (std::is_move_assignable_v<T>) {
        v = s.take();
      } else {
        std::destroy_at(std::addressof(v));
        std::construct_at(std::addressof(v), s.take());
      }
    }
    return to_recv_result(how);
  }
};

template <class Self>
class recv_ops<void, Self> {
 public:
  // Waits for a signal. True: one was received. False: the channel is closed and drained.
  bool recv() const { return chan_recv(target(), nullptr) == chan_status::done; }
  recv_result try_recv() const { return to_recv_result(chan_recv(target(), nullptr, dont_wait)); }
  template <class Rep, class Period>
  recv_result recv_for(const std::chrono::duration<Rep, Period>& d) const {
    return to_recv_result(chan_recv(target(), nullptr, to_ns(d)));
  }
  template <cancellation C>
  bool recv(const C& ctx) const {
    return operate_within(ctx, {target(), nullptr, false}, "weft: receive") == chan_status::done;
  }

 private:
  chan_core* target() const noexcept { return static_cast<const chan_handle*>(static_cast<const Self*>(this))->core(); }
};

template <class T>
constexpr const element& element_for() noexcept {
  if constexpr (std::is_void_v<T>) {
    return no_element;
  } else {
    return element_of<T>;
  }
}

// Takes any integer type, so that braces around an int compile.
template <std::integral N>
std::size_t capacity_of_channel(N n) {
  if constexpr (std::is_signed_v<N>) {
    if (n < 0) throw std::length_error("weft::chan: a buffer for " + std::to_string(n) + " values");
  }
  return static_cast<std::size_t>(n);
}

}  // namespace detail

// A channel of T, or of signals without a value (void: send() and recv() take and return no value, and there is no
// range-for). A `chan` is a handle. The channel lives as long as a handle to it does; the last handle destroys the
// values that are left in the buffer. A call makes no handle of its own: the handle that it was called on must live,
// and must not be assigned to, until the call returns.
//
// T's move constructor and destructor must not throw. They run under the channel's lock, and so does the conversion of
// an rvalue to T, if it cannot throw. There they may neither wait nor use the channel. In a goroutine, waiting there is
// fatal; a plain thread that waits there would hold up all users of the channel.
template <class T>
class chan : public detail::chan_handle, public detail::send_ops<T, chan<T>>, public detail::recv_ops<T, chan<T>> {
  static_assert(!std::is_const_v<T>,
                "weft::chan<T>: a const T cannot be received into a variable; use chan<T> without const");

 public:
  using value_type = T;

  // Makes an unbuffered channel, or one with a buffer for `capacity` values. Throws std::bad_alloc, and
  // std::length_error if the capacity is negative or the buffer's size does not fit.
  chan() : chan(0) {}
  template <std::integral N>
  explicit chan(N capacity)
      : chan_handle(detail::chan_make(detail::element_for<T>(), detail::capacity_of_channel(capacity))) {}
  chan(nil_t) noexcept {}

  // Takes over one reference to a channel of T. For the library.
  static chan adopt(detail::chan_core* c) noexcept {
    chan handle(nil);
    handle.chan_handle::operator=(chan_handle(c));
    return handle;
  }
};

// A view of a channel that can only send and close. Nil by default.
template <class T>
class send_chan : public detail::chan_handle, public detail::send_ops<T, send_chan<T>> {
 public:
  using value_type = T;
  send_chan() noexcept = default;
  send_chan(nil_t) noexcept {}
  send_chan(const chan<T>& c) noexcept : chan_handle(c) {}
  send_chan(chan<T>&& c) noexcept : chan_handle(std::move(c)) {}
};

// A view of a channel that can only receive. Nil by default.
template <class T>
class recv_chan : public detail::chan_handle, public detail::recv_ops<T, recv_chan<T>> {
 public:
  using value_type = T;
  recv_chan() noexcept = default;
  recv_chan(nil_t) noexcept {}
  recv_chan(const chan<T>& c) noexcept : chan_handle(c) {}
  recv_chan(chan<T>&& c) noexcept : chan_handle(std::move(c)) {}

  // Takes over one reference to a channel of T. For the library.
  static recv_chan adopt(detail::chan_core* c) noexcept { return recv_chan(c); }

 private:
  explicit recv_chan(detail::chan_core* c) noexcept : chan_handle(c) {}
};

}  // namespace weft

// Not a sized range: size() is what the buffer holds now, not how many values a loop will take from it.
template <class T>
inline constexpr bool std::ranges::disable_sized_range<weft::chan<T>> = true;
template <class T>
inline constexpr bool std::ranges::disable_sized_range<weft::recv_chan<T>> = true;

template <>
struct std::hash<weft::detail::chan_handle> {
  std::size_t operator()(const weft::detail::chan_handle& c) const noexcept {
    return std::hash<weft::detail::chan_core*>()(c.core());
  }
};
template <class T>
struct std::hash<weft::chan<T>> : std::hash<weft::detail::chan_handle> {};
template <class T>
struct std::hash<weft::send_chan<T>> : std::hash<weft::detail::chan_handle> {};
template <class T>
struct std::hash<weft::recv_chan<T>> : std::hash<weft::detail::chan_handle> {};
