// shared_mutex: waiting, and who comes next ("phases").
//
// As long as nobody waits, the word alone is the lock, and every change is one CAS in the header. With `waiters` set
// no newcomer takes it, and the word changes as follows: readers beyond the last leave by CAS; everything else happens
// under the bucket, whoever does it: the last reader or the writer hands the lock over to waiters, and sets the word
// to what they hold, before they are readied.
//
// A writer hands over to all readers that wait, the last reader to the first writer: so each side waits for one turn
// of the other. Readers are queued only while a writer holds the lock or waits for it.

#include "weft/sync/shared_mutex.hpp"

#include "api/src/sync/parking.hpp"

namespace weft {

using namespace detail;

namespace {

[[noreturn]] void misuse(const void* m, const char* what, std::uint32_t word) noexcept {
  rt::fatal("weft::shared_mutex at {}: {} ({} readers, {} writer)", m, what, word >> 2, word & 1);
}

}  // namespace

// Under the bucket, with the word in the hands of the caller: nobody holds the lock (any more). Gives it to those whose
// turn it is, and publishes the word: the last access.
void shared_mutex::admit(wake_list& woken, bool after_writer) noexcept {
  std::uint32_t holders = 0;
  auto admit_readers = [&] {
    while (woken.claim_first(readers_)) holders += reader;
  };
  auto admit_writer = [&] {
    if (woken.claim_first(writers_)) holders = writer;
  };
  if (after_writer) {
    admit_readers();
    if (!holders) admit_writer();
  } else {
    admit_writer();
    if (!holders) admit_readers();
  }
  // Readers without a writer to wait for do not wait.
  if (holders != writer && !writers_.first) admit_readers();
  std::uint32_t w = holders | (writers_.first || readers_.first ? waiters : 0);
  word_.store(w, rt::release);
}

// Under the bucket. True: the lock was free for this kind and is taken. False: `waiters` is set, and the caller may
// queue.
bool shared_mutex::join(bool shared) noexcept {
  std::uint32_t w = word_.load(rt::relaxed);
  for (;;) {
    bool free = shared ? (w & (writer | waiters)) == 0 : w == 0;
    if (!free && (w & waiters)) return false;
    std::uint32_t next = !free ? w | waiters : shared ? w + reader : writer;
    if (word_.compare_exchange_weak(w, next, rt::acquire, rt::relaxed)) return free;
  }
}

bool shared_mutex::lock_slow(std::int64_t deadline) {
  rt::runtime_scope scope;
  if (deadline < never_ns && deadline <= rt::nanotime()) return try_lock();
  rt::lock& bucket = queue_lock(this);
  bucket.acquire_lock();
  if (join(false)) {
    bucket.release_lock();
    return true;
  }
  sync_waiter w(scope.g());
  wake_list woken;
  return block_until(
      scope, w, bucket, rt::wait_reason::shared_mutex_lock, deadline, [&] { push_back(writers_, w); },
      [&] {
        // It may have been the last writer that readers waited for.
        remove(writers_, w);
        if (writers_.first) return;
        std::uint32_t word = word_.load(rt::relaxed);
        if (word & writer) {
          if (!readers_.first) word_.store(writer, rt::relaxed);
          return;
        }
        std::uint32_t more = 0;
        while (woken.claim_first(readers_)) more += reader;
        // The readers that hold it may be leaving, by CAS.
        while (!word_.compare_exchange_weak(word, (word & ~waiters) + more, rt::acq_rel, rt::relaxed)) {}
      });
}

bool shared_mutex::lock_shared_slow(std::int64_t deadline) {
  rt::runtime_scope scope;
  if (deadline < never_ns && deadline <= rt::nanotime()) return try_lock_shared();
  rt::lock& bucket = queue_lock(this);
  bucket.acquire_lock();
  if (join(true)) {
    bucket.release_lock();
    return true;
  }
  sync_waiter w(scope.g());
  return block_until(
      scope, w, bucket, rt::wait_reason::shared_mutex_lock_shared, deadline, [&] { push_back(readers_, w); },
      [&] {
        remove(readers_, w);
        if (!readers_.first && !writers_.first) word_.fetch_and(~waiters, rt::relaxed);
      });
}

void shared_mutex::unlock_slow() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::uint32_t word = word_.load(rt::relaxed);
  if (!(word & writer)) misuse(this, "unlock, but no writer holds it", word);
  admit(woken, true);
}

void shared_mutex::unlock_shared_slow() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::uint32_t word = word_.load(rt::acquire);
  for (;;) {
    if (word < reader) misuse(this, "unlock_shared, but no reader holds it", word);
    if (word == (reader | waiters)) break;  // the last, and it stays so: nobody comes or goes without the bucket
    if (word_.compare_exchange_weak(word, word - reader, rt::release, rt::acquire)) return;
  }
  admit(woken, false);
}

}  // namespace weft
