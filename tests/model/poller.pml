/* Sleeping in the poller, and timers that are made earlier meanwhile: sched/poller_sleep.cpp (sleep_in_poller,
 * tidy_timers, earliest_timer), sched/timing.cpp (check_timers, arm_timer, rearm_timer, wake_net_poller),
 * sched/proc.cpp (idle_p_put, wakep), netpoll/epoll.cpp (netpoll_break, netpoll, netpoll_punctually).
 *
 * Who takes part:
 *   M        looks for due timers, in the heap of its P and, spinning, in that of the other P; gives up its P; sleeps
 *            in the poller until the earliest timer, or on its note
 *   armer    a goroutine on P 1: adds, changes and stops timers, at any time, and then computes forever (with -DENDS it
 *            ends, and its M looks for work)
 *   foreign  a thread without a P that does the same: its timers go to the heap of P 0
 *   -DCOMES_BY, in place of these two: goroutines on the Ms go to sleep until a time, their Ms arm the timer and go on
 *            without telling anybody (comes_by); or they arm one and compute forever. foreign makes a goroutine ready,
 *            or its descriptor: an M may find it on its way, and it computes forever or goes to sleep
 *   clock    time goes on when nothing else moves
 *
 * Properties, whenever nothing moves but the time:
 *   - If a P idles and a timer is armed, an M sleeps in the poller, and no longer than until the earliest timer.
 *   - No timer is overdue then.
 *   - -DENDS: if no timer is armed, no M sleeps in the poller until some time, and none at all if nobody waits for a
 *     descriptor: the deadlock check waits for that.
 *   - Nobody counts as spinning, no P is lost.
 *   - -DCOMES_BY: the first two, except for timers that are left to sysmon: those of an M that found work on its way,
 *     when the timer was not soon. And if a P idles, no goroutine is in the global queue.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent.
 *   - A heap is what timer.pml shows it to be: what is done under its lock is one step, the array is in order, and the
 *     hints are read and written as there. A timer is in no heap, or in one: waiting, modified, deleted or modifying.
 *   - Runnable goroutines, resetspinning and dozing are in wake.pml. A timer that fires is done with.
 *   - Left out: sysmon, which in the end sees a timer that is overdue; handing off a P; looking at the poller without
 *     blocking, which leaves a break where it is; clearing stopped timers in check, as tidy does that, too.
 *   - -DCOMES_BY leaves out the Ps' own queues, where an M that comes by has nothing. No M sleeps in the poller for a
 *     descriptor, so that it happens often that nobody sleeps there.
 *   - What is done under sched.mutex is one step, except for idle_p_put, as the mask of Ps with timers is read without
 *     the mutex.
 *   - A poll also ends for no reason (EINTR), once.
 *   - -DIO: somebody waits for a descriptor all the time; no descriptor becomes ready. -DIO_ENDS: the armer ends that
 *     wait, as a deadline or a close does.
 *
 * The second look of an M that goes to sleep (P2) makes its sleep shorter for a timer that was armed meanwhile. So does
 * the M that the armer sends: it finds the poller taken and breaks the sleep off. Each would do without the other
 * (MUTANT_second_look_in_vain, MUTANT_taken_not_broken_off), but not for an M that comes by, which sends nobody.
 *
 * States: 2,041,423; with -DENDS 733,628; with -DCOMES_BY 10,694,916. With -Darmings=2, which takes 3.7 GB: about 75
 * million.
 */

#define ps 2
#define ms 3
#define none 255
#define timers 2
#define end_of_time 4
#ifndef armings
#define armings 1 /* of the armer */
#endif
#ifdef COMES_BY
#define soon 2 /* timer_wants_poller: sysmon might be too late for it */
#endif
#ifndef foreigners
#ifdef ENDS
#define foreigners 0
#else
#define foreigners 1 /* armings of the foreign thread */
#endif
#endif
#ifdef IO
#define anybody_waits_for_io true
#elif defined(IO_ENDS)
bool anybody_waits_for_io = true;
#else
#define anybody_waits_for_io false
#endif

byte now = 1;

/* --- timers */
byte heap[timers] = none;
byte when[timers];      /* its place in the heap */
byte next_when[timers]; /* modified: its new time; else 0 */
bool deleted[timers];
bool modifying[timers];
byte head_when[ps], earliest_change[ps];

/* --- sched */
byte idle_ps;
byte spinning;
bool in_idle_list[ps];
byte idle_p_list;
bool mutex;
bool timer_mask[ps];
bool last_poll = true; /* false stands for 0: somebody blocks in the poller */
byte global_size;
bool event; /* a goroutine's descriptor is ready */
byte to_arm = armings;
bool computes[ms]; /* its goroutine does, forever */
bool left_to_sysmon;
byte poll_until;
byte holder[ps] = none;

/* --- epoll.cpp */
bool breaking, break_fd;
bool interrupted;

/* --- M */
bool m_spinning[ms];
byte next_p[ms] = none;
bool idle_m[ms];
byte sleeps_until[ms] = none; /* in epoll_pwait2; 0: forever */

/* --- heaps; parts of one step under the heap's lock. e: an entry */

#define lies_in(e, h) (heap[e] == h)
#define settled(h) (!(lies_in(0, h) && modifying[0]) && !(lies_in(1, h) && modifying[1]))
#define head(h) (lies_in(0, h) && !(lies_in(1, h) && when[1] < when[0]) -> 0 : (lies_in(1, h) -> 1 : none))

inline take_out(e) {
  heap[e] = none;
  when[e] = 0;
  next_when[e] = 0;
  deleted[e] = false
}

inline put_right(e) {
  if
  :: deleted[e] -> take_out(e)
  :: !deleted[e] && next_when[e] != 0 -> when[e] = next_when[e]; next_when[e] = 0
  :: else
  fi
}

inline publish(h) {
  e = head(h);
  if
  :: e == none -> head_when[h] = 0; earliest_change[h] = 0
  :: else -> head_when[h] = when[e]
  fi;
  e = 0
}

inline rebuild(h) {
  if
  :: lies_in(0, h) -> put_right(0)
  :: else
  fi;
  if
  :: lies_in(1, h) -> put_right(1)
  :: else
  fi;
  earliest_change[h] = 0
}

/* Runs what is due, if `fire`; otherwise this is clean_head. */
inline run_heads(h, fire) {
  do
  :: e = head(h);
    if
    :: e == none -> break
    :: e != none && (deleted[e] || next_when[e] != 0) -> put_right(e)
    :: e != none && !deleted[e] && next_when[e] == 0 ->
      if
      :: fire && when[e] <= now -> take_out(e)
      :: else -> break
      fi
    fi
  od;
  e = 0
}

/* Afterwards w is the time, and c is 0. Two loads. */
inline wake_when(h) {
  c = earliest_change[h];
  atomic {
    w = head_when[h];
    if
    :: w == 0 || (c != 0 && c < w) -> w = c
    :: else
    fi;
    c = 0
  }
}

inline check(h) {
  wake_when(h);
  if
  :: w != 0 && w <= now ->
    atomic {
      settled(h);
      if
      :: earliest_change[h] != 0 && earliest_change[h] <= now -> rebuild(h)
      :: else
      fi;
      run_heads(h, true);
      publish(h);
      w = 0
    }
  :: atomic { else -> w = 0 }
  fi
}

inline tidy(h) {
  if
  :: atomic { (lies_in(0, h) && deleted[0] || lies_in(1, h) && deleted[1]) && settled(h) -> rebuild(h); publish(h) }
  :: !(lies_in(0, h) && deleted[0] || lies_in(1, h) && deleted[1])
  fi
}

/* --- netpoll */

inline netpoll_break() {
  if
  :: atomic { !breaking -> breaking = true }
    break_fd = true
  :: breaking
  fi
}

/* --- sched; q: a P */

inline idle_p_get() {
  if
  :: idle_ps == 0 -> q = none
  :: else ->
    q = idle_p_list;
    in_idle_list[q] = false;
    idle_p_list = (idle_ps == 1 -> 0 : 1 - q);
    timer_mask[q] = true;
    idle_ps--
  fi
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
    :: atomic {
        q != none && (idle_m[0] || idle_m[1] || idle_m[2]) ->
        m2 = (idle_m[0] -> 0 : (idle_m[1] -> 1 : 2));
        idle_m[m2] = false;
        m_spinning[m2] = true;
        next_p[m2] = q;
        q = none;
        m2 = 0
      }
    :: q == none
    fi
  :: spinning != 0
  fi
}

#ifdef MUTANT_for_ever_is_not_longer
#define sleeps_longer(time) (poll_until > time)
#else
#define sleeps_longer(time) (poll_until == 0 || poll_until > time)
#endif

inline wake_net_poller(time) {
  if
  :: !last_poll ->
    if
    :: sleeps_longer(time) -> netpoll_break()
    :: !sleeps_longer(time)
    fi
  :: last_poll ->
#ifndef MUTANT_nobody_is_sent_to_the_poller
    if
    :: idle_ps != 0 -> wakep()
    :: idle_ps == 0
    fi
#endif
  fi
}

/* Afterwards x is the time; 0: none. */
inline earliest_timer() {
  x = 0;
  do
  :: atomic { i < ps && !timer_mask[i] -> i++ }
  :: i < ps && timer_mask[i] ->
    wake_when(i);
    atomic {
      if
      :: w != 0 && (x == 0 || w < x) -> x = w
      :: else
      fi;
      w = 0;
      i++
    }
  :: atomic { i == ps -> i = 0; break }
  od
}

inline acquirep() {
  assert(holder[q] == none);
  holder[q] = m;
  p = q;
  q = none
}

#ifdef COMES_BY
inline sleeps_next() {
  atomic {
    if
    :: heap[0] == none -> y = 0
    :: heap[1] == none -> y = 1
    fi;
    if
    :: t = 2
    :: t = 3
    :: t = 4
    fi
  }
}

inline add() {
  atomic {
    settled(p);
    run_heads(p, false);
    heap[y] = p;
    when[y] = t;
    first = (head(p) == y);
    publish(p)
  }
}

/* arm_timer, called by a goroutine that parks (comes_by) or runs on. */
inline arm(parks) {
  sleeps_next();
#ifdef MUTANT_looks_before_it_arms
  seen = last_poll;
  add();
  if
  :: atomic { first && parks && seen -> first = false }
  :: atomic { first && !(parks && seen) -> first = false } wake_net_poller(t)
#else
  add();
  if
#ifdef MUTANT_comes_by_beside_a_sleeper
  :: atomic { first && parks -> first = false }
  :: atomic { first && !parks -> first = false } wake_net_poller(t)
#else
  :: atomic { first && parks && last_poll -> first = false }
  :: atomic { first && !(parks && last_poll) -> first = false } wake_net_poller(t)
#endif
#endif
  :: !first
  fi;
  atomic { seen = false; y = 0; t = 0 }
}

/* If somebody has to sleep in the poller: timer_wants_poller. */
inline send_another() {
  earliest_timer();
  if
  :: atomic { x != 0 && x < now + soon -> x = 0 } wakep()
  :: atomic { x >= now + soon -> x = 0; left_to_sysmon = true }
  :: x == 0
  fi
}
#endif

proctype M(byte m; byte p) {
  byte q = none;
  byte i, e, w, c, x, until, m2;
  bool spun, h;
#ifdef COMES_BY
  byte y, t;
  bool first, seen;
#endif
  if
  :: p == none -> goto stopm
#ifdef COMES_BY
  :: p == 0 -> goto execute
  :: p == 1
#else
  :: p != none
#endif
  fi;
top: /* find_runnable */
  check(p);
#ifdef COMES_BY
  if
  :: atomic { event && last_poll -> event = false; goto found } /* look_at_poller */
  :: !(event && last_poll)
  fi;
  if
  :: atomic { global_size != 0 -> global_size--; goto found }
  :: global_size == 0
  fi;
#endif
  if
  :: m_spinning[m]
  :: atomic { !m_spinning[m] && 2 * spinning < ps - idle_ps -> m_spinning[m] = true; spinning++ }
  :: !m_spinning[m] && !(2 * spinning < ps - idle_ps) -> goto give_up
  fi;
  /* steal_work */
  if
  :: timer_mask[1 - p] -> check(1 - p)
  :: !timer_mask[1 - p]
  fi;
give_up:
#ifdef COMES_BY
  atomic {
    !mutex;
    if
    :: global_size != 0 -> global_size--; goto found
    :: else -> mutex = true; holder[p] = none
    fi
  }
#else
  atomic { !mutex -> mutex = true; holder[p] = none }
#endif
  /* idle_p_put */
#ifdef MUTANT_mask_of_p_0_cleared /* golang issue 44868 */
  wake_when(p);
#else
  if
  :: p == 0 -> w = 1
  :: p != 0 -> wake_when(p)
  fi;
#endif
  if
  :: atomic { w == 0 -> timer_mask[p] = false }
  :: w != 0
  fi;
  atomic {
    w = 0;
    in_idle_list[p] = true;
    idle_p_list = p;
    idle_ps++;
    p = none;
    mutex = false;
    spun = m_spinning[m]
  }
  if
  :: atomic { spun -> m_spinning[m] = false; spinning-- } /* S2 */
  :: !spun
  fi;
#ifdef COMES_BY
  /* recheck_queues */
  if
  :: global_size != 0 ->
    atomic { !mutex; idle_p_get() }
    if
    :: atomic { q != none -> acquirep(); spun = false; m_spinning[m] = true } spinning++; goto top
    :: q == none
    fi
  :: global_size == 0
  fi;
#endif
  /* tidy_timers */
  tidy(0);
  tidy(1);
  earliest_timer();
  atomic { until = x; x = 0 }
  /* sleep_in_poller */
  if
  :: !anybody_waits_for_io && until == 0 ->
    if
#ifdef MUTANT_endless_sleep_goes_on
    :: !last_poll && poll_until != 0 -> netpoll_break()
    :: last_poll || poll_until == 0
#else
    :: !last_poll -> netpoll_break()
    :: last_poll
#endif
    fi;
    goto stopm
  :: anybody_waits_for_io || until != 0
  fi;
  if
  :: atomic { last_poll -> last_poll = false } /* P1 */
  :: !last_poll ->
    if
#ifdef MUTANT_taken_not_broken_off
    :: true
#else
    :: until != 0 && (poll_until == 0 || poll_until > until) -> netpoll_break()
    :: !(until != 0 && (poll_until == 0 || poll_until > until))
#endif
    fi;
    goto stopm
  fi;
#ifdef MUTANT_no_second_look /* P2 */
  x = until;
#else
  earliest_timer();
#endif
  atomic {
    h = true;
    if
#ifndef MUTANT_sleeps_for_a_stopped_timer
    :: x == 0 && !anybody_waits_for_io -> h = false /* looks again */
#endif
#ifndef MUTANT_second_look_in_vain
    :: x != 0 && (until == 0 || x < until) -> until = x
#endif
    :: else
    fi;
    x = 0
  }
  poll_until = until; /* P3 */
  /* netpoll */
  if
  :: !h || (until != 0 && until <= now) /* netpoll with delay 0 drains nothing... */
  :: atomic { h && until != 0 && until <= now && break_fd -> break_fd = false } /* ...netpoll_punctually does */
    breaking = false
  :: atomic { h && !(until != 0 && until <= now) -> sleeps_until[m] = until }
end_polling:
    if
    :: atomic { break_fd -> sleeps_until[m] = none }
#ifdef MUTANT_drained_last
      breaking = false;
      break_fd = false
#else
      break_fd = false;
#ifndef MUTANT_break_stays
      breaking = false
#endif
#endif
    :: atomic { !break_fd && until != 0 && until <= now -> sleeps_until[m] = none }
    :: atomic { interrupted -> interrupted = false; sleeps_until[m] = none }
    fi
  fi;
  atomic {
    spun = spun || (until != 0 && until <= now); /* start_spinning, below */
    h = false;
    until = 0;
    poll_until = 0
  }
  last_poll = true;
  atomic {
    !mutex;
    idle_p_get();
    if
    :: q != none -> acquirep()
    :: else -> goto stopm
    fi
  }
  if
  :: atomic { spun -> spun = false; m_spinning[m] = true; spinning++ }
  :: !spun
  fi;
  goto top;
stopm:
  atomic { until = 0; spun = false; idle_m[m] = true }
end_stopped:
  atomic {
    next_p[m] != none -> q = next_p[m];
    next_p[m] = none;
    acquirep();
    goto top
  }
#ifdef COMES_BY
found: /* schedule */
  if
  :: atomic { m_spinning[m] -> m_spinning[m] = false; spinning-- } /* resetspinning */
    if
    :: idle_ps == 0
    :: idle_ps != 0 ->
      if
      :: global_size != 0 -> wakep()
      :: global_size == 0 ->
#ifndef MUTANT_spinner_sends_nobody
        if
        :: last_poll -> send_another()
        :: !last_poll
        fi
#endif
      fi
    fi
  :: !m_spinning[m] ->
#ifndef MUTANT_finder_sends_nobody
    if
    :: idle_ps != 0 ->
      if
      :: last_poll -> send_another()
      :: !last_poll
      fi
    :: idle_ps == 0
    fi
#endif
  fi;
execute:
  atomic {
    computes[m] = true;
    if
    :: true
    :: now < 3 -> now >= 3 /* at some time */
    fi;
    computes[m] = false
  }
  if
  :: atomic { to_arm != 0 -> to_arm-- } arm(true); goto top
#ifdef MUTANT_comes_by_although_it_runs
  :: atomic { to_arm != 0 -> to_arm-- } arm(true)
#else
  :: atomic { to_arm != 0 -> to_arm-- } arm(false)
#endif
  :: true
  fi;
  computes[m] = true;
end_computing:
  false
#endif
}

/* --- those that arm timers */

/* Sets timer x to the time t. If it is in no heap, it goes into `here`. */
inline rearm(here, x, t) {
  if
  :: atomic { heap[x] != none && !modifying[x] -> modifying[x] = true; h = heap[x] }
    if
    :: t < when[x] ->
      atomic {
        if
        :: earliest_change[h] == 0 || t < earliest_change[h] -> earliest_change[h] = t; first = true
        :: else
        fi
      }
      if
      :: atomic { first && head_when[h] != 0 && head_when[h] <= t -> first = false }
      :: first && !(head_when[h] != 0 && head_when[h] <= t)
      :: !first
      fi
    :: t >= when[x]
    fi;
    atomic { next_when[x] = t; deleted[x] = false; modifying[x] = false; h = 0 }
  :: atomic {
      heap[x] == none && !modifying[x] && settled(here) ->
      run_heads(here, false);
      heap[x] = here;
      when[x] = t;
      first = (head(here) == x);
      publish(here)
    }
  fi;
  if
  :: atomic { first -> first = false } wake_net_poller(t)
  :: !first
  fi
}

inline some_arming(here) {
  /* at some time */
  if
  :: true
  :: true -> now >= 2
  fi;
  atomic {
    if
    :: x = 0
    :: x = 1
    fi;
    if
    :: t = 2
    :: t = 3
    :: t = 4
    :: t = 0
    fi
  }
  if
  :: t != 0 -> rearm(here, x, t)
  :: atomic { t == 0 && heap[x] != none && !deleted[x] && !modifying[x] -> deleted[x] = true }
  :: t == 0 && (heap[x] == none || deleted[x])
  fi;
  atomic { x = 0; t = 0 }
}

proctype armer() {
  byte q = none;
  byte n, e, m2, h, x, t;
  bool first;
  do
  :: n < armings -> n++; some_arming(1)
  :: n == armings -> break
  od
#ifdef IO_ENDS
  ;
  anybody_waits_for_io = false
#endif
#ifdef ENDS
  ;
  holder[1] = 2;
  run M(2, 1)
#endif
}

#ifdef COMES_BY
proctype foreign() {
  byte q = none;
  byte n, m2;
  do
  :: n < foreigners ->
    if
    :: true
    :: true -> now >= 2 /* at some time */
    fi;
    n++;
    if
    :: event = true
    :: atomic { !mutex; global_size++ }
      if
      :: idle_ps != 0 -> wakep()
      :: idle_ps == 0
      fi
    fi
  :: break /* or never */
  od
}
#else
proctype foreign() {
  byte q = none;
  byte n, e, m2, h, x, t;
  bool first;
  do
  :: n < foreigners -> n++; some_arming(0)
  :: n == foreigners -> break
  od
}

#endif

proctype signal() {
  if
  :: true
  :: true -> interrupted = true
  :: true -> now >= 2; interrupted = true
  fi
}

#define deadline(x) (heap[x] == none || deleted[x] -> 0 : (next_when[x] != 0 -> next_when[x] : when[x]))
#define sleeps(m, d) (sleeps_until[m] != none && sleeps_until[m] != 0 && sleeps_until[m] <= d)
#define in_time(d) (d == 0 || (d > now && (sleeps(0, d) || sleeps(1, d) || sleeps(2, d))))
#define held(p) (holder[p] != none && computes[holder[p]])
#define in_vain(m) (sleeps_until[m] != none && (sleeps_until[m] != 0 || !anybody_waits_for_io))

proctype clock() {
end_of_time_:
  do
  :: atomic {
      timeout;
      assert(spinning == 0 && !mutex && idle_ps == in_idle_list[0] + in_idle_list[1]);
#ifdef COMES_BY
      assert((in_idle_list[0] || held(0)) && (in_idle_list[1] || held(1)));
      assert(idle_ps == 0 || global_size == 0);
      assert(idle_ps == 0 || left_to_sysmon || (in_time(deadline(0)) && in_time(deadline(1))));
#else
      assert(idle_ps != 0 && (idle_ps == ps || holder[1] != none));
      assert(in_time(deadline(0)) && in_time(deadline(1)));
#endif
#ifdef ENDS
      assert(idle_ps < ps || deadline(0) != 0 || deadline(1) != 0 || !(in_vain(0) || in_vain(1) || in_vain(2)));
#endif
      if
      :: now < end_of_time -> now++
      :: else -> break
      fi
    }
  od
}

init {
  atomic {
    holder[0] = 0;
#ifdef COMES_BY
    holder[1] = 1;
#else
    holder[1] = 3;
#endif
    timer_mask[0] = true;
    timer_mask[1] = true;
    heap[1] = 1;
    when[1] = 3;
    head_when[1] = 3;
    run M(0, 0);
#ifdef COMES_BY
    run M(1, 1);
    run M(2, none);
#else
    run M(1, none);
    run armer();
#endif
    run foreign();
#ifdef SIGNAL
    run signal();
#endif
    run clock()
  }
}
