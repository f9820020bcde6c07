// Names to addresses, with the system's resolver.
//
// getaddrinfo blocks its thread, uses much stack and cannot be stopped. So each look-up has a goroutine of its own,
// which leaves its P to others meanwhile; the caller waits for it only as long as it wants to. At most most_threads
// look-ups block a thread at a time. Further ones wait their turn, and are skipped if nobody wants the result any more
// by then.

#include "api/src/goroutine.hpp"
#include "api/src/net/address.hpp"
#include "api/src/net/descriptor.hpp"
#include "api/src/support.hpp"
#include "runtime/never_destroyed.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/syscall.hpp"
#include "weft/context.hpp"
#include "weft/go.hpp"
#include "weft/select.hpp"
#include "weft/sync.hpp"

#include <memory>
#include <mutex>
#include <netdb.h>

namespace weft::net {

namespace {

constexpr std::size_t lookup_stack = 512 * 1024;
constexpr std::ptrdiff_t most_threads = 100;

struct lookup {
  std::string host, service;
  transport names = transport::any;
  std::vector<endpoint> found;
  std::error_code ec;
  chan<void> done;
};

// `error` is errno. The resolver says that a name has no address also when it could not ask.
std::error_code to_error_code(int eai, int error) noexcept {
  if (eai != 0 && (error == EMFILE || error == ENFILE || error == ENOMEM)) return system_error_code(error);
  switch (eai) {
    case 0: return {};
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
      return error::host_not_found;
    case EAI_AGAIN: return error::try_again;
    case EAI_SERVICE: return system_error_code(EINVAL);
    case EAI_MEMORY: return system_error_code(ENOMEM);
    case EAI_SYSTEM: return system_error_code(error);
    default: return error::no_recovery;
  }
}

// Not inlined, so that errno is read on the thread on which the call was made.
WEFT_NOINLINE int get_addresses(const lookup& l, addrinfo** list, int* error) noexcept {
  auto ask = [&](int socket_type) noexcept {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = socket_type;  // with 0 each address would come once for each type
    errno = 0;
    return ::getaddrinfo(l.host.empty() ? nullptr : l.host.c_str(), l.service.empty() ? nullptr : l.service.c_str(),
                         &hints, list);
  };
  int eai = ask(l.names == transport::udp ? SOCK_DGRAM : SOCK_STREAM);
  if (eai == EAI_SERVICE && l.names == transport::any) eai = ask(SOCK_DGRAM);
  *error = errno;
  return eai;
}

WEFT_NOINLINE void look_up(lookup& l) {
  addrinfo* list = nullptr;
  int error = 0;
  rt::enter_syscall(rt::call_site_here());
  int eai = get_addresses(l, &list, &error);
  rt::exit_syscall();
  std::unique_ptr<addrinfo, decltype([](addrinfo* a) { ::freeaddrinfo(a); })> owner(list);
  l.ec = to_error_code(eai, error);
  for (addrinfo* a = list; a; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    l.found.push_back(endpoint::from_native(a->ai_addr, a->ai_addrlen));
  }
  if (!l.ec && l.found.empty()) l.ec = error::host_not_found;
}

// Returns the semaphore that limits the threads. Each run() has its own: look-ups that a run() leaves behind keep their
// places.
std::shared_ptr<semaphore> places_for_threads() {
  struct last {
    std::mutex mutex;
    std::shared_ptr<semaphore> places;
    std::uint64_t run = 0;
  };
  static constinit rt::never_destroyed<last> the_last;
  last& l = the_last.value;
  std::scoped_lock hold(l.mutex);
  if (const std::uint64_t run = number_of_run(); !l.places || l.run != run) {
    l.places = std::make_shared<semaphore>(most_threads);
    l.run = run;
  }
  return l.places;
}

// Starts f in a goroutine of weft's own, which no count of goroutines and no dump has: it may outlast the call for
// which it was started.
template <class F>
void start_unseen(const go_options& o, F f) {
  using closure = weft::detail::closure<F>;
  weft::detail::new_goroutine g = weft::detail::spawn_begin(o, sizeof(closure), alignof(closure), "resolve");
  static_cast<rt::G*>(g.handle)->set_mark(rt::mark::system);
  weft::detail::start_in<closure>(g, std::move(f));
}

std::vector<endpoint> resolve_within(std::string host, std::string service, transport names, rt::nanos deadline,
                                     const context& ctx, std::error_code& ec) {
  if (host.empty() && service.empty()) {
    ec = system_error_code(EINVAL);
    return {};
  }
  auto l = std::make_shared<lookup>();
  l->host = std::move(host);
  l->service = std::move(service);
  l->names = names;
  // Nobody tells a foreign thread that run() has ended, so it looks at the run number. The number is read before the
  // goroutine is started: one that is started in a run() that is over never runs.
  const std::uint64_t run = number_of_run();
  start_unseen({.name = "resolve", .stack_size = lookup_stack}, [l, places = places_for_threads()] {
    places->acquire();
    try {
      if (l.use_count() > 1) look_up(*l);
    } catch (const std::bad_alloc&) {
      l->ec = system_error_code(ENOMEM);
    }
    places->release();
    l->done.close();
  });

  auto wait = [&](rt::nanos limit) {
    return select(on_recv(l->done), on_recv(ctx.done()), on_timeout(std::chrono::nanoseconds(limit)));
  };
  const bool goroutine = rt::this_m() != nullptr;
  auto over = [&] { return !goroutine && (run == 0 || number_of_run() != run || ctx.err()); };
  const rt::nanos limit = time_until(deadline);
  switch (goroutine ? wait(limit) : try_again_each(limit, rt::foreign_look_again, wait, [&](std::size_t i) {
    return i != 2 || over();
  })) {
    case 0: ec = l->ec; return std::move(l->found);
    case 1: ec = ctx.err(); return {};
    default: ec = !over() ? system_error_code(ETIMEDOUT) : ctx.err() ? ctx.err() : system_error_code(ECANCELED);
  }
  return {};
}

std::vector<endpoint> resolve_to_list(const std::string& host, const std::string& service, std::error_code& ec) {
  std::optional<std::uint16_t> port = service.empty() ? std::uint16_t{0} : parse_port(service);
  if (port) {
    if (std::optional<endpoint> e = parse_ip(host, *port)) return {*e};
  }
  // Refuse what getaddrinfo would cut short: of a port beyond 65535 it drops the upper bits, of a name what follows a
  // NUL.
  if ((!port && !may_be_service(service)) || (!host.empty() && !may_be_name(host) && !parse_ip(host, 0))) {
    ec = system_error_code(EINVAL);
    return {};
  }
  return resolve_within(host, service, transport::any, rt::forever, background(), ec);
}

}  // namespace

void detail::resolve(const std::string& host, const std::string& service, void (*f)(void* arg, const endpoint&),
                     void* arg, std::error_code* ec) {
  rt::throw_if_not_running("resolve");
  std::error_code failed;
  for (const endpoint& e : resolve_to_list(host, service, failed)) f(arg, e);
  if (ec) {
    *ec = failed;
  } else {
    const bool in_brackets = !service.empty() && host.find(':') != host.npos && parse_ip(host, 0);
    throw_if(failed, "weft: resolve", (in_brackets ? "[" + host + "]" : host) + (service.empty() ? "" : ":") + service);
  }
}

std::vector<endpoint> resolve_address(std::string_view text, purpose p, transport t, rt::nanos deadline,
                                      const context& ctx, std::error_code& ec) {
  std::optional<host_port> a = split_host_port(text);
  if (!a) {
    ec = system_error_code(EINVAL);
    return {};
  }
  if (!a->port_is_name) {
    if (std::optional<endpoint> e = parse_ip(a->host, a->number)) return {*e};
  }
  if (!a->host.empty()) return resolve_within(std::string(a->host), std::string(a->port), t, deadline, ctx, ec);

  if (a->port_is_name) {
    std::vector<endpoint> any = resolve_within("", std::string(a->port), t, deadline, ctx, ec);
    if (ec) return {};
    a->number = any.front().port();
  }
  // For bind IPv6 comes first: such a socket takes IPv4, too.
  if (p == purpose::bind) return {wildcard(true, a->number), wildcard(false, a->number)};
  return {loopback(false, a->number), loopback(true, a->number)};
}

}  // namespace weft::net
