/* The low-level lock, "asymmetric unlock" of threads: runtime/lock.cpp.
 *
 * Who takes part: `threads` threads. Each takes the lock and gives it back, `times` times.
 *
 * Properties:
 *   - There is one holder at a time.
 *   - Nobody sleeps on: when nothing moves any more, each thread is at its end.
 *   - The bell rings if there is a sleeper and the first one is not on its way, and only then.
 *
 * What is abstracted:
 *   - Of what a processor keeps in its store buffer, only the store that frees the lock matters. It is seen at any time
 *     after it was made, at the latest with the thread's next read-modify-write, or at a heavy barrier.
 *   - There is one lock. Other locks whose sleepers are in the same queue would make the bell ring more often.
 *   - 50 us pass at any time, or never; so they are no reason to go on.
 *   - The queue's mutex, and what is done under it, are one step, except for the looks at the lock.
 *
 * States: 617,637.
 */

#ifndef threads
#define threads 3
#endif
#ifndef times
#define times 2
#endif
#define nobody 255

bool held;
bool kept[threads]; /* the thread has freed the lock, and nobody sees that yet */
byte bell;

bool queue_taken;
byte queue[threads], length;
bool on_its_way[threads];
bool woken[threads]; /* the sleeper's note */

byte inside, ended;

#define first (length > 0 -> queue[0] : nobody)

/* Part of a step: what t has stored is seen by all. */
inline flush(t) {
  if
  :: kept[t] -> kept[t] = false; held = false
  :: else
  fi
}

inline heavy_barrier() {
#ifndef MUTANT_no_barrier
  flush(0);
  flush(1);
#if threads > 2
  flush(2)
#endif
#endif
  skip
}

/* take(): a read-modify-write. */
inline take(t, got) {
  flush(t);
  got = !held;
  held = true
}

inline leave_queue(t) {
  byte at = 0;
  do
  :: queue[at] == t -> break
  :: else -> at++
  od;
  do
  :: at + 1 < length -> queue[at] = queue[at + 1]; at++
  :: else -> break
  od;
  length--;
  queue[length] = 0;
  at = 0
}

#define as_it_should (bell == (length > 0 && !on_its_way[queue[0]] -> 1 : 0))

proctype thread(byte me) {
  byte n, wakes = nobody;
  bool got, is_first, rings;
  do
  :: n == times -> break
  :: n < times ->
    n++;
    atomic { take(me, got) }
    if
    :: got -> goto has_it
    :: else
    fi;

    /* acquire_slow, after its looks */
    atomic { !queue_taken -> queue_taken = true; flush(me); queue[length] = me; length++ }
  again:
    atomic {
      is_first = first == me;
      if
      :: is_first ->
#ifndef MUTANT_stays_on_its_way
        on_its_way[me] = false;
#endif
        bell++ /* W0 */
      :: else
      fi
    }
    if
    :: is_first ->
      atomic { take(me, got) }
      if
      :: got -> atomic { bell--; goto leave }
      :: else
      fi
    :: else
    fi;
    atomic { assert(as_it_should); queue_taken = false }
    if
    :: woken[me]
    :: is_first -> /* 50 us have passed */
      atomic { heavy_barrier() } /* W1 */
      atomic { !queue_taken -> queue_taken = true; flush(me) }
#ifndef MUTANT_no_look_after
      if
      :: !on_its_way[me] ->
        atomic { take(me, got) } /* W2 */
        if
        :: got -> atomic { bell--; goto leave }
        :: else
        fi
      :: else
      fi;
#endif
      queue_taken = false;
      woken[me]
    fi;
    woken[me] = false;
    /* The thread looks, once or not at all. */
    got = false;
    if
    :: atomic { take(me, got) }
    :: skip
    fi;
    atomic { !queue_taken -> queue_taken = true; flush(me) }
    if
    :: got
    :: else -> goto again
    fi;
  leave:
    atomic {
      is_first = first == me;
      on_its_way[me] = false;
      leave_queue(me);
#ifndef MUTANT_next_bell_silent
      if
      :: is_first && length > 0 -> bell++
      :: else
      fi;
#endif
      queue_taken = false;
      is_first = false
    }

  has_it:
    inside++;
    assert(inside == 1);
    inside--;

#ifdef MUTANT_bell_before_free
    rings = bell != 0;
    kept[me] = true;
#else
    kept[me] = true; /* U1 */
    rings = bell != 0; /* U3 */
#endif
    if
    :: rings ->
      atomic {
        !queue_taken -> flush(me);
        wakes = first;
        if
        :: wakes == nobody
        :: wakes != nobody && on_its_way[wakes] -> wakes = nobody
        :: else ->
#ifndef MUTANT_wakes_two
          on_its_way[wakes] = true;
#endif
          bell--
        fi
      }
      if
      :: wakes != nobody -> atomic { woken[wakes] = true; wakes = nobody }
      :: else
      fi
    :: else
    fi;
    atomic { got = false; rings = false }
  od;
  ended++
}

/* Every store is seen at last. */
active proctype memory() {
end:
  do
  :: atomic { kept[0] -> flush(0) }
  :: atomic { kept[1] -> flush(1) }
#if threads > 2
  :: atomic { kept[2] -> flush(2) }
#endif
  od
}

init {
  atomic {
    run thread(0);
    run thread(1);
#if threads > 2
    run thread(2)
#endif
  }
}
