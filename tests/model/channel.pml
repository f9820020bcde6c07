/* Channels and select: api/src/chan_core.hpp, chan.cpp, select.cpp; on top of the wake word (wake_word.pml).
 *
 * Who takes part:
 *   goroutines  `goroutines` of them, each with `calls` calls. A call is a send or a receive on one of two channels, or
 *               a select over two cases; with -DCLOSES also a close; with -DTRIES a try_send or try_recv in place of
 *               select
 *   limits      with -DLIMITS: a call may have a time limit, which passes at any moment while it waits
 *   commits     the commit step of a park: gives up the locks of the goroutine that parks, which may go on meanwhile
 * `capacity` of both channels: 0, or with -Dcapacity=1.
 *
 * Properties:
 *   - A value is received at most once. Of a select one case is done, the one that it returns. What was sent has been
 *     received or is in the buffer, and nothing else is.
 *   - Nobody touches a waiter, or the list of locks, of a call that has returned. No such waiter is left in a queue.
 *   - When nothing moves any more, nobody waits who could be served, no lock is held, and nobody waits for a lock.
 *   - -DTRIES: if a call is told "not ready" without the lock, this was so at some moment during the call.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent.
 *   - What is done to a channel under its lock is one step, except for a claim, which the other channel's side may win:
 *     unlinking a waiter and claiming it are two steps.
 *   - Left out: timers' channels (timer.pml, -DCHANNEL); nil channels, references, values that are moved; the end of
 *     the run(), where no wait is won any more (wake_word.pml).
 *   - close wakes receivers in batches of one.
 *
 * States: 4,279,205; with -Dcapacity=1 2,776,196; with -DCLOSES 5,949,167; with -DTRIES -DCLOSES 362,606; with
 * -DLIMITS -DCLOSES, two goroutines and two calls 21,050,568.
 */

#ifndef goroutines
#define goroutines 3
#endif
#ifndef calls
#define calls 1
#endif
#ifndef capacity
#define capacity 0
#endif
#define channels 2
#define none 255

mtype = { done, would_block, closed_ };

/* --- channels */
bool lock_[channels];
bool closed[channels];
byte count[channels];
byte buffer[channels]; /* a value; 0: none */
chan queue[2 * channels] = [2 * goroutines] of { byte };
#define senders(c) queue[2 * (c) + 1]
#define receivers(c) queue[2 * (c)]
#define is_empty(queue) (len(queue) == 0)

/* --- waiters. The one of case k of goroutine g is 2 * g + k */
#define node(g, k) (2 * (g) + (k))
#define owner(w) ((w) / 2)
byte value[2 * goroutines]; /* send: the value to move from; receive: the value that was moved here */
byte ticket[2 * goroutines];
bool queued[2 * goroutines];
bool success[2 * goroutines];

/* --- goroutines */
byte wake_word[goroutines];
bool parked[goroutines];
bool resumed[goroutines]; /* ready() was called */
bool timed_out[goroutines];
bool has_limit[goroutines];
byte served[goroutines] = none; /* wake_value */
byte to_unlock[goroutines];     /* what the commit step unlocks: a bit for each channel */
bool in_call[goroutines];
byte over;

/* --- what has happened. A bit for each value */
#define bit(v) (1 << (v))
int sent, received;

#ifdef TRIES
bool trying[goroutines], try_send_[goroutines], was_blocked[goroutines];
byte try_channel[goroutines];

#define blocked(c, send) (!closed[c] && (send -> is_empty(receivers(c)) && count[c] >= capacity : \
                                                 is_empty(senders(c)) && count[c] == 0))

inline note_blocked(g) {
  if
  :: trying[g] && blocked(try_channel[g], try_send_[g]) -> was_blocked[g] = true
  :: else
  fi
}

/* Part of each step that changes a channel. */
inline changed() {
  note_blocked(0);
  note_blocked(1);
  note_blocked(2)
}
#else
#define changed() skip
#endif

/* --- one channel */

inline lock_channel(at) {
  atomic { !lock_[at] -> lock_[at] = true }
}

#define unlock_channel(at) lock_[at] = false

#define no_ticket 0

/* Unlinks the first waiter of queue q. The caller then claims it, and leaves its loop, or drops it. */
inline unlink_first() {
  queue[q] ? w;
  assert(in_call[owner(w)]);
  queued[w] = false;
  changed()
}

#ifdef MUTANT_claims_blind
#define may_claim(w) true
#else
#define may_claim(w) (ticket[w] == no_ticket || wake_word[owner(w)] == (ticket[w] << 1))
#endif

inline claim() {
  assert(in_call[owner(w)]);
  wake_word[owner(w)] = wake_word[owner(w)] | (ticket[w] != no_ticket)
}

/* v: what is sent. Sets result, and w if that waiter has to be woken. */
inline send_now(at) {
  q = 2 * at;
  do
  :: atomic { closed[at] -> result = closed_; break }
  :: atomic {
      !closed[at] && is_empty(queue[q]) ->
      if
      :: count[at] < capacity -> count[at]++; buffer[at] = v; result = done
      :: else -> result = would_block
      fi;
      changed();
      break
    }
  :: atomic { !closed[at] && !is_empty(queue[q]) -> unlink_first() }
    atomic {
      if
      :: may_claim(w) ->
        claim();
        assert(value[w] == 0);
        value[w] = v;
        success[w] = true;
        result = done;
        break
      :: else -> w = none
      fi
    }
  od
}

/* Sets v to what was received, and result and w as send_now does. */
inline recv_now(at) {
  q = 2 * at + 1;
  if
  :: count[at] > 0 ->
#ifndef MUTANT_receive_admits_no_sender
    do
    :: atomic { is_empty(queue[q]) -> v = buffer[at]; buffer[at] = 0; count[at]--; changed(); break }
    :: atomic { !is_empty(queue[q]) -> unlink_first() }
      atomic {
        if
        :: may_claim(w) -> claim(); v = buffer[at]; buffer[at] = value[w]; success[w] = true; break
        :: else -> w = none
        fi
      }
    od;
#else
    atomic { v = buffer[at]; buffer[at] = 0; count[at]--; changed() }
#endif
    result = done
  :: count[at] == 0 ->
    do
    :: atomic { is_empty(queue[q]) -> v = 0; result = (closed[at] -> closed_ : would_block); break }
    :: atomic { !is_empty(queue[q]) -> unlink_first() }
      atomic {
        if
        :: may_claim(w) -> claim(); v = value[w]; success[w] = true; result = done; break
        :: else -> w = none
        fi
      }
    od
  fi
}

inline wake() {
  atomic {
    if
    :: w != none ->
      assert(in_call[owner(w)] && !resumed[owner(w)]);
      served[owner(w)] = w;
      resumed[owner(w)] = true;
      w = none
    :: else
    fi
  }
}

/* --- a goroutine */

inline unlink(which, at, sends) {
  if
  :: queued[node(me, which)] ->
    q = 2 * at + sends;
    queue[q] ?? eval(node(me, which));
    queued[node(me, which)] = false;
    changed()
  :: else
  fi
}

inline enqueue(which, at, sends) {
  value[node(me, which)] = (sends -> mine : 0);
  success[node(me, which)] = false;
  q = 2 * at + sends;
  queue[q] ! node(me, which);
  queued[node(me, which)] = true;
  changed()
}

#define mask (bit(c[0]) | (cases == 2 -> bit(c[1]) : 0))

inline lock_all() {
#ifdef MUTANT_no_lock_order
  if
  :: true -> atomic { k = low; low = high; high = k; k = 0 }
  :: true
  fi;
#endif
  lock_channel(low);
  if
  :: high != low -> lock_channel(high)
  :: else
  fi
}

inline unlock_all() {
  if
  :: high != low -> unlock_channel(high)
  :: else
  fi;
  unlock_channel(low)
}

inline unlink_all() {
  unlink(0, c[0], send[0]);
  if
  :: cases == 2 -> unlink(1, c[1], send[1])
  :: else
  fi
}

/* The side that served a case has unlinked its waiter. */
inline unlink_loser(which) {
  if
  :: served[me] != node(me, which) ->
    lock_channel(c[which]);
#ifndef MUTANT_losers_stay
    atomic { unlink(which, c[which], send[which]) }
#endif
    unlock_channel(c[which])
  :: else
  fi
}

/* Case `which` is done. */
inline is_done(which, what) {
  if
  :: send[which] -> assert(what == mine); sent = sent | bit(mine)
  :: else -> assert(what != 0 && !(received & bit(what))); received = received | bit(what)
  fi
}

inline take_back(which) {
  assert(send[which] || value[node(me, which)] == 0)
}

/* The call returns. Nothing of it may be left. */
inline ends() {
  atomic {
    assert(to_unlock[me] == 0);
    assert(!queued[node(me, 0)] && !queued[node(me, 1)]);
    value[node(me, 0)] = 0;
    value[node(me, 1)] = 0;
    success[node(me, 0)] = false;
    success[node(me, 1)] = false;
    ticket[node(me, 0)] = no_ticket;
    ticket[node(me, 1)] = no_ticket;
    served[me] = none;
    timed_out[me] = false;
    has_limit[me] = false;
    in_call[me] = false;
    c[0] = 0;
    c[1] = 0;
    send[0] = false;
    send[1] = false;
    cases = 0;
    low = 0;
    high = 0;
    k = 0;
    v = 0;
    q = 0;
    result = 0;
    mine = 0
  }
}

/* Case x of 4 is on channel x / 2, and a send if x is odd. Kinds of calls: 0 to 3 have one case; with -DTRIES, 4 to 7
 * are the same but do not wait at all; otherwise 4 to 13 have two cases, also the same one twice. The last kinds, with
 * -DCLOSES, are closes. */
#ifdef TRIES
#define first_close 8
#else
#define first_close 14
#endif
#ifdef CLOSES
#define kinds (first_close + 2)
#else
#define kinds first_close
#endif

inline some_kind() {
  do
  :: kind < kinds - 1 -> kind++
  :: break
  od
}

inline set_case(which, x) {
  c[which] = (x) / 2;
  send[which] = (x) % 2
}

inline set_cases() {
  if
  :: kind >= first_close -> cases = 1; c[0] = kind - first_close
#ifdef TRIES
  :: kind < 8 -> cases = 1; set_case(0, kind % 4)
#else
  :: kind < 4 -> cases = 1; set_case(0, kind)
  :: kind >= 4 && kind < 8 -> cases = 2; set_case(0, 0); set_case(1, kind - 4)
  :: kind >= 8 && kind < 11 -> cases = 2; set_case(0, 1); set_case(1, kind - 7)
  :: kind >= 11 && kind < 13 -> cases = 2; set_case(0, 2); set_case(1, kind - 9)
  :: kind == 13 -> cases = 2; set_case(0, 3); set_case(1, 3)
#endif
  fi
}

proctype goroutine(byte me, kind) {
  byte n, k, v, w = none, q, mine, cases, low, high;
  byte c[2];
  bool send[2];
  mtype result;
next:
  atomic {
    if
    :: n == calls -> over++; goto finished
    :: n == 0
    :: n > 0 && n < calls -> some_kind()
    fi;
    n++;
    mine = 1 + me * calls + n - 1;
    in_call[me] = true;
    set_cases();
    low = (cases == 2 && c[1] < c[0] -> c[1] : c[0]);
    high = (cases == 2 && c[1] > c[0] -> c[1] : c[0]);
    if
    :: kind < first_close
#ifdef CLOSES
    :: kind >= first_close -> kind = 0; goto close
#endif
    fi;
#ifdef LIMITS
    if
    :: has_limit[me] = true
    :: true
    fi
#endif
  }

#ifdef TRIES
  if
  :: kind >= 4 ->
    atomic { kind = 0; trying[me] = true; try_channel[me] = c[0]; try_send_[me] = send[0]; changed() }
    /* send_would_block, recv_would_block */
#ifdef MUTANT_closed_read_first
    if
    :: closed[c[0]] -> goto try_locked
    :: !closed[c[0]]
    fi;
#endif
    if
    :: send[0] ->
      if
      :: !is_empty(receivers(c[0])) -> goto try_locked
      :: is_empty(receivers(c[0]))
      fi;
      if
      :: count[c[0]] < capacity -> goto try_locked
      :: count[c[0]] >= capacity
      fi
    :: !send[0] ->
      if
      :: count[c[0]] > 0 -> goto try_locked
      :: count[c[0]] == 0
      fi;
      if
      :: !is_empty(senders(c[0])) -> goto try_locked
      :: is_empty(senders(c[0]))
      fi
    fi;
#ifndef MUTANT_closed_read_first
    if
    :: closed[c[0]] -> goto try_locked
    :: !closed[c[0]]
    fi;
#endif
    assert(was_blocked[me]);
    goto tried;
try_locked:
    lock_channel(c[0]);
    v = mine;
    if
    :: send[0] -> send_now(c[0])
    :: else -> recv_now(c[0])
    fi;
    unlock_channel(c[0]);
    atomic {
      if
      :: result == done -> is_done(0, v)
      :: else
      fi
    }
    wake();
tried:
    atomic { trying[me] = false; was_blocked[me] = false; try_channel[me] = 0; try_send_[me] = false }
    ends();
    goto next
  :: kind < 4 -> kind = 0
  fi;
#endif

  lock_all();
  /* Looks, in any order, which case can be done at once. */
  atomic {
    kind = 0;
    v = mine;
    if
    :: k = 0
    :: cases == 2 -> k = 1
    fi
  }
  if
  :: send[k] -> send_now(c[k])
  :: else -> recv_now(c[k])
  fi;
  if
  :: result == would_block && cases == 2 ->
    atomic { k = 1 - k; v = mine }
    if
    :: send[k] -> send_now(c[k])
    :: else -> recv_now(c[k])
    fi
  :: else
  fi;
  if
  :: result != would_block ->
    unlock_all();
    atomic {
      if
      :: result == done -> is_done(k, v)
      :: else
      fi
    }
    wake();
    ends();
    goto next
  :: else
  fi;
#ifdef MUTANT_looks_away
  unlock_all();
  lock_all();
#endif

  /* Enqueues the waiters, and parks. */
  atomic {
    if
    :: cases == 2 || has_limit[me] ->
#ifndef MUTANT_no_ticket
      wake_word[me] = ((wake_word[me] >> 1) + 1) << 1;
      ticket[node(me, 0)] = wake_word[me] >> 1;
      ticket[node(me, 1)] = wake_word[me] >> 1
#endif
    :: else
    fi;
    if
    :: enqueue(0, c[0], send[0]);
      if
      :: cases == 2 -> enqueue(1, c[1], send[1])
      :: else
      fi
    :: cases == 2 -> enqueue(1, c[1], send[1]); enqueue(0, c[0], send[0])
    fi;
    parked[me] = true;
    to_unlock[me] = mask
  }
end_parked:
  atomic { resumed[me] -> resumed[me] = false; parked[me] = false }

  if
  :: cases == 1 ->
    if
    :: timed_out[me] ->
#ifdef MUTANT_times_out_unlocked
      atomic { unlink_all() }
#else
      lock_channel(c[0]);
#ifndef MUTANT_timed_out_stays
      atomic { unlink_all() }
#endif
      unlock_channel(c[0])
#endif
    :: else
    fi;
    k = 0
  :: else ->
#ifdef MUTANT_unlinks_unlocked
    atomic { unlink_all() }
#else
    unlink_loser(0);
    unlink_loser(1);
#endif
    k = (served[me] == none -> 0 : served[me] & 1)
  fi;
  atomic {
    assert(timed_out[me] == (served[me] == none));
    if
    :: !timed_out[me] && success[served[me]] ->
      is_done(k, value[served[me]]);
      if
      :: cases == 2 -> take_back(1 - k)
      :: else
      fi
    :: else -> take_back(0); take_back(1)
    fi
  }
  ends();
  goto next;

#ifdef CLOSES
close:
  lock_channel(c[0]);
  if
  :: closed[c[0]] -> unlock_channel(c[0]); goto closed_it
  :: else
  fi;
  atomic { closed[c[0]] = true; changed() }
#ifndef MUTANT_close_forgets_senders
  q = 2 * c[0] + 1;
  do
  :: is_empty(queue[q]) -> break
  :: atomic { !is_empty(queue[q]) -> unlink_first() }
    atomic {
      if
      :: may_claim(w) -> claim(); success[w] = false; v = v | bit(w)
      :: else
      fi;
      w = none
    }
  od;
#endif
#ifndef MUTANT_close_forgets_receivers
  q = 2 * c[0];
  do
  :: is_empty(queue[q]) -> break
  :: atomic { !is_empty(queue[q]) -> unlink_first() }
    if
    :: atomic { may_claim(w) -> claim(); success[w] = false }
      unlock_channel(c[0]);
      wake();
      lock_channel(c[0])
    :: atomic { else -> w = none }
    fi
  od;
#endif
  unlock_channel(c[0]);
  do
  :: atomic {
      v != 0 ->
      w = 0;
      do
      :: !(v & bit(w)) -> w++
      :: else -> break
      od;
      v = v & ~bit(w)
    }
    wake()
  :: v == 0 -> break
  od;
closed_it:
  ends();
  goto next;
#endif
finished:
  skip
}

/* --- beside the goroutines */

inline commit(g) {
  assert(in_call[g]);
  if
  :: to_unlock[g] & bit(1) && to_unlock[g] & bit(0) -> lock_[1] = false; to_unlock[g] = bit(0)
  :: to_unlock[g] == bit(1) -> lock_[1] = false; to_unlock[g] = 0
  :: to_unlock[g] == bit(0) -> lock_[0] = false; to_unlock[g] = 0
  fi
}

proctype commits() {
end_idle:
  do
  :: atomic { to_unlock[0] != 0 -> commit(0) }
  :: atomic { to_unlock[1] != 0 -> commit(1) }
#if goroutines > 2
  :: atomic { to_unlock[2] != 0 -> commit(2) }
#endif
#if goroutines > 3
  :: atomic { to_unlock[3] != 0 -> commit(3) }
#endif
  od
}

#ifdef LIMITS
#define may_pass(g) (parked[g] && has_limit[g] && ticket[node(g, 0)] != no_ticket && \
                     wake_word[g] == (ticket[node(g, 0)] << 1))

inline pass(g) {
  wake_word[g] = wake_word[g] | 1;
  timed_out[g] = true;
  resumed[g] = true
}

proctype limits() {
end_idle:
  do
  :: atomic { may_pass(0) -> pass(0) }
  :: atomic { may_pass(1) -> pass(1) }
#if goroutines > 2
  :: atomic { may_pass(2) -> pass(2) }
#endif
#if goroutines > 3
  :: atomic { may_pass(3) -> pass(3) }
#endif
  od
}
#endif

/* Nobody waits at c who could be served. A goroutine that waits in both queues of c is the only one there. */
inline nobody_in_vain(c) {
  assert(!lock_[c]);
  assert(!closed[c] || is_empty(senders(c)) && is_empty(receivers(c)));
  assert(count[c] == 0 || is_empty(receivers(c)));
  assert(count[c] == capacity || is_empty(senders(c)));
  if
  :: !is_empty(senders(c)) && !is_empty(receivers(c)) ->
    assert(len(senders(c)) == 1 && len(receivers(c)) == 1);
    senders(c) ? <a>;
    receivers(c) ? <b>;
    assert(owner(a) == owner(b))
  :: else
  fi
}

init {
  byte kind, a, b;
  atomic {
    /* Goroutines differ only by their numbers, so their first calls are of growing kinds. */
    some_kind();
    run goroutine(0, kind);
    some_kind();
    run goroutine(1, kind);
#if goroutines > 2
    some_kind();
    run goroutine(2, kind);
#endif
#if goroutines > 3
    some_kind();
    run goroutine(3, kind);
#endif
    kind = 0;
#ifdef LIMITS
    run limits();
#endif
    run commits()
  }
  atomic {
    timeout ->
    nobody_in_vain(0);
    nobody_in_vain(1);
    assert(sent == (received | (count[0] > 0 -> bit(buffer[0]) : 0) | (count[1] > 0 -> bit(buffer[1]) : 0)))
  }
}
