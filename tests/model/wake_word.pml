/* The wake word, "who wins a wake-up": G::begin_wait, claim and abandon in runtime/g.hpp; what park_until,
 * wait_timed_out and ready (sched/park.cpp) and stop_runtime (sched/lifecycle.cpp) make of it.
 *
 * Who takes part:
 *   G        waits `waits` times. With a ticket: G publishes it, and each waker may end the wait; some time later G may
 *            claim the wait itself, as a thread that is not weft's does when its time has come. Or without a ticket: G
 *            is on a list, and the waker that unlinks it ends the wait
 *   wakers   `wakers` of them, such as a select's channels, or a timer that lies in its heap long after the wait. Each
 *            takes the ticket that is published, and claims it at any time: early, or when G waits for something else
 *   the end  with -DENDS: the end of the run() in which G is. G is a goroutine then, which does not move from there on;
 *            the wakers are threads that stay. Another run() begins afterwards
 *
 * Properties:
 *   - The winner claims the wait that G is in, and nobody has won that wait before.
 *   - G goes on when the winner is done with it, not before, and sees who it was.
 *   - When nothing moves any more, each wait has had its winner: G has come to its end, or is abandoned.
 *   - Once G is abandoned, nobody wins, with a ticket or without.
 *   - The winner finds G waiting in ready(), or learns there that G never runs again.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent. There is one word; what else is written travels with a lock, or with ready.
 *   - The number is a byte. It goes on from one life of a G to the next, so a life is nothing but some of the waits.
 *   - Publishing, unlinking and ready are one step each, under a lock.
 *   - The run() may end wherever G is, also in the midst of begin_wait, where none is left behind.
 *
 * States: 888,873; with -DENDS 1,792,783.
 */

#ifndef waits
#define waits 6
#endif
#ifndef wakers
#define wakers 3
#endif
#define no_ticket 0
#define nobody 255
#define itself 254

/* --- G */
byte wake; /* (wait number << 1) | claimed */
byte value = nobody; /* wake_value */
mtype = { running, waiting, abandoned };
mtype state = running;

byte published, publications;
bool listed; /* G waits without a ticket */
bool at_end;
bool stands; /* G's run() is over: G does not move */
bool runs = true; /* sched.running */

/* --- what the properties are about */
byte in_wait; /* the ticket of its wait; no_ticket: it has none, or there is no wait */
byte winner = nobody; /* of its wait */
bool is_over; /* abandon() has returned */

/* Part of the step that wins. */
inline wins(who, ticket) {
  assert(!is_over && in_wait == ticket && winner == nobody);
  winner = who
}

#ifdef MUTANT_any_ticket
#define wanted(ticket) (wake & 254)
#else
#define wanted(ticket) ((ticket) << 1)
#endif

/* A waker that does not win goes to `lost`. */
inline claim(who, ticket) {
#ifdef MUTANT_without_cas
  if
  :: wake != wanted(ticket) -> goto lost
  :: wake == wanted(ticket)
  fi;
  atomic { wake = wanted(ticket) | 1; wins(who, ticket) }
#else
  atomic {
    if
    :: wake != wanted(ticket) -> goto lost
    :: else -> wake = wanted(ticket) | 1; wins(who, ticket)
    fi
  }
#endif
}

proctype goroutine() {
  byte n, t;
end_standing:
  atomic {
    !stands;
    if
    :: n == waits -> at_end = true; goto over
    :: n < waits -> n++; listed = true; state = waiting; goto end_waiting
    :: n < waits -> n++
    fi
  }
  /* begin_wait */
end_begin:
#ifdef MUTANT_same_number
  atomic { !stands -> t = (wake >> 1) | 1 }
#else
  atomic { !stands -> t = (wake >> 1) + 1 }
#endif
end_number:
  atomic { !stands -> wake = t << 1 }
end_publish:
  atomic { !stands -> in_wait = t; published = t; publications++; state = waiting }
#ifndef ENDS
  /* park_until, of a thread */
  if
  :: goto end_waiting
  :: true
  fi;
  claim(itself, t);
  atomic { state = running; value = itself; goto on }
lost:
#ifdef MUTANT_time_limit_goes_on
  goto on;
#else
  skip;
#endif
#endif
end_waiting:
  atomic { !stands && state == running }
on:
  atomic {
    assert(winner != nobody && value == winner);
    winner = nobody;
    value = nobody;
    in_wait = no_ticket;
    t = 0;
    goto end_standing
  }
over:
  skip
}

proctype waker(byte me) {
  byte t, seen;
end_looking:
  if
  :: atomic { publications != seen -> seen = publications; t = published }
    claim(me, t)
  :: atomic { listed -> listed = false }
    atomic { /* claim(no_ticket) */
      if
      :: state == abandoned -> goto lost
      :: else -> wins(me, no_ticket)
      fi
    }
  fi;
  value = me;
  atomic { /* ready */
    if
    :: !runs
#ifndef MUTANT_ready_does_not_ask
    :: runs && state == abandoned
    :: runs && state != abandoned ->
#else
    :: runs ->
#endif
      assert(state == waiting);
      state = running
    fi
  }
lost:
  atomic { t = 0; goto end_looking }
}

#ifdef ENDS
proctype the_end() {
  byte n;
  atomic { stands = true; runs = false }
  /* abandon */
#ifndef MUTANT_word_stays
  n = (wake >> 1) + 1;
  wake = n << 1 | 1;
#endif
#ifdef MUTANT_state_stays
  is_over = true;
#else
  atomic { state = abandoned; is_over = true }
#endif
  runs = true
}
#endif

proctype at_rest() {
end_watching:
  atomic {
    timeout;
    assert(is_over || at_end);
    assert(is_over || (winner == nobody && !listed))
  }
}

init {
  byte i;
  atomic {
    run goroutine();
    do
    :: i < wakers -> run waker(i); i++
    :: else -> break
    od;
#ifdef ENDS
    run the_end();
#endif
    run at_rest()
  }
}
