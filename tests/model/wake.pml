/* append-check-wake and dozing: sched/proc.cpp (the essay, wakep, startm, resetspinning, handoffp), sched/threads.cpp
 * (stopm), sched/find.cpp (find_runnable and what it calls), sched/park.cpp (ready, ready_all), sched/runqueues.cpp.
 *
 * Who takes part:
 *   M        runs goroutines, looks for work, spins, dozes, sleeps in the poller and on its note. A goroutine makes
 *            others ready (runnext or ring), ends, or computes forever
 *   foreign  a thread without a P: makes goroutines ready, through the global queue
 *   network  with -DIO: a goroutine waits for a descriptor all the time, and now and then one becomes ready
 *   sysmon   with -DHANDOFF: takes the P of a goroutine that computes, and hands it off
 *
 * Properties, in every state in which nothing moves any more (each M sleeps, or its goroutine computes forever):
 *   - If a P idles, nothing is runnable: not in the global queue, in no ring, in no runnext.
 *   - No P is lost: each idles, or is held by an M that computes.
 *   - Nobody counts as spinning, nobody is the dozer, nobody waits for anything but a wake-up.
 * sysmon's other duties, which would find stranded work after 10 ms, are left out: the protocol must do without them.
 *   - -DDELAY: a doze ends only by a wake-up, or when nothing else moves, and nobody stays away (sched/help_trial.cpp).
 *     Then, if a P idles, no work is in the global queue or in a ring ("work beyond runnext is not delayed").
 *   - Also with -DBURST: an M that came back from the poller may promise to do it all (sched/burst.cpp). Whether its
 *     last bursts were short is decided at random, and so is when sysmon takes a promise over.
 *   - With -DCRUMBS, what a P holds may be crumbs (sched/steal.cpp). Each look answers at random whether it is.
 *   - With -DALONE, the M that holds the only P that does not idle may at any time find that it is alone
 *     (sched/alone.cpp). Others see what it then makes ready only when it has read spinning and dozer (A2), or at a
 *     heavy barrier.
 *   - With -DLEAVES, an M that holds a P may once leave all that is ready there to the others, by the global queue, and
 *     go to doze (find.cpp, leaves).
 *   - -DLIVE, with a search for non-progress cycles: the Ms do not look for work in vain forever. No goroutine computes
 *     forever then, so all work is done when nothing moves: a program can end.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent: the accesses of the protocol are seq_cst, except for A1 of an M that is alone.
 *   - -DALONE: an M that was alone is aware that it no longer is (C3) when it has done with A2.
 *   - Goroutines have no identity: a queue is a number. The ring of runq.hpp is exact (tests/sched/runq), so each of
 *     its operations is one step, and so is empty(), which promises one instant at which it was so. It is never full.
 *   - What is done under sched.mutex is one step. From outside one sees the size of the global queue and idle_ps. Each
 *     step changes one of them, or moves a goroutine from the former to a ring, which others read later.
 *   - idle_mask is left out: an idle P has nothing in its queue, and its bit is cleared before it gets an owner.
 *   - There is one round of stealing in place of four: the last one, which looks everywhere.
 *   - The M that startm starts anew is one that has slept so far. If all are about, startm waits until one sleeps.
 *   - A load and the compare-and-swap or exchange that depends on it are one step.
 *   - Left out: stopping the world, shutting down, locked threads and timers.
 *
 * States: 12,953,536; with -DALONE 21,671,364.
 */

#ifndef ms
#define ms 3
#endif
#define ps 2
#define none 255
#ifndef produced
#define produced 2 /* goroutines that goroutines make ready */
#endif
#ifndef foreigners
#define foreigners 1 /* that the foreign thread makes ready */
#endif
#ifndef events
#define events 2 /* that the network makes ready */
#endif

/* --- sched, as in scheduler.hpp */
byte global_size;
byte idle_ps;
byte spinning;
byte dozer = none;
bool help_wanted;
byte promiser = none;
bool last_poll = true; /* false stands for 0: somebody blocks in the poller */
bool in_idle_list[ps];
byte idle_p_list;      /* its head, if it is not empty */

#ifdef ALONE
byte alone_p = none;
byte unaware = none; /* a P */
bool puts[ps];       /* its owner has seen that it is alone, and is at A1 or A2 */
byte kept_ring[ps]; /* made ready, and not seen yet: in the ring, or in runnext */
bool kept_next[ps];
#endif

/* --- P */
byte ring[ps];
bool runnext[ps];
byte holder[ps] = none; /* P::m */
mtype = { nobody, a_thief, a_thief_in_vain };
mtype looks[ps] = nobody; /* who looks at runnext; in vain: the P has dispatched meanwhile */

/* --- M */
bool m_spinning[ms];
bool parked[ms]; /* the note was rung */
byte next_p[ms] = none;
bool idle_m[ms]; /* on the idle list */
bool computes[ms]; /* its goroutine does, forever */

byte to_produce = produced;
bool left; /* -DLEAVES: an M has left */
byte arrived; /* events that nobody has taken */

#define runq_empty(p) (ring[p] == 0 && !runnext[p])

/* --- proc.cpp. The processes have these local variables: q, a P; i and m2, of the inner functions. */

/* Parts of one step. */
inline idle_p_put(p) {
  assert(!in_idle_list[p] && holder[p] == none && runq_empty(p));
  in_idle_list[p] = true;
  idle_p_list = p;
  idle_ps++ /* S1 */
}

#ifdef ALONE
inline reveal(p) {
  ring[p] = ring[p] + kept_ring[p];
  kept_ring[p] = 0;
  runnext[p] = runnext[p] || kept_next[p];
  kept_next[p] = false
}

/* S2b */
inline barrier_to_who_is_alone() {
  if
  :: atomic { alone_p != none ->
#ifndef MUTANT_no_barrier_to_who_is_alone
      reveal(0);
      reveal(1)
#endif
    }
  :: alone_p == none
  fi
}
#endif

inline idle_p_get() {
  if
  :: idle_ps == 0 -> q = none
  :: else ->
#ifdef ALONE
    if /* C1, C2 */
    :: alone_p != none && puts[alone_p] -> unaware = alone_p
    :: else
    fi;
    alone_p = none;
    reveal(0);
    reveal(1);
#endif
    q = idle_p_list;
    in_idle_list[q] = false;
    idle_p_list = (idle_ps == 1 -> 0 : 1 - q);
    idle_ps--
  fi
}

/* Passes the P q to an M that sleeps. */
inline startm(spins) {
  atomic {
    idle_m[0] || idle_m[1] || idle_m[2] || idle_m[ms - 1];
    m2 = (idle_m[0] -> 0 : (idle_m[1] -> 1 : (idle_m[2] -> 2 : 3)));
    idle_m[m2] = false;
    m_spinning[m2] = spins;
    next_p[m2] = q;
    parked[m2] = true;
    q = none;
    m2 = 0
  }
}

inline rouse_dozer() {
  atomic {
    if
    :: dozer != none -> parked[dozer] = true; dozer = none
    :: else
    fi
  }
}

inline wakep(now) {
  help_wanted = true;
  wake_one(now)
}

/* wakep(help::to_poll) */
inline wake_to_poll() {
  wake_one(false)
}

inline wake_one(now) {
  if
#ifdef BURST
  :: atomic { spinning == 0 && in_burst -> spinning = 1 } /* B1 */
    promiser = m
#endif
  :: atomic { spinning == 0 -> spinning = 1 }
#ifdef MUTANT_wakep_unlocks_first
    atomic { idle_p_get() }
    if
    :: q != none -> startm(true)
    :: q == none -> spinning--
    fi
#else
    atomic {
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
#endif
  :: spinning != 0 && now && dozer != none -> rouse_dozer()
  :: spinning != 0 && !(now && dozer != none)
  fi
}

/* A2 */
inline wake_if_idle(now) {
  if
  :: idle_ps != 0 -> wakep(now)
  :: idle_ps == 0
  fi
}

#define seen 9
#define seen_crumbs 8

/* Afterwards i is `seen` if there is work, seen_crumbs if there are only crumbs, otherwise 0. c: crumbs so far. */
inline look_at_queues() {
  if
#ifndef MUTANT_recheck_without_global
  :: atomic { global_size != 0 -> i = seen }
#endif
  :: global_size == 0
  fi;
  do
  :: atomic { i < ps && runq_empty(i) -> i++ }
  :: atomic { i < ps && !runq_empty(i) -> i = seen }
#ifdef CRUMBS
  :: atomic { i < ps && !runq_empty(i) -> c = true; i++ }
  :: atomic { i == ps && c -> i = seen_crumbs; break }
  :: atomic { i == ps && !c -> i = 0; break }
#else
  :: atomic { i == ps -> i = 0; break }
#endif
  :: i == seen -> break
  od
#ifdef CRUMBS
  ;
  c = false
#endif
}

/* --- an M */

/* Acquires the P q. Part of one step. */
inline acquirep() {
  assert(holder[q] == none);
  holder[q] = m;
  p = q;
  q = none
}

/* Part of one step: takes one goroutine to run, and moves more into p's ring. */
inline global_get() {
  if
  :: global_size > 1 -> ring[p]++; global_size = global_size - 2
  :: else -> global_size = 0
  fi
}

/* D4. Afterwards q is the P for the work that was seen, or none. */
inline look_and_take_p() {
  look_at_queues();
  if
  :: atomic { i != 0 -> idle_p_get(); i = 0 }
  :: i == 0
  fi
}

#ifdef IO
#define goes_to_the_poller (last_poll && (idle_m[0] || idle_m[1] || idle_m[2] || idle_m[ms - 1]))
#else
#define goes_to_the_poller false
#endif

#ifdef IO
#define may_leave !last_poll
#else
#define may_leave true
#endif

#define may_spin (2 * (spinning - (promiser != none -> 1 : 0)) < ps - idle_ps)

/* S3. Afterwards q is the P for the work that was seen, or none. */
inline recheck_queues() {
  look_at_queues();
  if
  :: atomic { i == seen -> idle_p_get(); i = 0 }
  :: i == 0
#ifdef CRUMBS
#ifdef MUTANT_crumbs_left_to_nobody
  :: i == seen_crumbs -> i = 0
#else
  :: i == seen_crumbs ->
    i = 0;
    if
    :: dozer != none
    :: atomic { dozer == none -> i = seen_crumbs }
    fi;
    if
    :: i == 0
    :: atomic { i != 0 && goes_to_the_poller -> i = 0 }
#ifndef MUTANT_crumbs_in_the_way_of_the_poller
      wakep(false)
#endif
    :: atomic { i != 0 && !goes_to_the_poller -> idle_p_get(); crumbs_too = true; i = 0 }
    fi
#endif
#endif
  fi
}

/* ready: runqput_next. h: help::now. */
inline put_next() {
  if
  :: atomic { runnext[p] -> h = true }
    ring[p]++ /* the one that was next */
#ifdef CRUMBS
  :: atomic { runnext[p] -> h = false }
    ring[p]++
#endif
  :: atomic { !runnext[p] -> runnext[p] = true; h = false }
  fi
}

proctype M(byte m; byte p) {
  byte q = none;
  bool in_burst;
  byte i, m2;
  bool h;
#ifdef LEAVES
  byte moved;
#endif
#ifdef CRUMBS
  bool c, crumbs_too;
#endif
top:
  if
  :: p == none -> goto stopm
  :: p != none
  fi;
#if defined(ALONE) && !defined(MUTANT_unaware_of_others)
  unaware == none; /* C3 */
#endif
#ifdef LEAVES
  if
  :: atomic { !left && idle_ps == 0 && dozer == none && may_leave -> left = true }
    if
    :: atomic { !m_spinning[m] -> m_spinning[m] = true }
      spinning++
    :: m_spinning[m]
    fi;
    help_wanted = true;
    /* global_put_queue_of: between the step that takes one and the step that puts all there, S3 sees them nowhere. */
    if
    :: atomic { runnext[p] -> runnext[p] = false; moved = 1 }
    :: !runnext[p]
    fi;
    atomic { moved = moved + ring[p]; ring[p] = 0 }
    atomic { global_size = global_size + moved; moved = 0 }
#ifdef MUTANT_leaves_without_a_look
    atomic { m_spinning[m] = false; spinning--; holder[p] = none; idle_p_put(p); p = none }
    goto stopm
#else
    atomic { holder[p] = none; idle_p_put(p); p = none } /* S1 */
    goto gave_up
#endif
  :: true
  fi;
#endif
  if
  /* runq.get */
  :: atomic { runnext[p] -> runnext[p] = false; goto found }
  :: atomic { !runnext[p] && ring[p] != 0 -> ring[p]--; goto found }
  :: runq_empty(p)
  fi;
  if
  /* global_one */
  :: atomic { global_size != 0 -> global_get(); goto found }
  :: global_size == 0
  fi;
#ifdef IO
  if
  /* look_at_poller */
  :: atomic { last_poll && arrived != 0 -> arrived--; goto found }
  :: !last_poll || arrived == 0
  fi;
#endif
  if
  :: m_spinning[m]
  :: atomic { !m_spinning[m] && may_spin -> m_spinning[m] = true }
    spinning++
  :: !m_spinning[m] && !may_spin -> goto give_up
  fi;
  /* steal_work */
  if
  :: atomic {
      ring[1 - p] != 0 ->
      ring[p] = ring[p] + (ring[1 - p] - 1) / 2;
      ring[1 - p] = ring[1 - p] / 2;
      goto found
    }
  :: ring[1 - p] == 0
#ifdef CRUMBS
  :: ring[1 - p] != 0 && !crumbs_too
#endif
  fi;
#ifdef CRUMBS
  crumbs_too = false;
#endif
  if
  :: atomic { runnext[1 - p] -> looks[1 - p] = a_thief }
    if
    :: atomic { runnext[1 - p] && looks[1 - p] == a_thief -> runnext[1 - p] = false; looks[1 - p] = nobody; goto found }
    :: atomic { !(runnext[1 - p] && looks[1 - p] == a_thief) -> looks[1 - p] = nobody }
    fi
  :: !runnext[1 - p]
  fi;
give_up:
  atomic {
    if
    :: global_size != 0 -> global_get(); goto found
    :: else
    fi;
    holder[p] = none;
    idle_p_put(p);
    p = none
  }
gave_up:
#ifdef BURST
  in_burst = false;
  if /* B3 */
  :: atomic { promiser == m -> promiser = none }
#ifndef MUTANT_promise_forgotten
    if
    :: m_spinning[m] -> spinning--
    :: !m_spinning[m] -> m_spinning[m] = true
    fi
#endif
  :: promiser != m
  fi;
#endif
  if
  :: m_spinning[m]
  :: !m_spinning[m] -> goto recheck
  fi;
doze:
  if
  :: !help_wanted -> goto s2
  :: atomic { help_wanted -> help_wanted = false }
  fi;
  if
  :: idle_ps >= ps -> goto s2
  :: idle_ps < ps
  fi;
#ifdef IO
  if
  :: last_poll -> goto s2
  :: !last_poll
  fi;
#endif
  if
  :: atomic { dozer == none -> dozer = m } /* D1 */
  :: dozer != none -> goto s2
  fi;
#ifdef ALONE
  barrier_to_who_is_alone();
#endif
#ifdef DELAY
  if /* D2 */
#ifdef MUTANT_doze_without_a_look
  :: true ->
#else
  :: global_size != 0 || ring[0] != 0 || ring[1] != 0
  :: global_size == 0 && ring[0] == 0 && ring[1] == 0 ->
#endif
    if
    :: parked[m]
    :: timeout -> assert(idle_ps == 0 || (global_size == 0 && ring[0] == 0 && ring[1] == 0))
    fi
  fi;
#endif
  if
  :: atomic { dozer == m -> dozer = none } /* D3 */
  :: dozer != m && parked[m]
  fi;
  parked[m] = false;
  look_and_take_p(); /* D4 */
  if
#ifdef CRUMBS
  :: atomic { q != none -> acquirep(); crumbs_too = true; goto top }
#else
  :: atomic { q != none -> acquirep(); goto top }
#endif
  :: q == none -> goto doze
  fi;
s2:
  atomic { m_spinning[m] = false; spinning-- } /* S2 */
recheck:
#ifdef ALONE
  barrier_to_who_is_alone();
#endif
#ifndef MUTANT_no_recheck
  recheck_queues(); /* S3 */
#endif
  if
  :: atomic { q != none -> acquirep(); m_spinning[m] = true } spinning++; goto top /* S4 */
  :: q == none
  fi;
#ifdef IO
  /* sleep_in_poller */
  if
  :: atomic { last_poll -> last_poll = false }
  :: !last_poll -> goto stopm
  fi;
end_polling:
  atomic { arrived != 0 -> arrived-- }
  last_poll = true;
  atomic {
    idle_p_get();
    if
#ifdef BURST
    :: q != none -> acquirep(); in_burst = true; goto found
#else
    :: q != none -> acquirep(); goto found
#endif
    :: else
    fi
  }
  global_size++; /* ready_all */
  wake_if_idle(true);
#endif
stopm:
  idle_m[m] = true;
end_stopped:
  atomic {
    parked[m] -> parked[m] = false;
    q = next_p[m];
    next_p[m] = none;
    acquirep();
    goto top
  }
found:
#ifdef CRUMBS
  crumbs_too = false;
#endif
  if
  /* resetspinning */
  :: atomic { m_spinning[m] -> m_spinning[m] = false; spinning-- } /* S2 */
#ifndef MUTANT_found_work_wakes_nobody
    if
    :: idle_ps != 0 ->
      look_at_queues(); /* S3 */
      if
      :: atomic { i == seen -> i = 0 } wakep(true)
#ifdef CRUMBS
      :: atomic { i == seen_crumbs -> i = 0 } wakep(false)
#endif
#ifdef IO
      :: i == 0 && last_poll -> wake_to_poll()
      :: i == 0 && !last_poll
#else
      :: i == 0
#endif
      fi
    :: idle_ps == 0
    fi
#endif
  :: !m_spinning[m]
  fi;
  /* execute */
  atomic {
    if
    :: looks[p] == a_thief -> looks[p] = a_thief_in_vain
    :: else
    fi
  }
#ifdef LIVE
progress:
#endif
  do
#ifdef ALONE
  :: atomic { alone_p == none && idle_ps == ps - 1 -> alone_p = p } /* B1 */
  :: atomic { alone_p == p && to_produce != 0 -> to_produce--; puts[p] = true }
    if /* A1 */
    :: atomic { runnext[p] -> kept_ring[p]++; h = true }
    :: atomic { !runnext[p] -> kept_next[p] = true; h = false }
    :: atomic { kept_ring[p]++; h = true }
    fi;
    if
    :: h -> wake_if_idle(true)
    :: !h -> wake_if_idle(false)
    fi;
    atomic {
      h = false;
      reveal(p);
      puts[p] = false;
      unaware = (unaware == p -> none : unaware)
    }
#endif
  :: atomic { to_produce != 0 -> to_produce-- }
    if
    :: put_next() /* ready */
    :: ring[p]++; h = true /* ready_all */
#ifdef MUTANT_yield_looks_first
    :: idle_ps == 0 -> ring[p]++; goto top
    :: idle_ps != 0 -> ring[p]++; wakep(true); goto top
#else
    :: ring[p]++; wake_if_idle(true); goto top /* yield_now: queue_again */
#endif
    fi;
    if
    :: h -> h = false; wake_if_idle(true)
    :: !h -> wake_if_idle(false)
    fi
  :: goto top
#ifndef LIVE
  :: computes[m] = true;
end_computing:
    false
#endif
  od
}

proctype foreign() {
  byte n, q = none, m2, m = none;
  bool in_burst;
  do
  :: n < foreigners -> atomic { n++; global_size++ } /* A1 */
    wake_if_idle(true)
  :: n == foreigners -> break
  od
}

proctype network() {
  byte n;
  do
  :: n < events -> atomic { n++; arrived++ }
  :: n == events -> break
  od
}

#ifdef BURST
/* sysmon, when the alarm rings */
proctype watch() {
  byte i, q = none, m2, m = none;
  bool in_burst;
#ifdef CRUMBS
  bool c;
#endif
end_watching:
  do
  :: atomic { promiser != none -> promiser = none } /* B4 */
    spinning--; /* S2 */
#ifndef MUTANT_taken_over_in_vain
    if
    :: idle_ps != 0 ->
#ifdef ALONE
      barrier_to_who_is_alone();
#endif
      look_at_queues();
      if
      :: atomic { i != 0 -> i = 0 } wakep(true)
      :: i == 0 && last_poll -> wake_to_poll()
      :: i == 0 && !last_poll
      fi
    :: idle_ps == 0
    fi
#else
    skip
#endif
  od
}
#endif

#define held(i) (holder[i] != none && computes[holder[i]])

#ifdef HANDOFF
proctype sysmon() {
  byte q = none, m2, i, s, m = none;
  bool in_burst;
#ifdef CRUMBS
  bool c;
#endif
end_watching:
  atomic { /* detach_running, if the P is wanted */
    if
    :: held(0) && (!runq_empty(0) || global_size != 0) -> q = 0
    :: held(1) && (!runq_empty(1) || global_size != 0) -> q = 1
    fi;
    holder[q] = none
  }
  /* handoffp */
  if
  :: !runq_empty(q) -> goto start
  :: runq_empty(q)
  fi;
  if
  :: global_size != 0 -> goto start
  :: global_size == 0
  fi;
  s = spinning;
  if
  :: atomic { s + idle_ps == 0 && spinning == 0 -> spinning = 1; s = 0 }
    startm(true);
    goto over
  :: atomic { !(s + idle_ps == 0 && spinning == 0) -> s = 0 }
  fi;
  atomic {
    if
    :: global_size != 0 || (idle_ps == ps - 1 && last_poll)
    :: else -> idle_p_put(q); q = none
    fi
  }
  if
  :: q == none ->
#ifndef MUTANT_handoff_without_recheck
    look_at_queues();
    if
    :: atomic { i != 0 -> i = 0 } wakep(true)
    :: i == 0
    fi;
#endif
    goto over
  :: q != none
  fi;
start:
  startm(false);
over:
  skip
}
#endif

proctype at_rest() {
end_watching:
  atomic {
    timeout;
    assert(idle_ps == 0 || (global_size == 0 && runq_empty(0) && runq_empty(1)));
    assert((in_idle_list[0] || held(0)) && (in_idle_list[1] || held(1)));
    assert(idle_ps == in_idle_list[0] + in_idle_list[1]);
    assert(spinning == 0 && dozer == none && promiser == none)
  }
}

init {
  atomic {
    in_idle_list[1] = true;
    idle_p_list = 1;
    idle_ps = 1;
    holder[0] = 0;
    runnext[0] = true; /* the first goroutine */
    run M(0, 0);
    run M(1, none);
    run M(2, none);
#if ms > 3
    run M(3, none);
#endif
    run foreign();
#ifdef IO
    run network();
#endif
#ifdef BURST
    run watch();
#endif
#ifdef HANDOFF
    run sysmon();
#endif
#ifndef DELAY
    run at_rest()
#endif
  }
}
