// select: waits for one of several channel operations, after Go's statement.
//
//   std::size_t i = weft::select(
//       weft::on_recv(c, [&](std::optional<int> v) { ... }),   // nullopt: closed
//       weft::on_send(d, 42, [&] { ... }),
//       weft::on_timeout(100ms, [&] { ... }),
//       weft::on_default([&] { ... }));
//
// Exactly one case runs, and its index, counting from 0 as written, is returned. If several cases are ready, one is
// chosen with equal chance. With a default, select never waits; without any case it waits for ever. An exception that
// leaves a handler leaves select. Sending on a closed channel throws channel_closed if that case is chosen. Throws
// std::bad_alloc, and runs no case, if there is no memory: for the timer of a timeout or of a timer's channel, for more
// than 8 cases, or for a list of cases. Anywhere.
#pragma once

#include <weft/chan.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

struct no_handler {
  void operator()() const noexcept {}
};

// Does one operation alone.
inline chan_status do_alone(const select_op& op, std::int64_t timeout) {
  return op.send ? chan_send(op.chan, op.value, timeout) : chan_recv(op.chan, op.value, timeout);
}

// chan_select for operations some of which have no value yet. make(n) makes the value of ops[n], if it is such a one,
// and returns its address. It is called for the operation that is done, or for all that have a channel if none can be
// done at once.
template <class Make>
select_outcome select_making_values(std::span<select_op> ops, std::int64_t timeout, Make make) {
  const auto give_value = [&](std::size_t n) {
    if (ops[n].chan && ops[n].send && !ops[n].value) ops[n].value = make(n);
  };
  for (;;) {
    const std::size_t n = chan_choose(ops.data(), ops.size());
    if (n == select_outcome::none) break;
    give_value(n);
    const chan_status s = do_alone(ops[n], dont_wait);
    if (s != chan_status::would_block) return {n, s};  // else another party was faster
  }
  if (timeout <= 0) return {select_outcome::none, chan_status::would_block};
  for (std::size_t n = 0; n < ops.size(); ++n) give_value(n);
  return unpack(chan_select(ops.data(), ops.size(), timeout));
}

// What happens when no channel is ready: the case that is chosen then, and how long to wait before it is. A timeout of
// zero or less is ready at once, so it comes before a default. Of several timeouts the earliest counts.
struct select_limit {
  static constexpr std::int64_t at_once = -2, otherwise = -1;
  std::int64_t rank = wait_forever;
  std::size_t index = select_outcome::none;

  void consider(std::int64_t r, std::size_t i) noexcept {
    if (index != select_outcome::none && r >= rank) return;
    rank = r;
    index = i;
  }
  std::int64_t wait() const noexcept { return rank < 0 ? dont_wait : rank; }
};

// A channel that was passed as an lvalue. Its reference is not counted: a case used directly in select(...) refers to
// the caller's handle. For a channel that was passed as an rvalue the case holds a chan_handle.
class borrowed_chan {
 public:
  borrowed_chan(const chan_handle& c) noexcept : core_(c.core()) {}
  chan_core* core() const noexcept { return core_; }
  chan_handle owned() const noexcept {
    if (core_) chan_retain(core_);
    return chan_handle(core_);
  }

 private:
  chan_core* core_;
};
inline chan_handle owned_chan(chan_handle&& c) noexcept { return std::move(c); }
inline chan_handle owned_chan(const borrowed_chan& c) noexcept { return c.owned(); }

// takes_optional tells whether a handler's parameter is std::optional<T>. Where T can itself be made from an optional,
// as std::any can, only the handler's type tells (parameter_of). A handler with several call operators, or with a
// template as call operator, counts as taking the optional.
template <class T>
struct parameter_of {
  using type = T;
};
template <class R, class A>
struct parameter_of<R (*)(A)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class A>
struct parameter_of<R (*)(A) noexcept> : parameter_of<R (*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A)> : parameter_of<R (*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const> : parameter_of<R (*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) noexcept> : parameter_of<R (*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const noexcept> : parameter_of<R (*)(A)> {};

template <class F, class T>
consteval bool takes_optional() {
  if constexpr (!std::is_invocable_v<F&, std::optional<T>>) {
    return false;
  } else if constexpr (std::is_class_v<F> && !requires { &F::operator(); }) {
    return true;  // does not ask whether it takes T: a template may not compile with T
  } else if constexpr (!std::is_invocable_v<F&, T>) {
    return true;
  } else if constexpr (requires { &F::operator(); }) {
    return !std::is_same_v<typename parameter_of<decltype(&F::operator())>::type, T>;
  } else {
    return !std::is_same_v<typename parameter_of<F>::type, T>;
  }
}

// What select requires of a case: its operation, and what to do when it was chosen.
//   op()          the operation, for channel cases
//   make_value()  makes the value of an operation that has none, and returns its address; some cases have this
//   run(s)        called after the operation was done with status s
//   owned()       the same case, which owns what this one refers to
template <class C>
concept is_case = requires {
  { std::remove_cvref_t<C>::is_channel } -> std::convertible_to<bool>;
};

template <class C>
concept makes_value = requires(C& c) {
  c.make_value();
};

template <class T, class C, class F>
class recv_case {
 public:
  static constexpr bool is_channel = true;
  recv_case(C c, F f) : chan_(std::move(c)), handler_(std::move(f)) {}
  auto owned() && { return recv_case<T, chan_handle, F>(owned_chan(std::move(chan_)), std::move(handler_)); }

  select_op op() noexcept { return {chan_.core(), value_.address(), false}; }

  void run(chan_status s) {
    std::optional<T> v;
    if (s == chan_status::done) v.emplace(value_.take());
    if constexpr (takes_optional<F, T>()) {
      static_cast<void>(handler_(std::move(v)));
    } else if constexpr (std::is_invocable_v<F&, T>) {
      if (!v) throw_channel_closed("receive, by a handler that takes only values,");
      static_cast<void>(handler_(std::move(*v)));
    } else {
      static_assert(std::is_invocable_v<F&>, "a receive handler takes std::optional<T>, T or nothing");
      static_cast<void>(handler_());
    }
  }

 private:
  C chan_;
  slot<T> value_;
  F handler_;
};

template <class C, class F>
class recv_case<void, C, F> {
 public:
  static constexpr bool is_channel = true;
  recv_case(C c, F f) : chan_(std::move(c)), handler_(std::move(f)) {}
  auto owned() && { return recv_case<void, chan_handle, F>(owned_chan(std::move(chan_)), std::move(handler_)); }
  select_op op() noexcept { return {chan_.core(), nullptr, false}; }
  void run(chan_status s) {
    if constexpr (std::is_invocable_v<F&, bool>) {
      static_cast<void>(handler_(s == chan_status::done));
    } else {
      static_assert(std::is_invocable_v<F&>, "a receive handler of chan<void> takes bool or nothing");
      static_cast<void>(handler_());
    }
  }

 private:
  C chan_;
  F handler_;
};

// V is T if the case owns the value (it had to be converted, or the case is kept in a select_case), or a reference if
// the case refers to the caller's value. `Keep`: the value was passed as an lvalue; it is copied, or converted, and not
// moved from.
template <class T, class C, class V, bool Keep, class F>
class send_case {
  static constexpr bool copied_when_needed =
      Keep && !(std::is_trivially_copyable_v<T> && std::is_nothrow_constructible_v<T, std::remove_reference_t<V>&>);

 public:
  static constexpr bool is_channel = true;
  template <class U>
  send_case(C c, U&& v, F f) : chan_(std::move(c)), value_(std::forward<U>(v)), handler_(std::move(f)) {}

  select_op op() noexcept {
    if constexpr (!Keep) {
      return {chan_.core(), std::addressof(value_), true};
    } else if constexpr (!copied_when_needed) {
      return {chan_.core(), std::addressof(copy_.emplace(value_)), true};
    } else {
      if (std::is_reference_v<V>) copy_.reset();  // the value may have changed since
      return {chan_.core(), copy_ ? std::addressof(*copy_) : nullptr, true};
    }
  }
  void* make_value() requires copied_when_needed { return std::addressof(copy_.emplace(value_)); }

  // True if the case cannot be chosen now, so that no copy is needed.
  bool would_block() const noexcept requires copied_when_needed { return chan_send_would_block(chan_.core()); }

  void run(chan_status s) {
    if (s == chan_status::closed) throw_channel_closed("send");
    if constexpr (Keep) copy_.reset();
    static_cast<void>(handler_());
  }

  auto owned() && {
    return send_case<T, chan_handle, T, Keep, F>(owned_chan(std::move(chan_)), take_value(), std::move(handler_));
  }

 private:
  T take_value() {
    if constexpr (!Keep) {
      return T(std::move(value_));
    } else if constexpr (std::is_reference_v<V>) {
      return T(value_);
    } else {
      return T(std::as_const(value_));
    }
  }
  struct nothing {};
  C chan_;
  V value_;
  [[no_unique_address]] std::conditional_t<Keep, std::optional<T>, nothing> copy_;
  F handler_;
};

// Sends a value that was passed as an rvalue of type U. It is converted to T only if this case is chosen.
template <class T, class C, class U, class F>
class converting_send_case {
 public:
  static constexpr bool is_channel = true;
  converting_send_case(C c, U& v, F f) : chan_(std::move(c)), value_(v), conversion_(v), handler_(std::move(f)) {}

  select_op op() noexcept { return {chan_.core(), conversion_.marked(), true}; }

  void run(chan_status s) {
    if (s == chan_status::closed) throw_channel_closed("send");
    static_cast<void>(handler_());
  }

  auto owned() && {
    return send_case<T, chan_handle, T, false, F>(owned_chan(std::move(chan_)), T(std::move(value_)),
                                                  std::move(handler_));
  }

 private:
  C chan_;
  U& value_;
  conversion_of<T, U> conversion_;
  F handler_;
};

template <class C, class F>
class send_signal_case {
 public:
  static constexpr bool is_channel = true;
  send_signal_case(C c, F f) : chan_(std::move(c)), handler_(std::move(f)) {}
  auto owned() && { return send_signal_case<chan_handle, F>(owned_chan(std::move(chan_)), std::move(handler_)); }
  select_op op() noexcept { return {chan_.core(), nullptr, true}; }
  void run(chan_status s) {
    if (s == chan_status::closed) throw_channel_closed("send");
    static_cast<void>(handler_());
  }

 private:
  C chan_;
  F handler_;
};

template <class F>
class timeout_case {
 public:
  static constexpr bool is_channel = false;
  timeout_case(std::int64_t ns, F f) : ns_(ns), handler_(std::move(f)) {}
  std::int64_t rank() const noexcept { return ns_ <= 0 ? select_limit::at_once : ns_; }
  void run() { static_cast<void>(handler_()); }

 private:
  std::int64_t ns_;
  F handler_;
};

template <class F>
class default_case {
 public:
  static constexpr bool is_channel = false;
  explicit default_case(F f) : handler_(std::move(f)) {}
  static constexpr std::int64_t rank() noexcept { return select_limit::otherwise; }
  void run() { static_cast<void>(handler_()); }

 private:
  F handler_;
};

}  // namespace detail

// A case that receives from c. The handler f takes std::optional<T> (nullopt: closed), T (if the channel is closed,
// channel_closed is thrown), or nothing. For chan<void> it takes bool (false: closed) or nothing. Here and in on_send,
// a case refers to a c that is an lvalue, which must outlive the case; a select_case made from it shares the channel.
template <class T, class F = detail::no_handler>
auto on_recv(const recv_chan<T>& c, F f = {}) {
  return detail::recv_case<T, detail::borrowed_chan, F>(c, std::move(f));
}
template <class T, class F = detail::no_handler>
auto on_recv(const chan<T>& c, F f = {}) {
  return detail::recv_case<T, detail::borrowed_chan, F>(c, std::move(f));
}
template <class T, class F = detail::no_handler>
auto on_recv(recv_chan<T>&& c, F f = {}) {
  return detail::recv_case<T, detail::chan_handle, F>(std::move(c), std::move(f));
}
template <class T, class F = detail::no_handler>
auto on_recv(chan<T>&& c, F f = {}) {
  return detail::recv_case<T, detail::chan_handle, F>(std::move(c), std::move(f));
}

namespace detail {
template <class T>
struct receive_into {
  std::optional<T>* out;
  void operator()(std::optional<T> v) const {  // T need not be assignable
    out->reset();
    if (v) out->emplace(std::move(*v));
  }
};
}  // namespace detail

// A case that receives from c into out, which must outlive the select. nullopt: closed.
template <class T>
auto on_recv(const recv_chan<T>& c, std::optional<T>& out) {
  return weft::on_recv(c, detail::receive_into<T>{&out});
}
template <class T>
auto on_recv(const chan<T>& c, std::optional<T>& out) {
  return weft::on_recv(c, detail::receive_into<T>{&out});
}
template <class T>
auto on_recv(recv_chan<T>&& c, std::optional<T>& out) {
  return weft::on_recv(std::move(c), detail::receive_into<T>{&out});
}
template <class T>
auto on_recv(chan<T>&& c, std::optional<T>& out) {
  return weft::on_recv(std::move(c), detail::receive_into<T>{&out});
}

namespace detail {
template <class T, class C, class V, class F>
auto make_send_case(C c, V&& v, F f) {
  constexpr bool is_t = std::is_same_v<std::remove_cvref_t<V>, T>;
  if constexpr (is_t && std::is_lvalue_reference_v<V>) {
    return send_case<T, C, const T&, true, F>(std::move(c), v, std::move(f));
  } else if constexpr ((is_t || std::derived_from<V, T>)&&!std::is_lvalue_reference_v<V> && !std::is_const_v<V>) {
    return send_case<T, C, T&, false, F>(std::move(c), static_cast<T&>(v), std::move(f));
  } else if constexpr (converts_when_taken<T, V>) {
    return converting_send_case<T, C, V, F>(std::move(c), v, std::move(f));
  } else if constexpr (std::is_lvalue_reference_v<V> && std::is_copy_constructible_v<T>) {
    return send_case<T, C, V, true, F>(std::move(c), v, std::move(f));
  } else {
    return send_case<T, C, T, false, F>(std::move(c), T(std::forward<V>(v)), std::move(f));
  }
}
template <class T, class V>
concept sendable = !std::is_void_v<T> && std::is_constructible_v<T, V>;
}  // namespace detail

// A case that sends v to c. Used directly in select(...), the case refers to v, so a case that has a name must not
// outlive v. A v that is an rvalue is moved from only if this case is chosen; if it is of another type and its
// conversion may throw, it is converted beforehand. A v that is an lvalue is copied, or converted, if this case is
// chosen, or if select has to wait and c is not nil. A select_case made from the case owns its value; if that came from
// an lvalue, it sends a copy each time, unless T cannot be copied.
template <class T, class V = T, class F = detail::no_handler>
  requires detail::sendable<T, V>
auto on_send(const send_chan<T>& c, V&& v, F f = {}) {
  return detail::make_send_case<T, detail::borrowed_chan>(c, std::forward<V>(v), std::move(f));
}
template <class T, class V = T, class F = detail::no_handler>
  requires detail::sendable<T, V>
auto on_send(const chan<T>& c, V&& v, F f = {}) {
  return detail::make_send_case<T, detail::borrowed_chan>(c, std::forward<V>(v), std::move(f));
}
template <class T, class V = T, class F = detail::no_handler>
  requires detail::sendable<T, V>
auto on_send(send_chan<T>&& c, V&& v, F f = {}) {
  return detail::make_send_case<T, detail::chan_handle>(std::move(c), std::forward<V>(v), std::move(f));
}
template <class T, class V = T, class F = detail::no_handler>
  requires detail::sendable<T, V>
auto on_send(chan<T>&& c, V&& v, F f = {}) {
  return detail::make_send_case<T, detail::chan_handle>(std::move(c), std::forward<V>(v), std::move(f));
}
template <class F = detail::no_handler>
auto on_send(const send_chan<void>& c, F f = {}) {
  return detail::send_signal_case<detail::borrowed_chan, F>(c, std::move(f));
}
template <class F = detail::no_handler>
auto on_send(const chan<void>& c, F f = {}) {
  return detail::send_signal_case<detail::borrowed_chan, F>(c, std::move(f));
}
template <class F = detail::no_handler>
auto on_send(send_chan<void>&& c, F f = {}) {
  return detail::send_signal_case<detail::chan_handle, F>(std::move(c), std::move(f));
}
template <class F = detail::no_handler>
auto on_send(chan<void>&& c, F f = {}) {
  return detail::send_signal_case<detail::chan_handle, F>(std::move(c), std::move(f));
}

// A case that is chosen if no other case was ready within d; zero or less: at once. Of several timeouts the earliest
// counts. To wait for it, select needs memory for a timer; if there is none, it throws std::bad_alloc.
template <class Rep, class Period, class F = detail::no_handler>
auto on_timeout(const std::chrono::duration<Rep, Period>& d, F f = {}) {
  return detail::timeout_case<F>(detail::to_ns(d), std::move(f));
}

// A case that is chosen if no other case is ready.
template <class F = detail::no_handler>
auto on_default(F f = {}) {
  return detail::default_case<F>(std::move(f));
}

// A case of any kind, for selects whose number of cases is known only at run time. Copies share the case, and the value
// that it receives or sends lies in it meanwhile, so only one select at a time may use a select_case or its copies. A
// case that is passed to it as an lvalue is copied. A moved-from select_case is never ready. Making one may throw
// std::bad_alloc.
class select_case {
 public:
  template <detail::is_case Case>
  select_case(Case&& c)  // NOLINT: implicit, so that push_back(on_recv(...)) works
      : case_(make(std::remove_cvref_t<Case>(std::forward<Case>(c)))) {}

 private:
  friend std::size_t select(std::span<const select_case> cases);

  struct base {
    virtual ~base() = default;
    virtual bool is_channel() const noexcept = 0;
    virtual bool makes_value() const noexcept = 0;
    virtual detail::select_op op() noexcept = 0;
    virtual void* make_value() = 0;
    virtual std::int64_t rank() const noexcept = 0;
    virtual void run(detail::chan_status s) = 0;
  };

  template <class Case>
  struct holder final : base {
    explicit holder(Case&& c) : held(std::move(c)) {}
    bool is_channel() const noexcept override { return Case::is_channel; }
    bool makes_value() const noexcept override { return detail::makes_value<Case>; }
    detail::select_op op() noexcept override {
      if constexpr (Case::is_channel) {
        return held.op();
      } else {
        return {};
      }
    }
    void* make_value() override {
      if constexpr (detail::makes_value<Case>) {
        return held.make_value();
      } else {
        return nullptr;
      }
    }
    std::int64_t rank() const noexcept override {
      if constexpr (Case::is_channel) {
        return detail::wait_forever;
      } else {
        return held.rank();
      }
    }
    void run([[maybe_unused]] detail::chan_status s) override {
      if constexpr (Case::is_channel) {
        held.run(s);
      } else {
        held.run();
      }
    }
    Case held;
  };

  template <class Case>
  static std::shared_ptr<base> make(Case&& c) {
    if constexpr (requires { std::move(c).owned(); }) {
      using owned_case = decltype(std::move(c).owned());
      return std::make_shared<holder<owned_case>>(std::move(c).owned());
    } else {
      return std::make_shared<holder<std::remove_cvref_t<Case>>>(std::move(c));
    }
  }

  std::shared_ptr<base> case_;  // shared with the select that runs it
};

// select for a list of cases: a vector, an array, or a part of one. A case may be used again in the next select, but
// one that owned an rvalue has sent it. A handler may change the list, for example take its own case out of it, but not
// while another select waits on that list.
inline std::size_t select(std::span<const select_case> cases) {
  std::vector<detail::select_op> ops;
  std::vector<std::size_t> index_of;
  ops.reserve(cases.size());
  index_of.reserve(cases.size());
  detail::select_limit limit;
  bool makes_values = false;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].case_) continue;
    if (cases[i].case_->is_channel()) {
      ops.push_back(cases[i].case_->op());
      index_of.push_back(i);
      makes_values = makes_values || cases[i].case_->makes_value();
    } else {
      limit.consider(cases[i].case_->rank(), i);
    }
  }
  detail::select_outcome r;
  if (makes_values) {
    r = detail::select_making_values(ops, limit.wait(),
                                     [&](std::size_t n) { return cases[index_of[n]].case_->make_value(); });
  } else {
    r = unpack(detail::chan_select(ops.data(), ops.size(), limit.wait()));
  }
  std::size_t chosen = r.index == detail::select_outcome::none ? limit.index : index_of[r.index];
  const std::shared_ptr<select_case::base> runs = cases[chosen].case_;
  runs->run(r.status);
  return chosen;
}

namespace detail {

// A select with a single channel is a plain send or receive; with a default it is Go's non-blocking one.
template <class Case>
select_outcome select_one(Case& c, std::int64_t timeout) {
  select_op op = c.op();
  if constexpr (makes_value<Case>) {
    if (timeout == dont_wait && c.would_block()) return {select_outcome::none, chan_status::would_block};
    if (op.chan && !op.value) op.value = c.make_value();
  }
  const chan_status s = do_alone(op, timeout);
  return {s == chan_status::would_block ? select_outcome::none : 0, s};
}

}  // namespace detail

template <class... Cases>
  requires(!(std::is_convertible_v<Cases, std::span<const select_case>> || ...))
std::size_t select(Cases&&... cases) {
  static_assert((detail::is_case<Cases> && ...),
                "select takes cases (on_recv, on_send, on_timeout, on_default), or a list of select_case");
  constexpr std::size_t channels = (std::size_t{std::remove_cvref_t<Cases>::is_channel} + ... + 0);
  std::array<detail::select_op, channels == 0 ? 1 : channels> ops;
  std::array<std::size_t, channels == 0 ? 1 : channels> index_of{};
  detail::select_limit limit;
  std::size_t n = 0, i = 0;
  [[maybe_unused]] auto note_limit = [&](auto& c) {
    if constexpr (!std::remove_cvref_t<decltype(c)>::is_channel) limit.consider(c.rank(), i);
    ++i;
  };
  (note_limit(cases), ...);
  detail::select_outcome r;
  i = 0;
  [[maybe_unused]] auto add = [&](auto& c) {
    if constexpr (std::remove_cvref_t<decltype(c)>::is_channel) {
      index_of[n] = i;
      if constexpr (channels == 1) {
        r = detail::select_one(c, limit.wait());
      } else {
        ops[n] = c.op();
      }
      ++n;
    }
    ++i;
  };
  (add(cases), ...);
  if constexpr ((detail::makes_value<std::remove_cvref_t<Cases>> || ...) && channels != 1) {
    r = detail::select_making_values(ops, limit.wait(), [&](std::size_t op) {
      void* made = nullptr;
      i = 0;
      auto make = [&](auto& c) {
        if constexpr (detail::makes_value<std::remove_cvref_t<decltype(c)>>) {
          if (i == index_of[op]) made = c.make_value();
        }
        ++i;
      };
      (make(cases), ...);
      return made;
    });
  } else if constexpr (channels != 1) {
    r = unpack(detail::chan_select(channels == 0 ? nullptr : ops.data(), channels, limit.wait()));
  }
  std::size_t chosen = r.index == detail::select_outcome::none ? limit.index : index_of[r.index];
  i = 0;
  [[maybe_unused]] auto run = [&](auto& c) {
    if (i++ != chosen) return;
    if constexpr (std::remove_cvref_t<decltype(c)>::is_channel) {
      c.run(r.status);
    } else {
      c.run();
    }
  };
  (run(cases), ...);
  return chosen;
}

}  // namespace weft
