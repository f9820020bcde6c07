/* The ten states of a timer and the two hints of its heap: timers/timer.hpp, timers/timer_heap.{hpp,cpp}. With
 * -DCHANNEL: the timer of a channel on top of them, api/src/time.cpp.
 *
 * Who takes part, each on a thread of its own:
 *   owner      adds a timer to the heap of its P (CHANNEL: does not), checks and tidies that heap
 *   stealer    checks the same heap from another P
 *   modifier   changes timers; one that is in no heap goes into the heap of the modifier's P. CHANNEL: resets
 *   deleter    stops timers; CHANNEL: stops
 *   sleeper    with -DSLEEPER: reads the hints without the lock, as an M that decides how long to sleep; with -DTOLD:
 *              sleeps until then, and looks again when it is told
 *   receiver   CHANNEL, in place of the sleeper: takes a value or waits for one, or waits in vain and gives up
 * At last, with nobody else about, the heaps are checked at the time `last`, and when everything is due.
 *
 * Properties:
 *   - An armed timer that nobody stops or changes fires, at the first check after its time.
 *   - No setting fires twice, or before its time.
 *   - No setting fires after it was taken back (del_timer or change_timer said that it was armed).
 *   - No operation meets a state that it does not allow for; no more stopped timers are counted out than in.
 *   - -DSLEEPER: the hints, read as wake_when reads them, are never later than a timer that stays armed meanwhile.
 *   - -DTOLD: when nobody is about to tell it, the sleeper does not sleep beyond the time of an armed timer.
 *   - A heap without entries has no hint.
 *   - CHANNEL: no value is received of a setting that a stop or reset has ended, or before its time; stop and reset
 *     return true if and only if the value had not been received; a receiver that waits while the timer is armed gets a
 *     value.
 *   - Nobody waits forever for a lock or a state.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent.
 *   - There are two timers, two heaps, a few instants. Two entries need no sifting beyond their exchange.
 *   - Time stands still except where somebody reads the clock: there it may have gone on.
 *   - A load of the status and the compare-and-swap that follows it are one step: a swap that fails only loads again.
 *     look_again waits until the status is another one.
 *   - What belongs to one thread (the array under the lock, the fields in a transient state) is accessed in the step
 *     that takes hold of it.
 *   - make_room, references and disposal are left out. So are take_all and clear, which run in a stopped world.
 *   - "More than half are stopped" is: one is. Then tidy rebuilds or cleans the head, as either may happen.
 *   - Periods exist only with CHANNEL (ticker). A periodic function may run once after del_timer said true, which the
 *     sequence number is for.
 *   - CHANNEL: what is done under the channel's lock without touching the timer is one step. There is one receiver.
 *
 * States: 6,172,876; with -DSLEEPER 1,699,938; with -DTOLD 4,389,074; with -DCHANNEL 4,409,345.
 */

/* How often, by default: */
#ifdef CHANNEL
#define checks 2
#define changes 2
#define receives 2
#else
#define checks 1
#ifndef changes
#define changes 1
#endif
#if defined(SLEEPER) || defined(TOLD)
#define steals 0
#else
#define steals 1
#endif
#endif
#ifndef stops
#define stops 1
#endif

#define timers 2
#define last 3     /* the clock stops here until the others are done */
#define for_good 9 /* everything is due */

mtype = { no_status, waiting, running, deleted, removing, removed, modifying, modified_earlier, modified_later, moving };

typedef timer {
  mtype status = no_status;
  byte heap;
  byte when;
  byte period;
  byte seq; /* the number of the setting */
  byte next_when;
}
timer T[timers];

typedef timer_heap {
  bool lock_;
  byte n;            /* heap_.size() */
  byte t[timers];    /* entry::t */
  byte when[timers]; /* entry::when */
  byte head_when_;
  byte earliest_change_;
  byte deleted_;
}
timer_heap H[2];

byte now = 1;
byte done; /* processes that have done their share */

/* Each process has these. x: the timer of the operation, w: the time, s: its setting, h: its heap, f: a result.
 * y, c, i, d: of the inner functions. */
#define locals byte x, w, s, h, f, y, c, i, d

inline read_clock(v) {
  if
  :: true
  :: now < last -> now = last
  fi;
  v = now
}

/* --- what the properties are about */

#define bit(s) (1 << (s))
byte live;             /* settings that were armed, and neither fired nor were taken back */
byte deadline[timers]; /* of a timer whose arming is complete; 0: none */
byte watched = 255;    /* the timer that the sleeper counts on */
bool told;             /* the sleeper was told since it began to look */
bool asleep;
byte sleeps_until;     /* 0: forever */

#ifndef CHANNEL

/* Somebody takes hold of x: nobody may count on its old deadline any more. */
inline touch(x) {
  deadline[x] = 0;
  if
  :: watched == x -> watched = 255
  :: else
  fi
}

inline take_back(x) {
  assert(live & bit(T[x].seq));
  live = live & ~bit(T[x].seq)
}

inline arm(s) {
  live = live | bit(s)
}

/* The arming of x for the time w is complete, unless somebody has changed x since. */
inline armed(x, s, w) {
  if
  :: T[x].status != modifying && T[x].seq == s -> deadline[x] = w
  :: else
  fi
}

#else

#define touch(x) skip
#define take_back(x) skip
#define arm(s) skip
#define armed(x, s, w) skip

#endif

#define armed_state(x) (T[x].status == waiting || T[x].status == modified_earlier || T[x].status == modified_later)

/* --- the array, under the lock */

#define head(h) H[h].t[0]
#define tail(h) H[h].t[H[h].n - 1]
#define head_is(h, st) (H[h].n > 0 && T[head(h)].status == st)
#define head_time(h) (H[h].n == 0 -> 0 : H[h].when[0])

inline exchange(h) {
  H[h].t[0] = 1 - H[h].t[0];
  H[h].t[1] = 1 - H[h].t[1];
  H[h].when[0] = H[h].when[0] ^ H[h].when[1];
  H[h].when[1] = H[h].when[0] ^ H[h].when[1];
  H[h].when[0] = H[h].when[0] ^ H[h].when[1]
}

/* sift_up of the new entry, sift_down of the head, heapify */
inline put_in_order(h) {
  if
  :: H[h].n == 2 && H[h].when[1] < H[h].when[0] -> exchange(h)
  :: else
  fi
}

inline push(h, x) {
  assert(H[h].n < timers);
  H[h].t[H[h].n] = x;
  H[h].when[H[h].n] = T[x].when;
  H[h].n++;
  T[x].heap = h;
  put_in_order(h)
}

inline drop_last(h) {
  H[h].n--;
  H[h].t[H[h].n] = 0;
  H[h].when[H[h].n] = 0
}

inline remove_entry(h, i) {
  if
  :: i == 0 && H[h].n == 2 -> exchange(h)
  :: else
  fi;
  drop_last(h)
}

/* The model has fewer states if no value is kept that nobody reads any more. */
inline forget(x) {
  T[x].when = 0;
  T[x].next_when = 0;
  T[x].period = 0;
  T[x].seq = 0;
  T[x].heap = 0
}

/* --- timer_heap.cpp */

inline acquire_lock(h) {
  atomic { !H[h].lock_ -> H[h].lock_ = true }
}

inline unlock_and_publish(h) {
#ifndef MUTANT_hint_outlives_the_heap /* golang issue 51654 */
  if
  :: H[h].n == 0 -> H[h].earliest_change_ = 0
  :: else
  fi;
#endif
  atomic {
    H[h].head_when_ = head_time(h);
    assert(H[h].n != 0 || H[h].earliest_change_ == 0);
    H[h].lock_ = false
  }
}

inline wake_when(h) {
  atomic {
#ifdef MUTANT_head_read_first
    f = H[h].head_when_
#else
    c = H[h].earliest_change_
#endif
  }
  atomic {
#ifdef MUTANT_head_read_first
    c = H[h].earliest_change_;
#else
    f = H[h].head_when_;
#endif
    if
    :: f == 0 || (c != 0 && c < f) -> f = c
    :: else
    fi;
    c = 0
  }
}

inline count_out(h) {
  atomic { assert(H[h].deleted_ > 0); H[h].deleted_-- }
}

/* With -DTOLD, y says whether the sleeper must be told. */
inline note_earlier(h, time) {
#ifndef TOLD
  atomic {
    if
    :: H[h].earliest_change_ == 0 || time < H[h].earliest_change_ -> H[h].earliest_change_ = time
    :: else
    fi
  }
#else
  if
  :: atomic { H[h].earliest_change_ == 0 || time < H[h].earliest_change_ -> H[h].earliest_change_ = time }
#ifdef MUTANT_head_is_asked
    y = (H[h].head_when_ == 0 || time <= H[h].head_when_)
#else
    y = true
#endif
  :: else
  fi
#endif
}

#ifdef TOLD
inline tell(time) {
  atomic {
    told = told || (y && (!asleep || sleeps_until == 0 || time < sleeps_until));
    y = 0
  }
}
#else
#define tell(time) skip
#endif

inline clean_head(h) {
  do
  :: atomic { head_is(h, deleted) -> y = head(h); T[y].status = removing; remove_entry(h, 0); forget(y) }
    count_out(h);
    atomic { T[y].status = removed; y = 0 }
  :: atomic {
      head_is(h, modified_earlier) || head_is(h, modified_later) ->
      y = head(h);
      T[y].status = moving;
      T[y].when = T[y].next_when;
      T[y].next_when = 0;
      H[h].when[0] = T[y].when;
      put_in_order(h)
    }
    atomic { T[y].status = waiting; y = 0 }
  :: H[h].n == 0 || head_is(h, waiting) -> break
  od
}

inline clean_tail(h) {
  do
  :: atomic {
      H[h].deleted_ > 0 && H[h].n > 0 && T[tail(h)].status == deleted ->
      y = tail(h);
      T[y].status = removing;
      drop_last(h);
      forget(y)
    }
    count_out(h);
    atomic { T[y].status = removed; y = 0 }
  :: !(H[h].deleted_ > 0 && H[h].n > 0 && T[tail(h)].status == deleted) -> break
  od
}

inline fold(h) {
  if
  :: c != 0 && (H[h].head_when_ == 0 || c < H[h].head_when_) -> H[h].head_when_ = c
  :: else
  fi
}

inline rebuild(h) {
  c = H[h].earliest_change_;
#ifdef MUTANT_hint_not_folded
  atomic { H[h].earliest_change_ = 0; c = 0 }
#else
#ifdef MUTANT_hint_cleared_blind /* golang issue 47329 */
  atomic { fold(h); c = 0 }
  H[h].earliest_change_ = 0;
#else
  do
  :: c == 0 -> break
  :: atomic { c != 0 -> fold(h) }
    atomic {
      /* Cleared by compare-and-swap: a hint that was lowered meanwhile is folded, too. */
      if
      :: H[h].earliest_change_ == c -> H[h].earliest_change_ = 0; c = 0
      :: else -> c = H[h].earliest_change_
      fi
    }
  od;
#endif
#endif
  do
  :: atomic { i < H[h].n && T[H[h].t[i]].status == deleted ->
      y = H[h].t[i]; T[y].status = removing; remove_entry(h, i); forget(y) }
    count_out(h);
#ifdef MUTANT_pass_skips_an_entry /* golang issue 47762 */
    atomic { T[y].status = removed; y = 0; i++ }
#else
    atomic { T[y].status = removed; y = 0 }
#endif
  :: atomic {
      i < H[h].n && (T[H[h].t[i]].status == modified_earlier || T[H[h].t[i]].status == modified_later) ->
      y = H[h].t[i];
      T[y].status = moving;
      T[y].when = T[y].next_when;
      T[y].next_when = 0;
      H[h].when[i] = T[y].when;
      i++
    }
    atomic { T[y].status = waiting; y = 0 }
  :: atomic { i < H[h].n && T[H[h].t[i]].status == waiting -> i++ }
  :: atomic { i >= H[h].n -> put_in_order(h); i = 0; break }
  od
}

/* y is the head, in state running. */
inline run_one(h) {
  atomic {
    s = T[y].seq;
    d = T[y].when;
    if
    :: T[y].period > 0 ->
      T[y].when = T[y].when + T[y].period * (1 + (w - T[y].when) / T[y].period);
      H[h].when[0] = T[y].when;
      put_in_order(h);
      assert(T[y].status == running);
      T[y].status = waiting
    :: else ->
      remove_entry(h, 0);
      forget(y);
      assert(T[y].status == running);
      T[y].status = no_status
    fi
  }
  atomic { H[h].head_when_ = head_time(h); H[h].lock_ = false }
  call_function(y, s, d);
  atomic { s = 0; d = 0; y = 0 }
  acquire_lock(h)
}

inline del_timer(x) {
  do
  :: atomic { armed_state(x) -> touch(x); take_back(x); T[x].status = modifying; h = T[x].heap }
#ifdef MUTANT_deleted_counted_late
    T[x].status = deleted;
    atomic { H[h].deleted_++; h = 0 }
#else
    H[h].deleted_++;
    atomic { T[x].status = deleted; h = 0 }
#endif
    break
  :: T[x].status == deleted || T[x].status == removing || T[x].status == removed || T[x].status == no_status -> break
  od
}

/* Changes x to the time w, with the setting s, and with p as its period. */
inline change_timer(here, x, p) {
  do
  :: atomic {
      armed_state(x) || T[x].status == deleted ->
      touch(x);
      f = T[x].status == deleted;
      if
      :: !f -> take_back(x)
      :: else
      fi;
      arm(s);
      T[x].status = modifying;
      T[x].seq = s;
      T[x].period = p;
      T[x].next_when = w;
      h = T[x].heap
    }
    if
    :: atomic { f -> f = 0 }
      count_out(h)
    :: else
    fi;
#ifdef MUTANT_scheduler_before_state /* golang issue 38023 */
    acquire_lock(h);
    clean_head(h);
    unlock_and_publish(h);
#endif
#ifdef MUTANT_hint_after_state
    atomic { T[x].status = (w < T[x].when -> modified_earlier : modified_later); armed(x, s, w) }
#endif
    if
    :: w < T[x].when -> note_earlier(h, w)
    :: else
    fi;
#ifndef MUTANT_hint_after_state
    atomic { T[x].status = (w < T[x].when -> modified_earlier : modified_later); armed(x, s, w) }
#endif
    tell(w);
    h = 0;
    break
  :: atomic {
      T[x].status == no_status || T[x].status == removed ->
      touch(x);
      arm(s);
      T[x].status = modifying;
      T[x].seq = s;
      T[x].period = p;
      T[x].when = w
    }
    insert_and_publish(here, x);
    break
  od
}

inline insert_and_publish(h, x) {
  acquire_lock(h);
  clean_head(h);
  clean_tail(h);
  atomic { push(h, x); T[x].status = waiting }
#if defined(TOLD) && !defined(MUTANT_insert_tells_nobody)
  y = (head(h) == x);
#endif
  unlock_and_publish(h);
  atomic {
    if
    :: T[x].status == waiting -> armed(x, s, w)
    :: else
    fi
  }
  tell(w)
}

#ifndef CHANNEL

/* Setting s of x runs, and was due at d. */
inline call_function(x, s, d) {
  atomic {
    assert(d <= w);
    assert(live & bit(s));
    live = live & ~bit(s)
  }
}

#endif

#ifdef CHANNEL

/* timer_core of api/src/time.cpp: its node is T[0]. */
bool mutex;      /* chan.mutex */
byte core_when;
byte core_seq;
byte tick;       /* its period */
bool armed_;
bool value;      /* one is in the buffer... */
byte value_seq;  /* ...of this setting */
mtype = { nobody, waits, gave_up };
mtype receivers = nobody; /* gave_up: the receiver is about to take itself from the queue */
bool got;        /* the receiver that waited was given a value */

bool unreceived; /* a setting without period exists, and its value was not received */

inline lock_chan() {
  !mutex -> mutex = true
}

inline set(time, p) {
  core_when = time;
  tick = p;
  armed_ = true;
  unreceived = true
}

inline disarm() {
  assert(tick != 0 || unreceived == (armed_ || value)); /* what stop and reset return */
  unreceived = false;
  armed_ = false;
  core_seq++;
  value = false;
  value_seq = 0
}

#define in_heap (T[0].status != no_status && T[0].status != deleted && \
                 T[0].status != removing && T[0].status != removed)

/* At the time z, moves core_when past it. */
inline skip_to() {
  if
  :: core_when <= z -> core_when = core_when + tick * (1 + (z - core_when) / tick)
  :: else
  fi
}

inline send(setting) {
  assert(z >= core_when);
  if
  :: tick == 0 -> armed_ = false
  :: else -> skip_to()
  fi;
  f = (receivers == waits); /* to_wake */
  if
  :: f -> assert(setting == core_seq); receivers = nobody; got = true; unreceived = false
  :: !f && !value -> value = true; value_seq = setting
  :: else
  fi
}

#ifdef MUTANT_seq_not_checked
#define still_counts(s, d) (armed_ && z >= core_when)
#else
#ifdef MUTANT_time_not_checked
#define still_counts(s, d) (s == core_seq && armed_)
#else
#ifdef MUTANT_due_compared
#define still_counts(s, d) (s == core_seq && armed_ && d >= core_when)
#else
#define still_counts(s, d) (s == core_seq && armed_ && z >= core_when)
#endif
#endif
#endif

/* fire */
inline call_function(x, s, d) {
  atomic {
    !mutex;
    read_clock(z);
    if
    :: still_counts(s, d) -> mutex = true; send(s); z = 1
    :: else -> z = 0
    fi
  }
  if
  :: z == 1 ->
    z = 0;
    if
    :: !f -> del_timer(0)
    :: f -> f = 0
    fi;
    mutex = false
  :: z == 0
  fi
}

#endif

/* Checks or tidies heap b, n times, on one thread. `at`: the time; 0: what the clock shows. */
proctype checker(byte b, n, at; bool own) {
  locals;
  bool may_clear, tidying, adjusting;
#ifdef CHANNEL
  byte z;
#endif
next_one:
  if
  :: n == 0 -> goto over
  :: n > 0 && at != 0 -> w = at
  :: n > 0 && at == 0 -> atomic { read_clock(w) };
    if
    :: may_clear = true     /* its own P; a stealer: the P idles */
    :: own -> tidying = true
    :: !own
    fi
  fi;
  n--;
  if
  :: tidying && H[b].deleted_ > 0
  :: tidying && H[b].deleted_ == 0 -> goto finished
  :: !tidying ->
    wake_when(b);
    if
    :: atomic { f != 0 && (w >= f || (may_clear && H[b].deleted_ > 0)) -> f = 0 }
    :: atomic { else -> f = 0; goto finished }
    fi
  fi;
  acquire_lock(b);
  if
  :: tidying -> goto rebuild_all
  :: tidying -> clean_head(b); goto unlock
  :: !tidying
  fi;
#ifndef MUTANT_no_adjust
  if
  :: atomic { H[b].earliest_change_ != 0 && H[b].earliest_change_ <= w -> adjusting = true; goto rebuild_all }
  :: else
  fi;
#endif
run_heads:
  do
  :: atomic { head_is(b, waiting) && T[head(b)].when <= w ->
      y = head(b);
#ifdef MUTANT_fire_without_cas
    }
    atomic {
#endif
      touch(y); T[y].status = running }
    run_one(b)
  :: head_is(b, deleted) || head_is(b, modified_earlier) || head_is(b, modified_later) -> clean_head(b)
  :: H[b].n == 0 || (head_is(b, waiting) && T[head(b)].when > w) -> break
  od;
  if
  :: may_clear && H[b].deleted_ > 0 -> goto rebuild_all
  :: else -> goto unlock
  fi;
rebuild_all:
  rebuild(b);
  if
  :: atomic { adjusting -> adjusting = false; goto run_heads }
  :: else
  fi;
unlock:
  unlock_and_publish(b);
finished:
  atomic { w = 0; may_clear = false; tidying = false; goto next_one };
over:
  done++
}

#ifndef CHANNEL

/* Settings 0 and 1 are the first ones of the two timers; those of the modifier follow. */

bool added; /* T[0] was added; until then its adder keeps others away from it */

inline some_timer() {
  if
  :: added -> x = 0
  :: x = 1
  fi
}

proctype adder() {
  locals;
  atomic {
    if
    :: w = 5
#ifndef SLEEPER
    :: w = 2
#endif
    fi;
    assert(T[0].status == no_status || T[0].status == removed);
    T[0].when = w;
    arm(0)
  }
  insert_and_publish(0, 0); /* add */
  atomic { added = true; run checker(0, checks, 0, true) }
}

proctype modifier() {
  locals;
  byte k;
  do
  :: k < changes ->
    atomic {
      k++;
      s = k + 1;
      some_timer();
      if
      :: w = 1
      :: w = 3
      fi
    }
    change_timer(1, x, 0);
    atomic { x = 0; w = 0; s = 0 }
  :: else -> break
  od;
  done++
}

proctype deleter() {
  locals;
  byte k;
  do
  :: k < stops ->
    atomic { k++; some_timer() }
    del_timer(x);
    x = 0
  :: else -> break
  od;
  done++
}

#ifdef TOLD

proctype sleeper() {
  byte f, c, u;
look:
  wake_when(0);
  u = f;
  wake_when(1);
  atomic {
    sleeps_until = (f != 0 && (u == 0 || f < u) -> f : u);
    asleep = true;
    f = 0;
    u = 0
  }
end_asleep:
  atomic {
    told ->
    told = false;
    asleep = false;
    sleeps_until = 0;
    goto look
  }
}

#else

proctype sleeper() {
  byte h, f, c, d;
  atomic {
    if
    :: deadline[0] != 0 -> watched = 0; h = T[0].heap; d = deadline[0]
    :: deadline[1] != 0 -> watched = 1; h = T[1].heap; d = deadline[1]
    :: true
    fi
  }
  if
  :: watched != 255 -> wake_when(h)
  :: else
  fi;
  atomic {
    assert(watched == 255 || (f != 0 && f <= d));
    watched = 255;
    d = 0;
    f = 0;
    h = 0;
    done++
  }
}

#endif

#define until(x) (T[x].status == waiting -> T[x].when : \
                  (T[x].status == modified_earlier || T[x].status == modified_later -> T[x].next_when : for_good))
#define overslept(x) (until(x) < (sleeps_until == 0 -> for_good : sleeps_until))
#define late(x) (T[x].status == waiting && T[x].when <= last || \
                 (T[x].status == modified_earlier || T[x].status == modified_later) && T[x].next_when <= last)

init {
  atomic {
    T[1].when = 4;
    T[1].seq = 1;
    T[1].status = waiting;
    live = bit(1);
    deadline[1] = 4;
    push(0, 1);
    H[0].head_when_ = 4;
    run adder();
    run checker(0, steals, 0, false);
    run modifier();
    run deleter();
#if defined(SLEEPER) || defined(TOLD)
    run sleeper()
#endif
#ifndef SLEEPER
    done++
#endif
  }
#ifdef TOLD
  atomic { done == 5 && asleep && !told -> assert(!overslept(0) && !overslept(1)) }
#endif
  atomic { done == 5 -> run checker(0, 1, last, false); run checker(1, 1, last, false) }
  atomic { done == 7 -> assert(!late(0) && !late(1)); run checker(0, 1, for_good, false); run checker(1, 1, for_good, false) }
  atomic { done == 9 -> assert(live == 0) }
}

#endif

#ifdef CHANNEL

proctype resetter() {
  locals;
  byte k, p;
  do
  :: k < changes ->
    atomic {
      lock_chan();
      k++;
      disarm();
      if
      :: w = 1
      :: w = 4
      fi;
      if
      :: p = 0
      :: p = 1
      fi;
      set(w, p)
    }
    if
#ifdef MUTANT_reset_forgets_waiter
    :: in_heap ->
#else
    :: in_heap || receivers != nobody ->
#endif
      s = core_seq;
      change_timer(0, 0, p);
      s = 0
    :: else
    fi;
    atomic { mutex = false; w = 0; p = 0; f = 0 }
  :: else -> break
  od;
  done++
}

proctype stopper() {
  locals;
  byte k;
  do
  :: k < stops ->
    atomic { lock_chan(); k++; disarm() }
    if
    :: in_heap -> del_timer(0)
    :: else
    fi;
    mutex = false
  :: else -> break
  od;
  done++
}

bool received_all;

proctype receiver() {
  locals;
  byte k, z;
  do
  :: k < receives ->
    if
    :: atomic {
        lock_chan();
        k++;
        /* timer_catch_up */
        if
        :: armed_ && value && tick != 0 -> read_clock(z); skip_to()
        :: armed_ && !value -> read_clock(z);
          if
          :: z >= core_when -> send(core_seq)
          :: else
          fi
        :: else
        fi;
        z = 0;
        f = 0;
        if
        :: value -> assert(value_seq == core_seq); value = false; value_seq = 0; unreceived = false; mutex = false; goto next_one
        :: else
        fi
      }
    fi;
    /* timer_begin_wait */
    if
    :: armed_ && !in_heap -> atomic { w = core_when; s = core_seq };
      change_timer(0, 0, tick);
      atomic { w = 0; s = 0; f = 0 }
    :: else
    fi;
    atomic { receivers = waits; mutex = false }
    if
    :: atomic { got -> got = false }
    :: atomic { receivers == waits -> receivers = gave_up };
      atomic { !mutex -> receivers = nobody }
    fi;
next_one:
  :: else -> break
  od;
  received_all = true
}

init {
  atomic {
    if
    :: set(2, 0)
    :: set(2, 1)
    fi;
    run checker(0, checks, 0, true);
    run resetter();
    run stopper();
    run receiver()
  }
  atomic {
    done == 3 && !mutex && (received_all || receivers == waits) ->
    now = for_good;
    run checker(0, 1, for_good, false)
  }
  atomic { done == 4 && !mutex -> assert(!(armed_ && receivers == waits && core_when <= for_good)) }
}

#endif
