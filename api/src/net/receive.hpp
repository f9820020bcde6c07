// Reading from a connection, and when not to try ("drained").
//
// A read that got less than it asked for has emptied the socket. The next read would most often only be told so, at the
// price of a system call for each message; so it waits at once. Nothing is lost by that: whatever arrives after the
// emptying read looked makes the poller notify, and a notification that came since then ends the wait at once, since
// nothing has dropped it (`prepare` is left out).
//
// That holds for bytes that arrive, but not for what is known already when the read comes back short:
//   - the end of the stream, or an error, behind the last bytes;
//   - bytes behind urgent data, where TCP stops.
// The poller notes both (poll_desc::special) before it notifies, and then no wait begins without a try:
//
//     the poller                        the reader
//     N1  special = true                R1  the short read; drained = true
//     N2  notify: the poll word         R2  special? then try
//                                       R3  the poll word: notified? then try, else wait
//
//     Suppose that the socket was special before R1 looked. If N2 comes after R3, it ends the wait. If it comes between
//     R1 and R3, R3 finds the notification. If it came before R1, it ended a wait, or left the word `ready`, or found
//     it `ready`; then either somebody has set the word to nil since, or R3 finds `ready`. All of these are seq_cst:
//     N1, N2's look at the word, whatever sets the word to nil (poll_reset, poll_prepare_wait, poll_finish_wait), and
//     R2, which comes after that. So R2 sees N1.
//
// A signal does not make such a read short. Bytes that the kernel set aside while the read held the socket notify when
// the read gives the socket back. A low-water mark (SO_RCVLOWAT) that is not reached does not notify.
//
// This is done only for TCP connections that weft has made, and while nobody has asked for their number or for that of
// their listener. Reads from a unix socket stop at descriptors that are sent along. And code that has the number may
// set options, or put another protocol on top (TLS, for one), with boundaries.
#pragma once

#include "api/src/net/descriptor.hpp"

namespace weft::net::detail {

// Called in a turn, in place of `prepare`.
inline bool prepare_to_receive(descriptor& d, std::error_code& ec) noexcept {
  if (!d.drained) return prepare(d, rt::poll_mode::read, ec);
  return may_begin(d, rt::poll_mode::read, rt::poll_check(d.pd, rt::poll_mode::read), ec);
}

// True if the next read waits before it tries. Without a running runtime nobody would poll, so it tries: what is there
// can be had all the same.
inline bool shall_wait_first(const descriptor& d) noexcept {
  return d.drained && !d.pd->special.load(rt::seq_cst) /* R2 */ && d.plain.load(rt::relaxed) &&
         rt::sched.running.load(rt::acquire);
}

// Reads with `call`, which asks for `wanted` bytes. Returns how many came, or -1 with ec set.
template <class Call>
ssize_t receive(descriptor& d, std::size_t wanted, std::error_code& ec, Call call) {
  bool wait = shall_wait_first(d);
  d.drained = false;  // also if the wait fails, since it may have taken a notification with it
  if (wait && !is_ok(wait_in_turn(d, rt::poll_mode::read), ec)) return -1;  // R3
  ssize_t n = attempt(d, rt::poll_mode::read, ec, call);
  d.drained = n > 0 && static_cast<std::size_t>(n) < wanted && d.plain.load(rt::relaxed);
  return n;
}

}  // namespace weft::net::detail
