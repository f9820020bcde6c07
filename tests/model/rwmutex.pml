/* shared_mutex: api/src/sync/shared_mutex.cpp, weft/sync/shared_mutex.hpp (the fast ways), api/src/sync/heirs.hpp
 * (lock_as_heir).
 *
 * Who takes part: `writers` and `readers`. Each locks and unlocks as often as it likes, or stays inside forever. When
 * it has to wait, it may do so with a time limit; then it leaves, or looks again (as a thread that is not weft's does).
 * A reader comes by a visit, or without one, as with a time limit.
 * With -DENDS, the first writer and the first reader are goroutines of a run() that ends, and the others are threads:
 * the former are abandoned where they wait, or on their way, also to pass on what they have left, and the latter look
 * again once, when all that wait are old.
 *
 * Properties:
 *   - One writer is inside, or readers only.
 *   - A mutex that is passed on to nobody is not marked.
 *   - The word counts those inside, also when nothing moves any more: no change of it is lost.
 *   - When nothing moves any more (each has left, stays inside, or waits without a limit), nobody waits for a mutex
 *     that is free; and a reader waits only if a writer is inside or waits.
 *
 * What is abstracted:
 *   - Memory is sequentially consistent.
 *   - A load and the CAS that depends on it are one step, and so are several looks in a row. pass_on is one step with
 *     its last access: what it does before does not look at the word.
 *   - The bucket is a lock, and under it each access of the word is a step, as others change it by CAS at any time. Two
 *     such accesses are one step only where a CAS of others cannot tell (settle: the bit changes under the bucket).
 *     Taking the bucket is one step with the first access, releasing it with the last. Claims and changes of the queues
 *     are one step with the access beside them: nobody outside sees them before the bucket is free. A waiter that was
 *     claimed moves after that.
 *   - Whether a waiter has become old may be answered either way at each look. Once it is old, it stays so. Whether
 *     readers on their way are late may be answered either way at each look.
 *   - Left out: that nobody is passed by when it is old; destroying; and goroutines of a later run().
 *
 * States: 3,424,645; with -Dwriters=1 -Dreaders=3 3,807,759; with -DENDS 7,654,283.
 */

#ifndef writers
#define writers 2
#endif
#ifndef readers
#define readers 2
#endif
#define all (writers + readers)
#if writers > 2 || readers > 2
#define room 3
#else
#define room 2
#endif
#define none 255

/* --- the word */
#define writer 1
#define waiters 2
#define reader 4
byte word;

/* --- under the bucket */
bool bucket;
byte queue[2 * room] = none; /* the writers', and from `room` on the readers' */
bool queued[all];
bool heir[all];
bool old[all];
bool comes_back[all]; /* a writer (the first, or a thread): it looks again when its time is over */

mtype = { no, waits, woken, handed_over, timed_out, abandoned };
mtype wait[all] = no; /* the state of the wait, and who has claimed it */

byte writers_inside, readers_inside;

#ifdef ENDS
bool looks_again[all];
#define is_thread(i) (i != 0 && i != writers)
#endif

#define is_reader(i) (i >= writers)
#define place(i) (is_reader(i) -> room : 0)
#define first_writer queue[0]
#define first_reader queue[room]
#define is_heir(i) (i != none && heir[i])
#define is_first_of_old(i) (i != none && old[i])
#define is_free_for(i) (is_reader(i) -> (word & (writer | waiters)) == 0 : word == 0) /* try_lock, try_share */
#define nobody_queued (first_writer == none && first_reader == none)

/* --- parts of one step */

inline push_back(a) {
  queued[a] = true;
  if
  :: queue[place(a)] == none -> queue[place(a)] = a
  :: queue[place(a)] != none && queue[place(a) + 1] == none -> queue[place(a) + 1] = a
#if room == 3
  :: queue[place(a)] != none && queue[place(a) + 1] != none -> queue[place(a) + 2] = a
#endif
  fi
}

inline remove(a) {
  assert(queued[a]);
  queued[a] = false;
#if room == 3
  if
  :: queue[place(a)] == a -> queue[place(a)] = queue[place(a) + 1]; queue[place(a) + 1] = queue[place(a) + 2]
  :: queue[place(a) + 1] == a -> queue[place(a) + 1] = queue[place(a) + 2]
  :: queue[place(a) + 2] == a
  fi;
  queue[place(a) + 2] = none
#else
  if
  :: queue[place(a)] == a -> queue[place(a)] = queue[place(a) + 1]
  :: queue[place(a) + 1] == a
  fi;
  queue[place(a) + 1] = none
#endif
}

inline goes_inside(a) {
  assert(writers_inside == 0 && (is_reader(a) || readers_inside == 0));
  if
  :: is_reader(a) -> readers_inside++
  :: else -> writers_inside++
  fi
}

inline goes_out(a) {
  if
  :: is_reader(a) -> readers_inside--
  :: else -> writers_inside--
  fi
}

inline take() {
  word = word + (is_reader(me) -> reader : writer);
  wait[me] = no;
  goes_inside(me)
}

inline may_have_become_old(a) {
  if
  :: a == none || old[a]
  :: a != none && !old[a]
  :: a != none && !old[a] -> old[a] = true
  fi
}

inline drop_abandoned() {
#if defined(ENDS) && !defined(MUTANT_waits_for_abandoned)
  do
  :: first_writer != none && wait[first_writer] == abandoned -> i = first_writer; remove(i)
  :: first_reader != none && wait[first_reader] == abandoned -> i = first_reader; remove(i)
  :: else -> break
  od;
  i = 0
#else
  skip
#endif
}

/* Used after drop_abandoned. `late`: whether readers that are on their way are. */
#define must_wake \
  (!is_heir(first_writer) && \
   (is_heir(first_reader) -> late && first_writer != none : first_writer != none || first_reader != none))

inline may_be_late() {
  if
  :: late = false
  :: is_heir(first_reader) && first_writer != none -> late = true
  fi
}

#ifdef MUTANT_claim_not_asked
#define claim_fails(a) false
#else
#define claim_fails(a) (wait[a] != waits)
#endif

/* It was woken by its own timer, and finds what it is given. */
#define is_coming_back(a) (comes_back[a] && wait[a] == timed_out)

inline hand_over(a) {
  wait[a] = handed_over;
  remove(a);
  goes_inside(a);
  holders = holders + (is_reader(a) -> reader : writer)
}

inline hand_over_to_all_readers() {
  i = writers;
  do
  :: i < all ->
    if
    :: !queued[i] || heir[i]
    :: queued[i] && !heir[i] && claim_fails(i) -> remove(i)
    :: queued[i] && !heir[i] && !claim_fails(i) -> hand_over(i)
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

inline invite_all_readers() {
  i = writers;
  do
  :: i < all ->
    if
    :: !queued[i] || heir[i]
    :: queued[i] && !heir[i] && claim_fails(i) -> remove(i)
    :: queued[i] && !heir[i] && !claim_fails(i) -> heir[i] = true; wait[i] = woken
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* Whether the mutex goes to the readers. Used after it was decided whether the first ones are old. */
#define no_reader_waits (first_reader == none || heir[first_reader])
#define only_writer_old (is_first_of_old(first_writer) && (no_reader_waits || !old[first_reader]))
#define only_reader_old (!is_first_of_old(first_writer) && !no_reader_waits && old[first_reader])
#define to_readers \
  (!only_writer_old && (only_reader_old || !(no_reader_waits || (first_writer != none && from_reader))))

#define its_turn(a) (queued[a] && (to_readers -> a == first_reader : a == first_writer))

/* Does all but the store. */
inline choose_next() {
  holders = 0;
  do
  :: true ->
    drop_abandoned();
    may_be_late();
    if
    :: holders != 0 || !must_wake -> break
    :: else
    fi;
    may_have_become_old(first_writer);
    may_have_become_old(first_reader);
    if
    :: to_readers && old[first_reader] -> hand_over_to_all_readers()
    :: to_readers && !old[first_reader] -> invite_all_readers()
    :: !to_readers ->
      i = first_writer;
      if
      :: claim_fails(i) && !is_coming_back(i) -> remove(i)
      :: is_coming_back(i) || (!claim_fails(i) && (old[i] || from_reader)) -> hand_over(i)
      :: !claim_fails(i) && !old[i] && !from_reader -> heir[i] = true; wait[i] = woken
      fi;
      i = 0
    fi
  od;
  drop_abandoned();
  may_be_late()
}

/* The last step of the one that has the lock alone, under the bucket. */
inline pass_on() {
#ifdef MUTANT_published_by_a_store
  seen = word;
#endif
  atomic {
#ifdef MUTANT_published_first
    word = word - writer - (word & waiters)
  }
  atomic {
    choose_next();
    word = word + (holders | (holders != 0 && must_wake -> waiters : 0));
#else
    assert(word & writer);
    choose_next();
#ifdef MUTANT_published_by_a_store
    word = seen;
#endif
    word = word - writer - (word & waiters);
#ifdef MUTANT_others_not_marked
    word = word + holders;
#elif defined(MUTANT_marked_when_free)
    word = word + holders + (must_wake -> waiters : 0);
#else
    word = word + holders + (holders != 0 && must_wake -> waiters : 0);
#endif
    assert(holders != 0 || (word & waiters) == 0);
#endif
    late = false;
    holders = 0;
    seen = 0;
    from_reader = false;
    bucket = false
  }
}

/* Part of one step. */
inline settle() {
  drop_abandoned();
  may_be_late();
  if
  :: must_wake -> word = word | waiters
  :: else -> word = word & ~waiters
  fi;
  late = false
}

inline done_waiting() {
  wait[me] = no;
  heir[me] = false;
  old[me] = false;
  comes_back[me] = false;
  timed = false
}

inline take_under_bucket() {
  if
  :: queued[me] -> remove(me)
  :: else
  fi;
  drop_abandoned();
#ifndef MUTANT_heir_comes_alone
  if
  :: is_reader(me) && first_writer == none -> hand_over_to_all_readers(); word = word + holders; holders = 0
  :: else
  fi;
#endif
#ifndef MUTANT_heir_leaves_others
  settle();
#endif
  done_waiting();
  bucket = false
}

proctype locker(byte me) {
  byte i, holders, seen;
  bool timed, so, joins, late, from_reader;
outside:
  if
  :: atomic { is_free_for(me) -> take(); goto inside }
  :: atomic { /* lock_shared: a visit */
      is_reader(me) ->
      so = is_free_for(me);
      word = word + reader;
      if
      :: so -> so = false; goes_inside(me); goto inside
      :: else -> goto visiting
      fi
    }
  :: atomic { !is_free_for(me) -> timed = true }
  :: atomic { !is_free_for(me) && me == 0 -> timed = true; comes_back[me] = true }
  :: !is_free_for(me)
  :: goto over
  fi;
again:
#ifdef MUTANT_handed_over_unseen
#define finds_it_handed_over false
#else
#define finds_it_handed_over (wait[me] == handed_over)
#endif
  if
  :: atomic { !bucket && finds_it_handed_over -> done_waiting(); goto inside }
  :: atomic { /* take_or_queue */
    !bucket && !finds_it_handed_over ->
    assert(wait[me] != handed_over);
#ifndef MUTANT_stays_heir
    heir[me] = false;
#endif
#ifndef MUTANT_behind_abandoned
    drop_abandoned();
#endif
    may_have_become_old(first_writer);
    may_have_become_old(first_reader);
    from_reader = true;
    joins = is_reader(me) && !(first_writer != none && !heir[first_writer] && old[first_writer]);
#ifdef MUTANT_left_is_not_free
    so = joins;
#else
    so = joins || nobody_queued || its_turn(me);
#endif
    from_reader = false;
    /* so: it takes a mutex that is left; joins: it comes in beside readers */
    if
    :: word == 0 || (word == waiters && so) || (word != waiters && joins && (word & writer) == 0) ->
      so = false;
      joins = false;
      bucket = true;
      take()
    :: else ->
      so = false;
      joins = false;
#ifndef MUTANT_no_mark
      word = word | waiters;
#endif
      if
      :: queued[me]
      :: else -> push_back(me)
      fi;
      wait[me] = waits;
      comes_back[me] = comes_back[me] && timed;
      goto end_blocked
    fi
  }
  fi;
  atomic { take_under_bucket(); goto inside }
end_blocked:
  if
  :: atomic { wait[me] == woken && !bucket -> wait[me] = no }
  :: atomic { wait[me] == handed_over && !bucket -> done_waiting(); goto inside }
  :: atomic { wait[me] == waits && timed -> wait[me] = timed_out; timed = false }
    if
    :: goto again
    :: goto give_up
#ifdef ENDS
    :: atomic { !is_thread(me) -> wait[me] = abandoned; goto end_of_run }
#endif
    fi
#ifdef ENDS
  :: atomic { wait[me] == waits && looks_again[me] -> looks_again[me] = false; comes_back[me] = !is_reader(me); wait[me] = timed_out; goto again }
  :: atomic { wait[me] != timed_out && !is_thread(me) -> wait[me] = abandoned; goto end_of_run }
#endif
  fi;
  if
  :: atomic { is_free_for(me) -> take() }
  :: !is_free_for(me) -> goto again
  fi;
  atomic { !bucket -> take_under_bucket(); goto inside }
give_up:
  atomic {
    !bucket ->
    if
    :: wait[me] == handed_over -> done_waiting(); goto inside
    :: else -> done_waiting()
    fi;
    if
    :: queued[me] ->
      bucket = true;
      remove(me);
#ifndef MUTANT_readers_left_behind
      so = !is_reader(me) && first_writer == none && (word & (waiters | writer)) == waiters
#endif
    :: else -> goto outside
    fi
  }
  if
#ifdef MUTANT_hand_over_stores
  :: so -> seen = word
    atomic { hand_over_to_all_readers(); word = seen + holders; holders = 0; seen = 0; so = false }
#else
  :: atomic { so -> hand_over_to_all_readers(); word = word + holders; holders = 0; so = false }
#endif
  :: !so
  fi;
#ifdef MUTANT_settle_stores
  seen = word;
  atomic { settle(); word = (seen & ~waiters) | (word & waiters); seen = 0 }
#else
  atomic { settle() }
#endif
  if
  :: atomic { word == waiters -> word = waiters | writer; from_reader = true }
    pass_on();
    goto outside
  :: atomic { word != waiters -> bucket = false; goto outside }
  fi;
visiting:
  atomic {
    if
#ifdef MUTANT_last_visitor_goes
    :: is_free_for(me) -> goes_inside(me); goto inside
#else
    :: is_free_for(me) || word == (reader | waiters) -> goes_inside(me); goto inside
#endif
    :: else -> word = word - reader; goto outside
    fi
  }
inside:
  if
  :: is_reader(me)
  :: !is_reader(me) -> goto unlock
  :: goto end_stays
  fi;
  atomic { /* unlock_shared */
    assert(word >= reader && (word & writer) == 0);
    goes_out(me);
    word = word - reader;
#ifdef MUTANT_reader_passes_nothing_on
    goto outside
#endif
    if
    :: word == waiters
    :: else -> goto outside
    fi
  }
left:
  if
  :: atomic {
      !bucket ->
      drop_abandoned();
      if
      :: nobody_queued -> goto outside /* the mutex may be gone */
#ifdef MUTANT_passed_on_twice
      :: !nobody_queued -> word = word | writer
#else
      :: !nobody_queued && word != waiters -> goto outside
      :: !nobody_queued && word == waiters -> word = waiters | writer
#endif
      fi;
      bucket = true;
      from_reader = true
    }
#ifdef ENDS
  :: atomic { !is_thread(me) -> wait[me] = abandoned; goto end_of_run }
#endif
  fi;
  pass_on();
  goto outside;
unlock:
  if
#ifdef MUTANT_writer_leaves_without_a_look
  :: atomic { word = word - writer; goes_out(me); goto outside }
#else
  :: atomic { (word & waiters) == 0 -> word = word - writer; goes_out(me); goto outside }
#endif
  :: (word & waiters) != 0
  fi;
  atomic { /* unlock_slow */
    !bucket ->
    assert(word & writer);
    goes_out(me);
    bucket = true
  }
  pass_on();
  goto outside;
end_stays:
  false;
#ifdef ENDS
end_of_run:
  false;
#endif
over:
  skip
}

proctype at_rest() {
  byte i;
  bool writer_waits, reader_waits;
#ifdef ENDS
  atomic {
    timeout;
    do
    :: i < all -> looks_again[i] = is_thread(i) && wait[i] == waits; old[i] = old[i] || wait[i] == waits; i++
    :: else -> i = 0; break
    od
  }
#endif
  atomic {
    timeout;
    assert(!bucket);
    assert(word >> 2 == readers_inside && (word & writer) == writers_inside);
    do
    :: i < all ->
      assert(wait[i] != woken && wait[i] != timed_out);
      assert(wait[i] != waits || (word & ~waiters) != 0);
      writer_waits = writer_waits || (!is_reader(i) && wait[i] == waits);
      reader_waits = reader_waits || (is_reader(i) && wait[i] == waits);
      i++
    :: else -> break
    od;
    assert(!reader_waits || writer_waits || (word & writer))
  }
}

init {
  atomic {
    byte i = 0;
    do
    :: i < all -> run locker(i); i++
    :: else -> break
    od;
    run at_rest()
  }
}
