/* Taking a P from an M that runs user code: sched/enter.hpp (E1..E3), sched/preempt.cpp (T1..T3), sched/enter.cpp
 * (enter_slow, regain_p, give_way); with the P left behind in a system call: sched/syscall.cpp, and retake of
 * sysmon/sysmon.cpp.
 *
 * Who takes part:
 *   M       runs goroutines. A goroutine, in user code, enters the runtime and leaves it again, makes a system call, or
 *           ends, after a few of these
 *   sysmon  takes Ps of Ms in user code and of Ms in system calls, and hands them off
 *
 * Properties:
 *   - A P never has two users: an M that uses a P in the runtime is alone with it.
 *   - A P is never lost: in the end each is on the idle list, and the count of detached Ms is zero.
 *   - A goroutine always gets a P again: there is no endless run, and in the end every goroutine has come to its end.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent except for `depth`: an M's store to it stays in a buffer of one entry, until a
 *     later store to it, heavy_barrier, or the processor sends it out. Other stores are not late: the protocol's are
 *     atomic read-modify-writes or made under the lock, and the release of leave_runtime orders the rest before depth.
 *   - Requests are two bits: revoked and in_syscall.
 *   - The global queue stands for all queues. append-check-wake (wake.pml) is one step under the lock: whoever makes a
 *     goroutine ready, hands a P off, or goes to sleep sees the idle Ps, the Ms asleep and the queue.
 *   - There are no new Ms: there are as many as goroutines, so one sleeps, or is about to, if a goroutine waits.
 *
 * States: 501,669.
 */

#ifndef ps
#define ps 1
#endif
#ifndef ms
#define ms 2 /* the number of Ms, and of goroutines */
#endif
#ifndef calls
#define calls 2 /* of each goroutine */
#endif
#ifndef takes
#define takes 2 /* attempts of sysmon */
#endif
#define none 255

mtype = { idle, running, syscall };

/* sched */
bool mutex;
bool runnable[ms]; /* the global queue */
byte detached_ms;

/* P */
mtype status[ps] = idle;
byte p_m[ps] = none;   /* P::m */
bool in_idle_list[ps];
byte user[ps] = none;  /* who uses it, in the runtime */

/* M */
byte m_p[ms] = none;   /* M::p */
byte depth[ms] = 1;    /* as others see it */
byte buffer[ms] = none;/* a store to depth that others do not see yet */
bool revoked[ms], in_syscall[ms];
byte next_p[ms] = none;
bool asleep[ms];

/* a goroutine */
byte left[ms] = calls;
bool ended[ms];

inline flush(i) {
  if
  :: buffer[i] != none -> depth[i] = buffer[i]; buffer[i] = none
  :: else
  fi
}

inline store_depth(value) {
  atomic { flush(m); buffer[m] = value }
}

/* Sends out, at any time, what is in the buffers. */
proctype processor() {
end_idle:
  do
  :: atomic { buffer[0] != none -> flush(0) }
  :: atomic { buffer[1] != none -> flush(1) }
  :: atomic { buffer[ms - 1] != none -> flush(ms - 1) }
  od
}

#define idle_p (in_idle_list[0] -> 0 : (in_idle_list[ps - 1] -> ps - 1 : none))
#define queued (runnable[0] -> 0 : (runnable[1] -> 1 : (runnable[ms - 1] -> ms - 1 : none)))
#define sleeper (asleep[0] -> 0 : (asleep[1] -> 1 : (asleep[ms - 1] -> ms - 1 : none)))

/* --- parts of steps under the lock; q: a P */

inline idle_p_get() {
  q = idle_p;
  if
  :: q != none -> in_idle_list[q] = false
  :: else
  fi
}

inline acquirep() {
  assert(m_p[m] == none && p_m[q] == none && status[q] == idle);
  m_p[m] = q;
  p_m[q] = m;
  status[q] = running;
  q = none
}

inline handoffp() {
  assert(status[q] == idle && p_m[q] == none && !in_idle_list[q]);
  if
  :: queued != none && sleeper != none ->
    m2 = sleeper;
    asleep[m2] = false;
    next_p[m2] = q;
    m2 = 0
  :: else -> in_idle_list[q] = true
  fi;
  q = none
}

inline wakep() {
  if
  :: idle_p != none && sleeper != none -> idle_p_get(); handoffp()
  :: else
  fi
}

/* --- an M */

inline use_p() {
  atomic {
    p = m_p[m];
    assert(p != none && user[p] == none && status[p] == running);
    user[p] = m
  }
  atomic { assert(m_p[m] == p && user[p] == m); user[p] = none; p = none }
}

/* Afterwards the goroutine has a P; or it is queued, and its M goes to without_p. */
inline enter_runtime() {
  store_depth(1); /* E1 */
  /* E3, and the loop of enter_slow */
  do
  :: !in_syscall[m] && !revoked[m] -> break
#ifdef MUTANT_revoked_before_syscall
  :: atomic { in_syscall[m] && !revoked[m] -> in_syscall[m] = false }
#else
  :: atomic { in_syscall[m] -> in_syscall[m] = false }
#endif
    /* finish_syscall */
    if
    :: atomic { status[syscall_p] == syscall -> status[syscall_p] = running }
      m_p[m] = syscall_p;
      atomic { p_m[syscall_p] = m; syscall_p = none }
    :: atomic { status[syscall_p] != syscall -> syscall_p = none }
      atomic {
        !mutex;
        idle_p_get();
        if
        :: q != none -> acquirep()
        :: else -> goto give_way
        fi
      }
    fi
#ifdef MUTANT_revoked_before_syscall
  :: revoked[m] ->
#else
  :: !in_syscall[m] && revoked[m] ->
#endif
    /* regain_p */
    atomic {
      !mutex -> revoked[m] = false;
      if
#ifndef MUTANT_regain_trusts_the_request
      :: m_p[m] != none
#endif
      :: else ->
        assert(detached_ms > 0);
        detached_ms--;
        idle_p_get();
        if
        :: q != none -> acquirep()
        :: else -> goto give_way
        fi
      fi
    }
  od
}

inline leave_runtime() {
  store_depth(0)
}

mtype = { a_call, a_system_call, its_end };

proctype M(byte m) {
  byte g = none, p = none, q = none, syscall_p = none, m2;
  mtype what;
without_p: /* recheck_queues, stopm */
  atomic {
    !mutex;
    if
    :: queued != none && idle_p != none -> idle_p_get(); acquirep(); goto with_p
    :: else -> asleep[m] = true
    fi
  }
end_stopped:
  atomic { next_p[m] != none -> q = next_p[m]; next_p[m] = none; acquirep() }
with_p: /* find_runnable */
  use_p();
  atomic {
    !mutex;
    g = queued;
    if
    :: g != none -> runnable[g] = false
    :: else -> /* releasep, idle_p_put */
      q = m_p[m];
      m_p[m] = none;
      p_m[q] = none;
      status[q] = idle;
      in_idle_list[q] = true;
      q = none;
      goto without_p
    fi
  }
  what = a_call;
go_on:
  use_p();
  if
  :: what == a_call
  :: what == a_system_call -> /* enter_syscall */
    in_syscall[m] = true;
    atomic { syscall_p = m_p[m]; m_p[m] = none }
    p_m[syscall_p] = none;
    status[syscall_p] = syscall
  :: what == its_end ->
    atomic { ended[g] = true; g = none; what = 0; goto with_p }
  fi;
  leave_runtime();
  /* user code */
  atomic {
    if
    :: what == a_system_call -> what = a_call /* it returns: exit_syscall, or another call */
    :: else ->
      if
      :: left[g] > 0 -> left[g]--; what = a_call
      :: left[g] > 0 -> left[g]--; what = a_system_call
      :: left[g] == 0 -> what = its_end
      fi
    fi
  }
  enter_runtime();
  goto go_on;
give_way: /* queue_globally */
  atomic {
    q = none;
    what = 0;
    !mutex -> runnable[g] = true;
    g = none;
    wakep();
    goto without_p
  }
}

/* --- sysmon */

proctype sysmon() {
  byte n, q = none, m, m2;
  do
  :: n == takes -> break
  :: n < takes ->
    atomic {
      n++;
      if
      :: q = 0
      :: q = ps - 1
      fi
    }
    if
    :: status[q] == idle -> goto next_one
    /* retake_syscall */
#ifdef MUTANT_retake_without_cas
    :: status[q] == syscall ->
      status[q] = idle;
#else
    :: atomic { status[q] == syscall -> status[q] = idle }
#endif
      atomic { !mutex -> handoffp(); goto next_one }
    /* detach_running */
    :: status[q] == running
    fi;
    atomic { !mutex -> mutex = true; m = p_m[q] }
    if
    :: m == none || status[q] != running -> goto given_up
    :: m != none && status[q] == running
    fi;
    if
    :: depth[m] != 0 -> goto given_up
    :: depth[m] == 0
    fi;
#ifdef MUTANT_depth_read_before_request
    if
    :: depth[m] != 0 -> goto give_up
    :: depth[m] == 0
    fi;
#endif
    revoked[m] = true; /* T1 */
#ifndef MUTANT_no_heavy_barrier
    atomic { flush(0); flush(1); flush(ms - 1) } /* T2 */
#endif
    /* T3 */
#ifndef MUTANT_depth_read_before_request
    if
    :: depth[m] != 0 -> goto give_up
    :: depth[m] == 0
    fi;
#endif
#ifndef MUTANT_holder_not_read_again
    if
    :: p_m[q] != m -> goto give_up
    :: p_m[q] == m
    fi;
    if
    :: status[q] != running -> goto give_up
    :: status[q] == running
    fi;
#endif
    atomic {
      m_p[m] = none;
      p_m[q] = none;
      status[q] = idle;
      detached_ms++;
      mutex = false
    }
    atomic { !mutex -> handoffp(); goto next_one };
give_up:
    revoked[m] = false;
given_up:
    mutex = false;
next_one:
    atomic { q = none; m = 0 }
  od
}

proctype at_rest() {
  byte i;
end_watching:
  atomic {
    timeout;
    assert(detached_ms == 0 && !mutex);
    do
    :: i < ps -> assert(in_idle_list[i] && status[i] == idle && p_m[i] == none && user[i] == none); i++
    :: else -> i = 0; break
    od;
    do
    :: i < ms -> assert(ended[i] && m_p[i] == none); i++
    :: else -> break
    od
  }
}

init {
  byte i;
  atomic {
    do
    :: i < ps -> in_idle_list[i] = true; i++
    :: else -> i = 0; break
    od;
    do
    :: i < ms -> runnable[i] = true; run M(i); i++
    :: else -> i = 0; break
    od;
    run processor();
    run sysmon();
    run at_rest()
  }
}
