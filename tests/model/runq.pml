/* The run queue of a P: sched/runq.hpp (put_next, put, take_half, get_next, get_from_ring, steal_into with grab,
 * steal_next, empty, ring_empty); runqput and runqput_next of sched/runqueues.hpp, runqput_full of runqueues.cpp.
 *
 * Who takes part:
 *   owner    makes goroutines ready: into runnext, or the ring; half of a full ring goes to the global queue. Takes
 *            runnext, and runs it or puts it at the tail; takes from the ring. get() is get_next, then get_from_ring
 *   thieves  two. Each takes half of the ring, and runs one after the other what it took, or takes runnext
 *   looker   with -DLOOKS, in place of the second thief: asks whether the queue is empty, and whether the ring is
 * With -DCHAIN, the second thief steals from the first one, too.
 *
 * Properties:
 *   - A goroutine that is taken is ready, and nobody else takes it before it is made ready again.
 *   - When nothing moves any more, all that were made ready have been taken: none is lost.
 *   - empty() is true only if there was an instant during the call at which neither the ring nor runnext held anything,
 *     and false only if there was one at which something was there. The same holds for ring_empty() and the ring.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent: what release and acquire are for is tested by tests/sched/runq_race.
 *   - The ring has four slots. Its indices are bytes, and begin shortly before they wrap around; too few goroutines
 *     become ready for an index to come round to the same number.
 *   - Only the owner changes tail and slots: its loads of them are one step with what stands beside them. So are a
 *     thief's accesses of its own queue, but not with -DCHAIN where it makes them visible (tail, head).
 *   - The global queue always has room, and what gets there runs at once.
 *   - What ran may be made ready again at once: what a thief saw in runnext may be there a second time.
 *   - Left out: room() and size(), and the prefetch of the next goroutine.
 *
 * States: 17,747,556; with -DLOOKS -Dputs=3 7,485,161; with -DCHAIN -Dputs=3 13,080,103.
 */

#define capacity 4 /* divides 256 */
#ifndef first
#define first 254 /* the first index */
#endif
#ifndef loaded
#define loaded 3 /* in the ring at first */
#endif
#ifndef puts
#define puts 4 /* more that become ready */
#endif
#ifdef CHAIN
#define gs 7
#else
#define gs 6
#endif
#define none 255
#define queues 3

byte head[queues] = first, tail[queues] = first;
byte next[queues] = none;
byte ring[queues * capacity] = none;

#define at(q, i) ring[(q) * capacity + (i) % capacity]
#define from(h, t) (((t) - (h)) & 255)
#define length(q) from(head[q], tail[q])

bool is_ready[gs]; /* and nobody has taken it */
byte made;
bool done; /* the owner has nothing more to do */

/* --- parts of steps */

inline make_ready(g) {
  g = 0;
  do
  :: is_ready[g] -> g++
  :: else -> break
  od;
  is_ready[g] = true;
  made++
}

inline take(g) {
  assert(g != none && is_ready[g]);
  is_ready[g] = false
}

#ifdef LOOKS
bool calls, was_empty, was_not, ring_was_empty, ring_was_not; /* during the looker's call */
#endif

/* Part of each step that changes queue 0. */
inline changed() {
#ifdef LOOKS
  if
  :: calls ->
    if
    :: length(0) == 0 -> ring_was_empty = true
    :: else -> ring_was_not = true
    fi;
    if
    :: length(0) == 0 && next[0] == none -> was_empty = true
    :: else -> was_not = true
    fi
  :: else
  fi
#else
  skip
#endif
}

/* --- the owner */

/* Afterwards g is what was taken from the ring, or none. */
inline get_from_ring(q) {
  h = head[q];
  do
  :: atomic { tail[q] == h -> h = 0; g = none; break }
#ifdef MUTANT_get_without_cas
  :: atomic { tail[q] != h ->
#else
  :: atomic { tail[q] != h && head[q] != h -> h = head[q] }
  :: atomic { tail[q] != h && head[q] == h ->
#endif
      g = at(q, h);
      take(g);
      head[q] = h + 1;
      changed();
      h = 0;
      break
    }
  od
}

#ifdef MUTANT_put_over_full
#define is_full (from(head[0], tail[0]) > capacity)
#else
#define is_full (from(head[0], tail[0]) >= capacity)
#endif

proctype owner() {
  byte h, g;
top:
  if
  /* runqput_next */
  :: atomic {
      made < puts -> make_ready(g);
      h = next[0];
      next[0] = g;
      changed();
      g = h;
      h = 0;
      if
      :: g == none -> g = 0; goto top
      :: else -> goto runqput
      fi
    }
  :: atomic { made < puts -> make_ready(g); goto runqput }
  /* get_next */
  :: atomic { next[0] != none -> g = next[0] }
    if
#ifdef MUTANT_next_without_cas
    :: atomic { true -> next[0] = none; changed() }
#else
    :: atomic { next[0] != g -> g = 0; goto top }
    :: atomic { next[0] == g -> next[0] = none; changed() }
#endif
    fi;
    if
    :: atomic { take(g); g = 0; goto top }
    :: goto runqput /* give_way, let_others_in */
    fi
  :: get_from_ring(0); atomic { g = 0; goto top }
  :: atomic { made == puts && length(0) == 0 && next[0] == none -> done = true; goto over }
  fi;
runqput:
  /* put */
  if
  :: is_full -> goto take_half
  :: !is_full
  fi;
#ifdef MUTANT_tail_before_slot
  atomic { tail[0] = tail[0] + 1; changed() }
  atomic { at(0, tail[0] - 1) = g; g = 0; goto top }
#else
  at(0, tail[0]) = g;
  atomic { tail[0] = tail[0] + 1; changed(); g = 0; goto top }
#endif
take_half:
  atomic {
    h = head[0];
    if
    :: from(h, tail[0]) / 2 != capacity / 2 -> h = 0; goto runqput
    :: else
    fi
  }
  atomic {
#ifndef MUTANT_half_without_cas
    if
    :: head[0] != h -> h = 0; goto runqput
    :: else
    fi;
#endif
    take(at(0, h));
    take(at(0, h + 1));
    take(g);
    head[0] = h + 2;
    changed();
    h = 0;
    g = 0;
    goto top
  }
over:
  skip
}

/* --- a thief: q steals from v. Its own ring is empty before and afterwards */

proctype thief(byte q) {
  byte h, n, g, v;
top:
  if
#ifdef CHAIN
  :: atomic { !done && q == 2 -> v = 1 }
    h = head[v]
#endif
  :: atomic { !done -> h = head[v] }
  :: atomic { !done && next[0] != none -> g = next[0]; goto steal_next }
  :: atomic { done -> goto over }
  fi;
grab:
  atomic {
    n = from(h, tail[v]);
    n = n - n / 2;
    if
    :: n == 0 -> h = 0; v = 0; goto top
    :: n > capacity / 2 -> n = 0; goto grab_again
    :: else
    fi
  }
#ifdef MUTANT_slots_read_late
  atomic {
    if
    :: head[v] != h -> n = 0; goto grab_again
    :: else -> head[v] = h + n; changed()
    fi
  }
#endif
  at(q, tail[q]) = at(v, h);
  if
  :: n == 2 -> at(q, tail[q] + 1) = at(v, h + 1)
  :: n == 1
  fi;
  atomic {
#ifndef MUTANT_slots_read_late
#ifndef MUTANT_grab_without_cas
    if
    :: head[v] != h -> at(q, tail[q]) = none; at(q, tail[q] + 1) = none; n = 0; goto grab_again
    :: else
    fi;
#endif
    head[v] = h + n;
    changed();
#endif
    h = 0;
    v = 0;
    n--;
    take(at(q, tail[q] + n));
    at(q, tail[q] + n) = none;
#ifdef CHAIN
    if
    :: n == 0 -> goto top
    :: else -> n = 0
    fi
  }
  tail[q] = tail[q] + 1;
  do
  :: get_from_ring(q);
    if
    :: atomic { g == none -> g = 0; goto top }
    :: g != none
    fi
  od;
#else
    if
    :: n == 1 -> take(at(q, tail[q])); at(q, tail[q]) = none; n = 0
    :: else
    fi;
    goto top
  }
#endif
grab_again:
  atomic { h = head[v]; goto grab }
steal_next:
  atomic {
    if
#ifdef MUTANT_steal_next_any
    :: next[0] != none -> take(g); next[0] = none; changed()
#else
    :: next[0] == g -> take(g); next[0] = none; changed()
#endif
    :: else
    fi;
    g = 0;
    goto top
  }
over:
  skip
}

#ifdef LOOKS
proctype looker() {
  byte h, t, n;
end_looking:
  atomic {
    !done -> calls = true;
    changed();
    if
    :: goto whole_queue
    :: goto only_ring
    fi
  }
whole_queue:
#ifdef MUTANT_next_read_first
  n = next[0];
  h = head[0];
  t = tail[0];
#else
  h = head[0];
  t = tail[0];
  n = next[0];
#endif
  atomic {
#ifndef MUTANT_empty_once
    if
    :: tail[0] != t -> n = 0; goto whole_queue
    :: else
    fi;
#endif
    assert(h == t && n == none -> was_empty : was_not);
    n = 0;
    goto returns
  }
only_ring:
#ifdef MUTANT_ring_tail_first
  t = tail[0];
  h = head[0];
#else
  h = head[0];
  t = tail[0];
#endif
  atomic {
    assert(h == t -> ring_was_empty : ring_was_not);
returns:
    h = 0;
    t = 0;
    calls = false;
    was_empty = false;
    was_not = false;
    ring_was_empty = false;
    ring_was_not = false;
    goto end_looking
  }
}
#endif

proctype at_rest() {
  byte i;
end_watching:
  atomic {
    timeout;
    assert(done && made == puts);
    do
    :: i < gs -> assert(!is_ready[i]); i++
    :: else -> break
    od
  }
}

init {
  byte i, g;
  atomic {
    do
    :: i < loaded -> make_ready(g); at(0, first + i) = g; i++
    :: else -> i = 0; g = 0; break
    od;
    made = 0;
    tail[0] = first + loaded;
    run owner();
    run thief(1);
#ifdef LOOKS
    run looker();
#else
    run thief(2);
#endif
    run at_rest()
  }
}
