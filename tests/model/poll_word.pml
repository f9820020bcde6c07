/* The poll word of one direction of a descriptor, its deadline, and "publishInfo": netpoll/poll_desc.cpp; io_wait and
 * park_for_io of sched/io.cpp; attempt and "drained" of api/src/net, as far as it is about the word.
 *
 * Who takes part:
 *   reader    reads until the descriptor is closed: drops a kept notification (poll_reset), tries, and waits if there
 *             is nothing to read; or waits at once, after a read that got all. When its deadline has passed, it goes on
 *             if the deadline is changed
 *   pollers   two, as a late event may meet a new one. `events` times in all, something arrives and is reported
 *             (poll_event)
 *   setter    sets the deadline `sets` times: to none, to a later one, or to one that is past. Or there is no memory
 *   timers    two Ms on which the deadline's timer fires: one may have taken it off its heap long before
 *   closer    with -DCLOSES: closes the descriptor (poll_evict). When the reader has left, the descriptor is freed, and
 *             opened again for another life (poll_open), `lives` in all
 *
 * Properties:
 *   - When nothing moves any more, the reader does not sleep although there is something to read, the deadline has
 *     passed or the descriptor is closed.
 *   - Only a sleeper is readied: a sleep has one wake-up, and a wait that does not come to sleep has none.
 *   - A deadline that was changed, or is of an earlier life, changes nothing and wakes nobody. One that stands passes.
 *   - Without memory for a timer, the deadline stays what it was.
 *   - An event of an earlier life does nothing in the next one, if it comes to look at the tag only then.
 *   - What poll_prepare_wait and poll_finish_wait assert of the word.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent: the accesses of word and info that are paired are seq_cst.
 *   - The other direction, which shares the lock and info, is left out.
 *   - Under the lock, each access of word and info is a step, as reader and pollers do not take it. Taking the lock is
 *     one step with what comes first. What only the lock's holder sees is one step with an access beside it.
 *   - A timer in its heap is one bit and a number. It may fire at any time, and fires at last.
 *   - fd_mutex: a descriptor is freed when nobody uses it any more.
 *   - Left out: threads that are sent away (poll_try_again: an event without news), the end of a run(), a fork, and
 *     `special`.
 *
 * States: 4,240,878; with -DCLOSES -Devents=2 -Dsets=1 5,835,662; with -DCLOSES -Devents=1 6,940,374.
 */

#ifndef events
#define events 3
#endif
#ifndef sets
#define sets 2
#endif
#ifndef lives
#define lives 2
#endif

#define nil 0
#define ready 1
#define wait 2
#define G 3

/* --- poll_desc */
byte word = nil;
bool closing, passed; /* info: these two and the tag */
byte tag;
bool mutex;
byte seq;
mtype = { none, later, past };
mtype deadline = none;

/* its timer */
bool in_heap;
byte timer_seq;

/* --- outside */
bool arrived; /* there is something to read */
bool asleep; /* the reader, after its commit, until somebody readies it */
bool is_open = true, is_set, reader_left; /* what fd_mutex knows */

/* --- what the properties are about */
byte settings, stands, timer_set; /* of the deadline: how many; which one stands, 0: none; which one the timer has */
byte life;
byte to_arrive = events;

/* Part of one step. */
inline publish(c) {
  closing = c;
  passed = (deadline == past)
}

#ifdef MUTANT_drop_notification
#define nothing_to_do(keep) (old == ready || old == nil)
#else
#define nothing_to_do(keep) (old == ready || (old == nil && !keep))
#endif

/* Afterwards g says whether the reader must be readied. */
inline unblock(keep) {
  old = word;
  do
  :: atomic { nothing_to_do(keep) -> old = 0; break }
#ifdef MUTANT_unblock_without_cas
  :: atomic { !nothing_to_do(keep) ->
#else
  :: atomic { !nothing_to_do(keep) && word != old -> old = word }
  :: atomic { !nothing_to_do(keep) && word == old ->
#endif
      word = (keep -> ready : nil);
      g = (old == G);
      old = 0;
      break
    }
  od
}

inline ready_it() {
  atomic {
    if
    :: g -> assert(asleep); asleep = false; g = false
    :: else
    fi
  }
}

proctype reader() {
  byte old;
top:
  /* poll_reset */
  if
  :: closing -> goto closed
  :: !closing && passed -> goto timed_out
  :: !closing && !passed
  fi;
  if
  :: word != ready -> goto try
  :: word == ready
  fi;
  word = nil;
try:
  atomic {
    if
    :: arrived -> arrived = false
    :: !arrived -> goto io_wait
    fi
  }
  if
  :: goto top
  :: goto io_wait /* drained: the next call waits at once */
  fi;
io_wait:
  atomic {
    if
    :: closing -> goto closed
    :: !closing && passed -> goto timed_out
    :: !closing && !passed
    fi
  }
  /* poll_prepare_wait */
  atomic {
    assert(word <= ready);
    if
    :: word == ready -> goto take
    :: word == nil
    fi
  }
  atomic {
#ifndef MUTANT_prepare_without_cas
    if
    :: word == ready -> goto take
    :: word != ready -> skip
    fi;
#endif
    word = wait
  }
#ifndef MUTANT_no_recheck
  if
  :: closing || passed -> goto finish
  :: !closing && !passed
  fi;
#endif
  /* poll_commit */
  atomic {
#ifndef MUTANT_commit_blind
    if
    :: word != wait -> goto finish
    :: word == wait
    fi;
#endif
    word = G;
    asleep = true
  }
end_asleep:
  !asleep;
finish:
  atomic { assert(word <= wait); word = nil; goto waited }
take:
  atomic { assert(word == ready); word = nil };
waited:
  atomic {
    if
    :: closing -> goto closed
    :: !closing && passed -> goto timed_out
    :: !closing && !passed -> goto try
    fi
  }
end_timed_out:
timed_out:
  atomic { closing || !passed -> goto top }
closed:
  reader_left = true;
end_closed:
  atomic { is_open -> reader_left = false; goto top }
}

proctype poller() {
  byte t, l, old;
  bool g;
end_polling:
  do
  :: atomic { to_arrive != 0 -> to_arrive--; arrived = true; t = tag; l = life }
    atomic {
#ifndef MUTANT_old_tag
      if
      :: tag != t -> goto over
      :: tag == t
      fi;
#endif
      assert(life == l)
    }
    unblock(true);
    ready_it();
over:
    atomic { t = 0; l = 0 }
  od
}

proctype setter() {
  byte n, old;
  bool g;
  mtype was;
end_setting:
  do
  :: atomic { n < sets && is_open -> n++; is_set = true }
    atomic {
      !mutex;
      if
      :: closing -> goto over
      :: !closing -> mutex = true; was = deadline; settings++
      fi
    }
    if
    :: atomic {
#ifdef MUTANT_deadline_published_first
        deadline = later;
        publish(false)
      }
      atomic {
#endif
        in_heap = true;
        timer_seq = seq + 1;
        timer_set = settings
      }
      atomic { seq++; stands = settings; deadline = later; publish(false) }
    :: atomic {
#ifdef MUTANT_deadline_published_first
        deadline = later;
        publish(false);
#endif
        assert(deadline == was) /* there is no memory */
      }
    :: in_heap = false;
      atomic {
#ifndef MUTANT_set_keeps_seq
        seq++;
#endif
        stands = 0;
        deadline = none;
        publish(false)
      }
    :: in_heap = false;
#ifdef MUTANT_set_unblocks_first
      unblock(false);
#endif
      atomic {
#ifndef MUTANT_set_keeps_seq
        seq++;
#endif
        stands = 0;
        deadline = past;
        publish(false)
      }
#ifndef MUTANT_set_unblocks_first
      unblock(false)
#endif
    fi;
    mutex = false;
    ready_it();
over:
    atomic { is_set = false; was = 0 }
  od
}

proctype timers() {
  byte s, t, old;
  bool g;
end_ticking:
  do
  :: atomic { in_heap -> in_heap = false; s = timer_seq; t = timer_set }
#ifdef MUTANT_seq_before_lock
    if
    :: seq != s -> goto over
    :: seq == s
    fi;
#endif
    atomic {
      !mutex;
#if !defined(MUTANT_seq_before_lock) && !defined(MUTANT_deadline_seq)
      if
      :: seq != s -> goto over
      :: seq == s
      fi;
#endif
      mutex = true;
      assert(t == stands);
      stands = 0;
#ifndef MUTANT_passed_unblocks_first
      deadline = past;
      publish(closing)
#endif
    }
    unblock(false);
#ifdef MUTANT_passed_unblocks_first
    atomic { deadline = past; publish(closing) }
#endif
    mutex = false;
    ready_it();
over:
    atomic { s = 0; t = 0 }
  od
}

proctype closer() {
  byte old;
  bool g;
  do
  :: /* poll_evict */
    is_open = false;
#ifdef MUTANT_evict_unblocks_first
    atomic { !mutex -> mutex = true; seq++; stands = 0 }
    unblock(false);
    atomic { publish(true) }
#else
    atomic { !mutex -> mutex = true; seq++; stands = 0; publish(true) }
    unblock(false);
#endif
    mutex = false;
    ready_it();
    in_heap = false;
    if
    :: life == lives - 1 -> break
    :: life < lives - 1
    fi;
    atomic { reader_left && !is_set };
    /* poll_free, poll_open */
    atomic { !mutex -> mutex = true; deadline = none; seq++; word = nil }
    atomic {
      closing = false;
      passed = false;
      tag++;
      mutex = false;
      life++;
      arrived = false;
      is_open = true
    }
  od
}

proctype at_rest() {
end_watching:
  atomic {
    timeout;
    assert(!mutex && asleep == (word == G));
    assert(!asleep || (!arrived && !closing && !passed));
    assert(!closing -> passed == (deadline == past) && deadline != later : reader_left)
  }
}

init {
  atomic {
    run reader();
    run poller();
    run poller();
    run setter();
    run timers();
    run timers();
#ifdef CLOSES
    run closer();
#endif
    run at_rest()
  }
}
