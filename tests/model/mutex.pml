/* mutex, "asymmetric unlock" of goroutines: api/src/sync/mutex.cpp, weft/sync/mutex.hpp (the fast ways),
 * api/src/sync/mutex_queue.hpp, api/src/sync/heirs.hpp (lock_as_heir).
 *
 * Who takes part: `lockers`. Each locks and unlocks `times` times. When it has to wait, it may do so with a time limit;
 * then it leaves, or looks again (as a thread that is not weft's does).
 * With -DENDS, the first one is a goroutine of a run() that ends: it is abandoned where it waits, or on its way. The
 * second one is a thread, and looks again once. Others are goroutines of the next run().
 *
 * Properties:
 *   - There is one holder at a time.
 *   - When nothing moves any more, nobody waits for a mutex that is free.
 *
 * What is abstracted:
 *   - Of what a processor keeps in its store buffer, only the store that frees the mutex matters. It is seen at any
 *     time after it was made, at the latest with the locker's next read-modify-write, or at a heavy barrier.
 *   - There is one mutex. The bell rings for others of its bucket at any time.
 *   - The one that unlocks is the one that has locked.
 *   - The bucket is a lock. What is done under it is one step, except for the accesses of the mutex that others change
 *     without the bucket. A waiter that was claimed moves after the bucket is free.
 *   - Whether a waiter has become old may be answered either way each time it is asked.
 *
 * States: 3,685,701; with -DENDS 589,409.
 */

#ifndef lockers
#define lockers 3
#endif
#ifndef times
#define times 2
#endif
#define none 255

bool held;
bool kept[lockers]; /* the locker has freed the mutex, and nobody sees that yet */
#define armed_by_waiter 1
#define armed_by_holder 2
byte must_wake;

/* --- under the bucket */
bool bucket;
byte queue[lockers] = none;
bool queued[lockers];
bool heir[lockers];
bool passed_by[lockers];
bool rings; /* the bell: read without the bucket */

mtype = { no, waits, woken, handed_over, timed_out, abandoned };
mtype wait[lockers] = no; /* the state of the wait, and who has claimed it */

byte inside;

#ifdef ENDS
bool run_ended;
bool looks_again;
#endif

#define first queue[0]
#define somebody_to_wake (first != none && !heir[first])

/* --- parts of one step */

inline flush(a) {
  if
  :: kept[a] -> kept[a] = false; held = false
  :: else
  fi
}

inline heavy_barrier() {
#ifndef MUTANT_no_barrier
  flush(0);
  flush(1);
#if lockers > 2
  flush(2);
#endif
#endif
  skip
}

/* A read-modify-write. */
inline take() {
  flush(me);
  got = !held;
  held = true
}

inline push_back(a) {
  queued[a] = true;
  if
  :: first == none -> first = a
  :: first != none && queue[1] == none -> queue[1] = a
#if lockers > 2
  :: first != none && queue[1] != none -> queue[2] = a
#endif
  fi
}

inline remove(a) {
  assert(queued[a]);
  queued[a] = false;
#if lockers > 2
  if
  :: queue[0] == a -> queue[0] = queue[1]; queue[1] = queue[2]
  :: queue[1] == a -> queue[1] = queue[2]
  :: queue[2] == a
  fi;
  queue[2] = none;
#else
  if
  :: queue[0] == a -> queue[0] = queue[1]
  :: queue[1] == a
  fi;
  queue[1] = none;
#endif
  rings = somebody_to_wake
}

inline drop_abandoned() {
  do
  :: first != none && wait[first] == abandoned -> remove(first)
  :: else -> break
  od
}

#ifdef MUTANT_claim_not_asked
#define claim_fails(a) false
#else
#define claim_fails(a) (wait[a] != waits)
#endif

/* Sets `next` to the waiter that was claimed and is still queued, or to none. */
inline claim_first() {
  next = none;
  do
  :: first == none -> break
  :: first != none && heir[first] && wait[first] != abandoned -> break
  :: first != none && heir[first] && wait[first] == abandoned -> remove(first)
  :: first != none && !heir[first] && claim_fails(first) -> remove(first)
  :: first != none && !heir[first] && !claim_fails(first) -> next = first; break
  od
}

inline settle_as_holder(contended) {
  rings = somebody_to_wake;
  must_wake = (contended || somebody_to_wake -> armed_by_holder : 0)
}

/* Sets `arms` if W0 was done. */
inline settle() {
  rings = somebody_to_wake;
  arms = somebody_to_wake && must_wake == 0;
  if
#ifdef MUTANT_marks_as_holder
  :: arms -> must_wake = armed_by_holder
#else
  :: arms -> must_wake = armed_by_waiter
#endif
  :: !arms && !somebody_to_wake -> must_wake = 0
  :: else
  fi
}

inline done_waiting() {
  wait[me] = no;
  heir[me] = false;
  passed_by[me] = false;
  timed = false
}

inline taken() {
  remove(me);
  settle_as_holder(true);
  done_waiting();
  bucket = false
}

proctype locker(byte me) {
  byte n, next = none;
  bool got, arms, timed, handed, hears, contends;
#ifdef ENDS
  me < 2 || run_ended;
#endif
outside:
  atomic {
    got = false;
    arms = false;
    if
    :: n == times -> goto over
    :: n < times -> n++
    fi
  }
  atomic { take() }
  if
  :: got -> goto has_it
  :: else
  fi;
  if
  :: timed = true
  :: skip
  fi;
again:
  atomic { /* take_or_queue */
    !bucket -> bucket = true;
    flush(me);
#ifndef MUTANT_stays_heir
    heir[me] = false;
#endif
    if
    :: queued[me] -> passed_by[me] = true
    :: else -> drop_abandoned()
    fi
  }
  atomic {
    if
    :: queued[me]
    :: else ->
#ifndef MUTANT_mark_stays
      if
      :: first == none && must_wake == armed_by_waiter -> must_wake = 0
      :: else
      fi;
#endif
      push_back(me)
    fi;
    wait[me] = waits;
    settle() /* W0 */
  }
  if
  :: arms -> atomic { heavy_barrier(); arms = false } /* W1 */
  :: else
  fi;
#ifdef MUTANT_looks_not_again
  got = false;
#else
  atomic { take() } /* W2 */
#endif
  if
  :: got -> atomic { taken(); goto has_it }
  :: else -> bucket = false
  fi;
end_blocked:
  if
  :: atomic { wait[me] == woken && !bucket -> wait[me] = no }
  :: atomic { wait[me] == handed_over && !bucket -> done_waiting(); goto has_it }
  :: atomic { wait[me] == waits && timed -> wait[me] = timed_out; timed = false }
    if
    :: goto again
    :: goto give_up
    fi
#ifdef ENDS
  :: atomic { wait[me] == waits && me == 1 && looks_again -> looks_again = false; wait[me] = timed_out; goto again }
  :: atomic { wait[me] != timed_out && me == 0 -> wait[me] = abandoned; run_ended = true; goto end_of_run }
#endif
  fi;
  atomic { take() }
  if
  :: got -> atomic { !bucket -> taken(); goto has_it }
  :: else -> goto again
  fi;
give_up:
  atomic { !bucket -> bucket = true; flush(me) }
#ifdef MUTANT_bell_falls
  if
  :: queued[me] && first == me -> rings = false
  :: else
  fi;
#endif
  atomic {
    if
#ifdef MUTANT_gives_up_as_holder
    :: queued[me] -> remove(me); settle_as_holder(true)
#else
    :: queued[me] -> remove(me); settle(); arms = false
#endif
    :: else
    fi;
    done_waiting();
    bucket = false;
    goto outside
  }

has_it:
  inside++;
  assert(inside == 1);
  inside--;

  /* unlock */
  if
  :: must_wake != 0 -> goto unlock_slow /* U0 */
  :: must_wake == 0
  fi;
#ifdef MUTANT_bell_before_free
  hears = rings;
  kept[me] = true;
#else
  kept[me] = true; /* U1 */
#ifndef MUTANT_no_bell
  hears = rings; /* U2 */
  if
  :: hears = true /* the bell rings for another mutex of the bucket */
  :: skip
  fi;
#endif
#endif
  if
  :: hears -> hears = false
  :: else -> goto outside
  fi;

  /* answer_bell */
  atomic { !bucket -> bucket = true; flush(me); drop_abandoned() }
  if
  :: first == none || held -> goto answered
  :: first != none && !held
  fi;
  atomic {
    claim_first();
    if
    :: next != none -> heir[next] = true; wait[next] = woken; next = none
    :: else
    fi;
    settle();
    arms = false
  }
answered:
  bucket = false;
  goto outside;

unlock_slow:
  atomic { !bucket -> bucket = true; flush(me) }
  atomic {
    claim_first();
    if
    :: next != none -> handed = false; contends = passed_by[next]
    :: next != none -> handed = true; contends = true
    :: next == none && first != none -> passed_by[first] = false
    :: next == none && first == none
    fi;
    if
    :: next != none && handed -> remove(next); wait[next] = handed_over
    :: next != none && !handed -> heir[next] = true; wait[next] = woken
    :: else
    fi;
    next = none;
    settle_as_holder(contends);
    contends = false
  }
  atomic {
    held = held && handed;
    handed = false;
    bucket = false;
    goto outside
  }
#ifdef ENDS
end_of_run:
  false;
#endif
over:
#ifdef ENDS
  run_ended = run_ended || me == 0
#else
  skip
#endif
}

/* Every store is seen at last. */
active proctype memory() {
end:
  do
  :: atomic { kept[0] -> flush(0) }
  :: atomic { kept[1] -> flush(1) }
#if lockers > 2
  :: atomic { kept[2] -> flush(2) }
#endif
  od
}

#ifdef ENDS
/* ring_for_all at the end of a run() */
active proctype drops() {
end:
  atomic { run_ended && !bucket -> drop_abandoned() }
}
#endif

proctype at_rest() {
  byte i;
#ifdef ENDS
  atomic { timeout; looks_again = wait[1] == waits }
#endif
  atomic {
    timeout;
    assert(!bucket);
    do
    :: i < lockers ->
      assert(wait[i] != woken && wait[i] != timed_out);
      assert(wait[i] != waits || held);
      i++
    :: else -> break
    od
  }
}

init {
  atomic {
    run locker(0);
    run locker(1);
#if lockers > 2
    run locker(2);
#endif
    run at_rest()
  }
}
