// Cancellation: a context says whether work should go on, and until when, and it carries values.
//
//   auto [ctx, cancel] = weft::with_timeout(parent, 2s);
//   weft::select(weft::on_recv(answers, use), weft::on_recv(ctx.done(), give_up));
//
// Contexts form a tree. Cancelling a context cancels everything below it, and nothing above it. A `context` is a
// handle: copies share the context. All members of one handle may be called anywhere, and by several goroutines or
// threads at once.
//
//                     err()                  done()    deadline()          cancelled by
//   background()      never set              nil       none                nobody
//   with_cancel       operation_canceled     closes    its parent's        cancel, its parent
//   with_timeout,
//   with_deadline     or timed_out           closes    the earlier one     the deadline as well
//   with_value        its parent's, in everything
//
// The last handle frees the context. The `cancel` that belongs to a context cancels it when it is destroyed.
//
// A deadline may outlive the run() in which it was set. If it passes while no runtime is running, the next call that
// asks sees it (err, done, a context below). A thread that waits for done() across the end of a run() is woken only by
// a cancel.
#pragma once

#include <weft/chan.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/sync_base.hpp>
#include <weft/detail/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <version>

#if defined(__cpp_lib_jthread)  // not in every libc++
#include <stop_token>
#endif

namespace weft {

namespace detail {

class context_node;
WEFT_API void context_retain(context_node* n) noexcept;
WEFT_API void context_release(context_node* n) noexcept;

// Makes a cancellable node below `parent`, which may be null, with two references. Throws std::bad_alloc and
// std::logic_error.
WEFT_API context_node* context_make(context_node* parent, std::int64_t deadline);
WEFT_API void context_cancel(context_node* n, std::exception_ptr cause) noexcept;

// Makes a node with a value, with one reference. Takes over `value`, unless it throws std::bad_alloc.
WEFT_API context_node* context_make_value(context_node* parent, const void* key, void* value,
                                          void (*destroy)(void*) noexcept);
WEFT_API const void* context_value(const context_node* n, const void* key) noexcept;

WEFT_API chan_core* context_done(context_node* n);  // the caller gets one reference
WEFT_API std::error_code context_err(const context_node* n) noexcept;
WEFT_API std::exception_ptr context_cause(const context_node* n);
WEFT_API std::int64_t context_deadline(const context_node* n) noexcept;
#if defined(__cpp_lib_jthread)
WEFT_API std::stop_token context_stop_token(context_node* n);
#endif

// A counted reference to a node; null for the background.
class context_ref {
 public:
  context_ref() noexcept = default;
  explicit context_ref(context_node* adopted) noexcept : node_(adopted) {}
  context_ref(const context_ref& o) noexcept : node_(o.node_) {
    if (node_) context_retain(node_);
  }
  context_ref(context_ref&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  context_ref& operator=(context_ref o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~context_ref() {
    if (node_) context_release(node_);
  }
  context_node* get() const noexcept { return node_; }

 private:
  context_node* node_ = nullptr;
};

// The address of `tag` identifies the key. It is the same in all files of a process if Key is the same type. A plugin
// shares the program's tag if the program is linked with -rdynamic, or if the key is in a library that both use.
template <class Key>
struct WEFT_API context_key {
  static inline const char tag = 0;
};

}  // namespace detail

class context {
 public:
  // Makes the background context, which is never cancelled and carries nothing. A moved-from context is that, too.
  context() noexcept = default;

  // Returns a channel that is closed when the context is cancelled; nothing is ever sent on it. It is nil for a context
  // that cannot be cancelled. The first call makes the channel, and may throw std::bad_alloc.
  recv_chan<void> done() const {
    return node() ? recv_chan<void>::adopt(detail::context_done(node())) : recv_chan<void>(nil);
  }

  // Returns no error as long as the context is not cancelled; then std::errc::operation_canceled or
  // std::errc::timed_out.
  std::error_code err() const noexcept { return node() ? detail::context_err(node()) : std::error_code(); }

  // Returns why the context was cancelled: what was passed to cancel(), here or above, or else a std::system_error with
  // err(). Null while it is not cancelled.
  std::exception_ptr cause() const { return node() ? detail::context_cause(node()) : nullptr; }

  // Returns when the context will be cancelled at the latest; nullopt if there is no deadline.
  std::optional<time_point> deadline() const noexcept {
    const std::int64_t ns = node() ? detail::context_deadline(node()) : detail::never_ns;
    if (ns == detail::never_ns) return std::nullopt;
    return time_point(std::chrono::duration_cast<time_point::duration>(std::chrono::nanoseconds(ns)));
  }

  // Returns the value that with_value<Key> put here, or else the next one above. Null: there is none. The value lives
  // as long as the context.
  template <class Key>
  const typename Key::value_type* value() const noexcept {
    if (!node()) return nullptr;
    return static_cast<const typename Key::value_type*>(detail::context_value(node(), &detail::context_key<Key>::tag));
  }

#if defined(__cpp_lib_jthread)
  // Returns a token for code that was written for the standard's cancellation. Stop callbacks run in the first
  // cancel(), or in a goroutine if a deadline passes, after the whole tree below is cancelled. Each token says that it
  // is stopped from when its callbacks begin; a second cancel() does not wait for that. A goroutine whose run() ends
  // meanwhile goes on with the callbacks until options::shutdown_grace is over. Stop callbacks must not wait for
  // anything: std::stop_callback knows threads, not goroutines. For a context that cannot be cancelled, the token can
  // never be stopped. Throws std::bad_alloc.
  std::stop_token stop_token() const { return node() ? detail::context_stop_token(node()) : std::stop_token(); }
#endif

  // Takes over one reference. For the library.
  static context adopt(detail::context_node* n) noexcept { return context(n); }
  detail::context_node* node() const noexcept { return ref_.get(); }

 private:
  explicit context(detail::context_node* n) noexcept : ref_(n) {}
  detail::context_ref ref_{};
};

// Cancels one context when it is called, and also when it is destroyed or assigned to. It may be called anywhere,
// several times, and by several goroutines or threads at once; only the first call counts. When any of the calls
// returns, the context and everything below it is cancelled.
class [[nodiscard]] cancel_function {
 public:
  cancel_function() noexcept = default;
  cancel_function(cancel_function&&) noexcept = default;
  cancel_function& operator=(cancel_function&& o) noexcept {
    if (this == &o) return *this;
    (*this)();
    ref_ = std::move(o.ref_);
    return *this;
  }
  ~cancel_function() { (*this)(); }

  void operator()() const noexcept { (*this)(nullptr); }

  // Cancels the context; from then on its cause() returns `cause`.
  void operator()(std::exception_ptr cause) const noexcept {
    if (ref_.get()) detail::context_cancel(ref_.get(), std::move(cause));
  }

  // Takes over one reference. For the library.
  static cancel_function adopt(detail::context_node* n) noexcept {
    cancel_function f;
    f.ref_ = detail::context_ref(n);
    return f;
  }

 private:
  detail::context_ref ref_{};
};

// The member `ctx` of a `cancellable`. It converts to a context and has the members of one, but not while it is part of
// a temporary, which would cancel it at the end of the expression: with_cancel(parent).ctx cannot be used. The member
// is const, which distinguishes that case from a cancellable_ctx that is moved along, such as an argument of go().
class cancellable_ctx {
 public:
  explicit cancellable_ctx(context c) noexcept : ctx_(std::move(c)) {}
  cancellable_ctx(const cancellable_ctx&) noexcept = default;
  cancellable_ctx(cancellable_ctx&&) noexcept = default;
  cancellable_ctx(const cancellable_ctx&&) = delete;
  cancellable_ctx& operator=(const cancellable_ctx&) noexcept = default;
  cancellable_ctx& operator=(cancellable_ctx&&) noexcept = default;

  operator const context&() const& noexcept { return ctx_; }
  operator const context&() && noexcept { return ctx_; }
  operator const context&() const&& = delete;
  const context& operator()() const& noexcept { return ctx_; }
  const context& operator()() const&& = delete;

  recv_chan<void> done() const& { return ctx_.done(); }
  recv_chan<void> done() const&& = delete;
  std::error_code err() const& noexcept { return ctx_.err(); }
  std::error_code err() const&& = delete;
  std::exception_ptr cause() const& { return ctx_.cause(); }
  std::exception_ptr cause() const&& = delete;
  std::optional<time_point> deadline() const& noexcept { return ctx_.deadline(); }
  std::optional<time_point> deadline() const&& = delete;
  template <class Key>
  const typename Key::value_type* value() const& noexcept {
    return ctx_.template value<Key>();
  }
  template <class Key>
  const typename Key::value_type* value() const&& = delete;
#if defined(__cpp_lib_jthread)
  std::stop_token stop_token() const& { return ctx_.stop_token(); }
  std::stop_token stop_token() const&& = delete;
#endif

 private:
  friend struct cancellable;
  mutable context ctx_;  // a `cancellable` may be assigned to
};

// What with_cancel, with_deadline and with_timeout return. Use it as `auto [ctx, cancel] = ...` (a context and a
// cancel_function), or keep it and use its members. A default-constructed one is the background, with a cancel that
// does nothing.
struct [[nodiscard]] cancellable {
  const cancellable_ctx ctx;
  cancel_function cancel;

  cancellable() noexcept : ctx(context()) {}
  cancellable(context c, cancel_function f) noexcept : ctx(std::move(c)), cancel(std::move(f)) {}
  cancellable(cancellable&& o) noexcept : ctx(std::move(o.ctx.ctx_)), cancel(std::move(o.cancel)) {}
  cancellable& operator=(cancellable&& o) noexcept {
    cancel = std::move(o.cancel);
    ctx.ctx_ = std::move(o.ctx.ctx_);
    return *this;
  }
  ~cancellable() = default;

  // For structured bindings.
  template <std::size_t Index>
  decltype(auto) get() && noexcept {
    if constexpr (Index == 0) {
      return std::move(ctx.ctx_);
    } else {
      return std::move(cancel);
    }
  }
  template <std::size_t Index>
  decltype(auto) get() & noexcept {
    if constexpr (Index == 0) {
      return (ctx.ctx_);
    } else {
      return (cancel);
    }
  }
  template <std::size_t Index>
  decltype(auto) get() const& noexcept {
    if constexpr (Index == 0) {
      return static_cast<const context&>(ctx.ctx_);
    } else {
      return (cancel);
    }
  }
};

namespace detail {
inline cancellable make_cancellable(const context& parent, std::int64_t deadline) {
  context_node* n = context_make(parent.node(), deadline);
  return {context::adopt(n), cancel_function::adopt(n)};
}
}  // namespace detail

// Returns the background context, which is never cancelled and carries nothing: the root of every tree.
inline context background() noexcept { return context(); }

// Makes a context below parent that can be cancelled. Throws std::bad_alloc.
inline cancellable with_cancel(const context& parent) { return detail::make_cancellable(parent, detail::never_ns); }

// As with_cancel, but the context is also cancelled at tp, with std::errc::timed_out, if that is before the parent's
// deadline. If tp has passed, it is cancelled already. Needs a running runtime, unless the parent's deadline is
// earlier, the parent is cancelled already, or tp has passed; otherwise it throws std::logic_error.
template <class Duration>
cancellable with_deadline(const context& parent,
                          const std::chrono::time_point<std::chrono::steady_clock, Duration>& tp) {
  return detail::make_cancellable(parent, detail::to_ns(tp));
}

// As with_deadline, d from now.
template <class Rep, class Period>
cancellable with_timeout(const context& parent, const std::chrono::duration<Rep, Period>& d) {
  return detail::make_cancellable(parent, detail::deadline_in(d));
}

// Makes a context below parent that carries a value of type V. Key is only a name for it, defined as
//   struct Key { using value_type = V; };
// Throws std::bad_alloc.
template <class Key, class V = typename Key::value_type>
context with_value(const context& parent, V&& v) {
  using value_type = typename Key::value_type;
  auto held = std::make_unique<std::remove_const_t<value_type>>(std::forward<V>(v));
  context made =
      context::adopt(detail::context_make_value(parent.node(), &detail::context_key<Key>::tag, held.get(),
                                                [](void* p) noexcept { delete static_cast<value_type*>(p); }));
  held.release();
  return made;
}

}  // namespace weft

template <>
struct std::tuple_size<weft::cancellable> : std::integral_constant<std::size_t, 2> {};
template <>
struct std::tuple_element<0, weft::cancellable> {
  using type = weft::context;
};
template <>
struct std::tuple_element<1, weft::cancellable> {
  using type = weft::cancel_function;
};
