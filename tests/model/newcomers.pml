/* Newcomers and their turn: sched/newcomers.cpp, sched/proc.cpp (schedule, resetspinning, wakep, startm, handoffp),
 * sched/threads.cpp (stopm), sched/find.cpp (find_runnable), sysmon/sysmon.cpp (retake), sysmon/gate.cpp (look).
 *
 * Who takes part:
 *   M       runs goroutines, looks for work, puts newcomers aside, takes them by turn, spins, sleeps on its note. The
 *           first goroutine starts all others. Each may make one ready that has begun; it ends, computes forever, or,
 *           with -DBLOCKS, is in a system call forever
 *   sysmon  takes the P of a goroutine that computes, if the P is wanted, or of one that blocks; the turn of the former
 *           goes to the gate. The gate closes, judges, makes newcomers wait and lets them begin, finds that threads run
 *           short, and with -DOPENS opens
 *
 * Properties:
 *   - The turn is in one place: free, with a P, or with the gate. No P goes idle with it.
 *   - While sysmon is not about to do anything, and each M sleeps, computes or blocks: if a P idles, no ring holds a
 *     goroutine, and no newcomer may begin. This does not rely on what sysmon would do then.
 *   - When nothing moves any more: each goroutine has begun, the sizes are right, the gate keeps no turn, nobody counts
 *     as spinning, no P is lost.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent: the accesses of the protocol are seq_cst; the others are made under
 *     sched.mutex, or by the P's owner.
 *   - sched.mutex is a lock, and each access under it that somebody sees without it is a step. Taking the lock is one
 *     step with the first of these, releasing it with the last.
 *   - newcomers_may_begin reads suspects_size only if newcomers_size is 0: otherwise it does not matter.
 *   - An operation of a ring is one step, there is no runnext, and a thief takes one goroutine: see wake.pml. An M
 *     never looks at newcomers that were put aside before its own ring. A goroutine in a queue is its kind (spawn_pc):
 *     one kind for all, or with -DKINDS one of two. Goroutines of one kind may behave differently.
 *   - A goroutine that computes or blocks forever keeps its thread. Its M goes on as one that startm starts anew, so
 *     that there are always enough.
 *   - How many compute, whether threads run short (once for each time that the gate closes), the verdicts, and how long
 *     newcomers wait are open. The gate looks as long as it has something to do, not every 10 ms.
 *   - next_newcomer sorts all at once (sorted_at_once).
 *   - Left out: dozing, the global queue, the poller and timers, stopping the world, the end of a run(), and goroutines
 *     that come back to a P.
 *
 * States: 9,568,645. With -Dothers=0: -Dstarted=3 7,035,964, -DKINDS -Dstarted=3 14,760,029, -DOPENS
 * 6,480,961, -DBLOCKS 2,840,874, -Dms=3 -Dstarted=1 about 16 million.
 */

#define ps 2
#ifndef ms
#define ms 2
#endif
#ifndef started
#define started 2 /* goroutines that the first one starts */
#endif
#define kinds 2
#ifdef KINDS
#define kind_of(i) (i == 1 -> 1 : 0)
#else
#define kind_of(i) 0
#endif
#define begun kinds
#ifndef others
#define others 1 /* goroutines that have begun; one that runs makes them ready */
#endif
#define none 255

/* --- sched, as in scheduler.hpp */
bool newcomers_wait;
bool turn_is_free = true;
bool suspects_wait;
byte newcomers_size, suspects_size;
byte idle_ps;
byte spinning;
bool mutex;
/* under mutex */
chan newcomers = [started] of { byte };
chan suspects = [started] of { byte };
byte unsorted;
bool hog[kinds];
bool in_idle_list[ps];
byte idle_p_list; /* its head, if it is not empty */

/* --- P */
chan ring0 = [started + others] of { byte };
chan ring1 = [started + others] of { byte };
byte holder[ps] = none;
bool has_turn[ps];
byte turn_kind[ps];

/* --- M */
bool m_spinning[ms];
bool parked[ms]; /* the note was rung */
byte next_p[ms] = none;
bool idle_m[ms]; /* on the idle list */
mtype = { in_weft, computes, blocks, detached };
mtype what[ms] = in_weft;

/* --- the gate */
bool keeps_turn; /* or sysmon has it, on its way to the gate */

byte to_start = started, to_wake = others;

#define ring_size(p) (p == 0 -> len(ring0) : len(ring1))
#define turns (turn_is_free + has_turn[0] + has_turn[1] + keeps_turn)

/* The processes have these local variables: q, a P; m2, an M; b, what was found out; any, for newcomers_may_begin;
 * kind, that of the goroutine. */

/* --- proc.cpp: parts of one step */

inline idle_p_put(a) {
  assert(!in_idle_list[a] && holder[a] == none && ring_size(a) == 0 && !has_turn[a]);
  in_idle_list[a] = true;
  idle_p_list = a;
  idle_ps++ /* S1 */
}

inline idle_p_get() {
  if
  :: idle_ps == 0 -> q = none
  :: else ->
    q = idle_p_list;
    in_idle_list[q] = false;
    idle_p_list = (idle_ps == 1 -> 0 : 1 - q);
    idle_ps--
  fi
}

/* Passes the P q to an M that sleeps. */
inline startm(spins) {
  atomic {
    !mutex && (idle_m[0] || idle_m[1] || idle_m[ms - 1]);
    m2 = (idle_m[0] -> 0 : (idle_m[1] -> 1 : ms - 1));
    idle_m[m2] = false;
    m_spinning[m2] = spins;
    next_p[m2] = q;
    parked[m2] = true;
    q = none;
    m2 = 0
  }
}

inline wakep() {
  if
  :: atomic { spinning == 0 -> spinning = 1 }
    atomic {
      !mutex;
      idle_p_get();
      if
      :: q == none -> spinning--
      :: else
      fi
    }
    if
    :: q != none -> startm(true)
    :: q == none
    fi
  :: spinning != 0
  fi
}

/* A2 */
inline wake_if_idle() {
  if
  :: idle_ps != 0 -> wakep()
  :: idle_ps == 0
  fi
}

/* --- newcomers.cpp */

/* Afterwards b says whether newcomers may begin. */
inline newcomers_may_begin() {
  any = newcomers_size != 0;
  if
  :: any
  :: atomic { !any && suspects_size != 0 -> b = true }
  :: !any && suspects_size == 0
  fi;
  if
  :: atomic { !any && !b }
  :: atomic { (any || b) && !newcomers_wait -> b = true; any = false }
  :: (any || b) && newcomers_wait ->
    if
    :: atomic { turn_is_free && any -> b = true; any = false }
    :: turn_is_free && !any -> b = !suspects_wait
    :: atomic { !turn_is_free -> b = false; any = false }
    fi
  fi
}

inline anything_queued() {
#ifdef MUTANT_recheck_without_newcomers
  b = false;
#else
  newcomers_may_begin();
#endif
  if
  :: atomic { !b && len(ring0) != 0 -> b = true }
  :: !b && len(ring0) == 0 -> b = len(ring1) != 0
  :: b
  fi
}

/* A2 */
inline wake_for_newcomers() {
  if
  :: idle_ps != 0 ->
    newcomers_may_begin();
    if
    :: atomic { b -> b = false }
      wakep()
    :: !b
    fi
  :: idle_ps == 0
  fi
}

/* Called under mutex. The last step releases it if `then_unlock`. */
inline store_sizes(then_unlock) {
  newcomers_size = len(newcomers) + unsorted; /* A1 */
  atomic { suspects_size = len(suspects) - unsorted; mutex = !then_unlock } /* A1 */
}

/* Parts of one step. */
inline clear_of_suspicion(k) {
  hog[k] = false;
  unsorted = len(suspects)
}

inline next_suspect() {
#ifndef MUTANT_counted_twice
  unsorted = (unsorted != 0 -> unsorted - 1 : 0);
#endif
  suspects?kind
}

/* b: the turn is needed. Afterwards kind is that of the next newcomer, or none. */
inline next_newcomer() {
  if
  :: (!b || !suspects_wait) && len(suspects) != 0 -> next_suspect()
  :: else ->
    do
    :: unsorted != 0 || len(newcomers) != 0 ->
      if
      :: unsorted != 0 -> next_suspect()
      :: else -> newcomers?kind
      fi;
      if
      :: b && hog[kind] -> suspects!kind; kind = none
      :: else -> break
      fi
    :: else -> break
    od
  fi
}

/* Afterwards kind is none, or that of the newcomer that p must run. */
inline take_newcomer() {
  newcomers_may_begin();
  if
  :: atomic { b && !mutex -> mutex = true; b = newcomers_wait }
    if
#ifdef MUTANT_turn_not_looked_at
    :: true ->
#else
    :: atomic { b && !turn_is_free -> b = false; mutex = false }
    :: !b || turn_is_free ->
#endif
      atomic { next_newcomer() }
      if
      :: atomic { b && kind != none -> b = false }
        store_sizes(false);
        atomic {
          assert(turns == 1);
          turn_is_free = false;
          has_turn[p] = true;
          turn_kind[p] = kind;
          mutex = false;
          assert(turns == 1)
        }
      :: atomic { !(b && kind != none) -> b = false }
        store_sizes(true)
      fi
    fi
  :: !b
  fi
}

/* a: a P that the caller owns. */
inline return_turn(a) {
  if
  :: has_turn[a] ->
    atomic {
      !mutex;
      mutex = true;
      has_turn[a] = false;
      b = hog[turn_kind[a]];
      if
      :: b -> clear_of_suspicion(turn_kind[a])
      :: else
      fi;
      turn_kind[a] = 0
    }
    if
    :: atomic { b -> b = false }
#ifndef MUTANT_acquitted_without_sizes
      store_sizes(false)
#endif
    :: !b
    fi;
#ifdef MUTANT_woken_before_returned
    wake_for_newcomers();
    atomic { turn_is_free = true; mutex = false }
#else
    atomic { turn_is_free = true; mutex = false } /* A1 */
#ifndef MUTANT_return_wakes_nobody
    wake_for_newcomers()
#endif
#endif
  :: !has_turn[a]
  fi
}

/* --- an M */

/* Acquires the P q. Part of one step. */
inline acquirep() {
  assert(holder[q] == none);
  holder[q] = m;
  p = q;
  q = none
}

proctype M(byte m; byte p) {
  byte q = none, m2, kind = none;
  bool b, any;
  if
  :: p != none -> goto run_first
  :: p == none -> goto stopm
  fi;
top: /* schedule */
  return_turn(p);
find:
  if
  :: atomic { p == 0 && len(ring0) != 0 -> ring0?kind; goto found }
  :: atomic { p == 1 && len(ring1) != 0 -> ring1?kind; goto found }
  :: ring_size(p) == 0
  fi;
  take_newcomer();
  if
  :: kind != none -> goto found
  :: kind == none
  fi;
  if
  :: m_spinning[m]
  :: atomic { !m_spinning[m] && 2 * spinning < ps - idle_ps -> m_spinning[m] = true; spinning++ }
  :: !m_spinning[m] && !(2 * spinning < ps - idle_ps) -> goto give_up
  fi;
  if /* steal_work */
  :: atomic { p == 0 && len(ring1) != 0 -> ring1?kind; goto found }
  :: atomic { p == 1 && len(ring0) != 0 -> ring0?kind; goto found }
  :: ring_size(1 - p) == 0
  fi;
give_up:
  atomic { !mutex -> holder[p] = none; idle_p_put(p); p = none }
  if
  :: atomic { m_spinning[m] -> m_spinning[m] = false; spinning-- } /* S2 */
  :: !m_spinning[m]
  fi;
  anything_queued(); /* S3 */
  if
  :: atomic { b && !mutex -> b = false; idle_p_get() }
    if
    :: atomic { q != none -> acquirep(); m_spinning[m] = true; spinning++; goto find } /* S4 */
    :: q == none
    fi
  :: !b
  fi;
stopm:
  atomic { !mutex -> idle_m[m] = true }
end_stopped:
  atomic {
    parked[m] -> parked[m] = false;
    q = next_p[m];
    next_p[m] = none;
    acquirep();
    goto top
  }
found: /* put_newcomer_aside */
  if
  :: kind != begun && newcomers_wait && !has_turn[p] ->
    atomic {
      !mutex -> mutex = true;
      if
      :: hog[kind] -> suspects!kind
      :: else -> newcomers!kind
      fi;
      kind = none
    }
    store_sizes(true);
#ifndef MUTANT_aside_wakes_nobody
    wake_for_newcomers();
#endif
    goto top
  :: kind == begun || !newcomers_wait || has_turn[p]
  fi;
  if
  :: atomic { m_spinning[m] -> m_spinning[m] = false; spinning-- } /* S2 */
    if
    :: idle_ps != 0 ->
      anything_queued(); /* S3 */
      if
      :: atomic { b -> b = false }
        wakep()
      :: !b
      fi
    :: idle_ps == 0
    fi
  :: !m_spinning[m]
  fi;
runs:
  kind = none;
  if
  :: atomic { to_wake != 0 && p == 0 -> to_wake--; ring0!begun } /* A1 */
    wake_if_idle();
    goto runs
  :: atomic { to_wake != 0 && p == 1 -> to_wake--; ring1!begun } /* A1 */
    wake_if_idle();
    goto runs
  :: goto top
  :: what[m] = computes
#ifdef BLOCKS
  :: what[m] = blocks
#endif
  fi;
end_for_ever:
  atomic { what[m] == detached -> what[m] = in_weft; p = none; goto stopm }
run_first:
  do
  :: to_start == 0 -> goto runs
  :: to_start != 0 ->
    atomic { to_start--; ring0!kind_of(to_start) } /* A1 */
    wake_if_idle()
  od
}

/* --- sysmon */

#define aside (newcomers_size + suspects_size != 0)
#define may_begin_now (aside && (!newcomers_wait || (turn_is_free && (newcomers_size != 0 || !suspects_wait))))
#define may_begin \
  (!newcomers_wait -> len(newcomers) + len(suspects) != 0 : \
    turn_is_free && (len(newcomers) + unsorted != 0 || (len(suspects) != 0 && !suspects_wait)))
#define wanted(a) (ring_size(a) != 0 || may_begin_now || (has_turn[a] && aside))
#define does(a, x) (holder[a] != none && what[holder[a]] == x)

/* M m sleeps, or runs a goroutine that does not come back. */
#define rests(m) ((idle_m[m] && !parked[m]) || what[m] == computes || what[m] == blocks)
#if ms > 2
#define quiet (rests(0) && rests(1) && rests(2))
#else
#define quiet (rests(0) && rests(1))
#endif

/* Part of one step. */
inline detach() {
  what[holder[r]] = detached;
  holder[r] = none
}

inline handoffp() {
  if
  :: atomic { ring_size(r) != 0 -> q = r; r = none }
    startm(false)
  :: ring_size(r) == 0 ->
    n = spinning;
    if
    :: atomic { n + idle_ps == 0 && spinning == 0 -> spinning = 1; n = 0; q = r; r = none }
      startm(true)
    :: atomic { !(n + idle_ps == 0 && spinning == 0) -> n = 0 }
      atomic { !mutex -> idle_p_put(r); r = none }
#ifndef MUTANT_handoff_without_recheck
      anything_queued();
      if
      :: atomic { b -> b = false }
        wakep()
      :: !b
      fi
#endif
    fi
  fi
}

inline give_turn_back() {
  atomic { !mutex -> keeps_turn = false; turn_is_free = true; assert(turns == 1) } /* A1 */
#ifndef MUTANT_given_back_wakes_nobody
  wake_for_newcomers()
#endif
}

proctype sysmon() {
  byte q = none, r = none, m2, n, trial = none;
  bool b, any;
  bool everybody, closed, opens, few_threads, waits; /* waits: now < wait_until */
end_watching:
  do
  /* retake */
  :: atomic {
      if
      :: !mutex && does(0, computes) && wanted(0) -> r = 0
      :: !mutex && does(1, computes) && wanted(1) -> r = 1
      fi;
      detach();
#ifndef MUTANT_turn_stays_with_p
      if
      :: has_turn[r] ->
        has_turn[r] = false;
        keeps_turn = true;
        trial = turn_kind[r];
        turn_kind[r] = 0
      :: else
      fi
#endif
    }
    handoffp();
    /* the gate looks */
    if
    :: closed -> goto close
    :: !closed && !keeps_turn
    :: !closed && keeps_turn -> goto open
    :: !closed -> goto close
    fi
  :: atomic {
      if
      :: does(0, blocks) -> r = 0
      :: does(1, blocks) -> r = 1
      fi;
      detach()
    }
#ifndef MUTANT_blocks_with_the_turn
    return_turn(r);
#endif
    handoffp()
  :: opens -> goto open
  :: quiet && idle_ps != 0 && (ring_size(0) != 0 || ring_size(1) != 0 || may_begin) -> assert(false)
  :: closed && (trial != none || waits || keeps_turn || suspects_wait || few_threads) -> goto close
  od;
close:
  atomic {
    if
    :: closed
#ifdef OPENS
    :: !closed -> closed = true; opens = true
#endif
    :: !closed -> closed = true
    :: !closed -> closed = true; few_threads = true
    fi
  }
  newcomers_wait = true;
  if
  :: trial != none ->
    if /* judge */
    :: atomic { !mutex -> everybody = !hog[trial]; hog[trial] = true; trial = none } /* computes */
      if
      :: goto make_wait
      :: everybody = false; goto make_wait
      fi
    :: atomic { /* blocks, or ends */
        !mutex -> mutex = true;
        b = hog[trial];
        if
        :: b -> clear_of_suspicion(trial)
        :: else
        fi;
        trial = none
      }
      if
      :: atomic { b -> b = false }
#ifdef MUTANT_acquitted_without_sizes
        mutex = false
#else
        store_sizes(true)
#endif
      :: atomic { !b -> mutex = false }
      fi;
      if
      :: waits && keeps_turn -> give_turn_back()
      :: !(waits && keeps_turn)
      :: true /* by now the time has passed */
      fi
    fi
  :: trial == none
  fi;
  if
  :: few_threads -> few_threads = false; everybody = true; goto make_wait
  :: waits = false; goto let_begin
  :: waits -> goto end_watching
  fi;
open:
  atomic { closed = false; opens = false; few_threads = false; trial = none }
  atomic { !mutex -> hog[0] = false; hog[1] = false; newcomers_wait = false } /* A1; its A2 is that for the suspects */
let_begin:
  atomic { !mutex -> suspects_wait = false } /* A1 */
#ifndef MUTANT_suspects_woken_by_nobody
  wake_for_newcomers();
#endif
  if
  :: keeps_turn -> give_turn_back()
  :: !keeps_turn
  fi;
  goto end_watching;
make_wait:
  waits = true;
  atomic { !mutex -> suspects_wait = true }
  if
  :: everybody && !keeps_turn ->
    atomic {
      !mutex ->
      if
#ifdef MUTANT_withheld_unseen
      :: true -> turn_is_free = false; keeps_turn = true
#else
      :: turn_is_free -> turn_is_free = false; keeps_turn = true
      :: else
#endif
      fi
    }
  :: !everybody && keeps_turn -> give_turn_back()
  :: everybody == keeps_turn
  fi;
  everybody = false;
  goto end_watching
}

proctype at_rest() {
end_watching:
  atomic {
    timeout;
    assert(to_start == 0 && len(ring0) == 0 && len(ring1) == 0);
    assert(len(newcomers) == 0 && len(suspects) == 0 && unsorted == 0);
    assert(newcomers_size == 0 && suspects_size == 0);
    assert(turns == 1 && !keeps_turn);
    assert(spinning == 0 && !mutex);
    assert(idle_ps == in_idle_list[0] + in_idle_list[1]);
    assert((in_idle_list[0] || holder[0] != none) && (in_idle_list[1] || holder[1] != none))
  }
}

init {
  atomic {
    in_idle_list[1] = true;
    idle_p_list = 1;
    idle_ps = 1;
    holder[0] = 0;
    run M(0, 0);
    run M(1, none);
#if ms > 2
    run M(2, none);
#endif
    run sysmon();
    run at_rest()
  }
}
