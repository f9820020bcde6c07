// context: the tree of nodes.
//
// A node is either cancellable or carries a value. A value node asks the nearest cancellable node above it
// (`canceller`) for everything else. Nodes are counted: handles and the nodes below hold references. When the last
// reference is gone, the node lets go of the node above and of what belongs to the user. A cancellable node is in the
// list of children of the nearest cancellable node above, from its creation until it is cancelled. The list holds no
// reference, but the node's `cancel` object does, and that cancels the node before it lets go. So a node that is in a
// list, or on which somebody else's cancel() is at work, is alive.
//
// Each tree (everything below one root) has one lock, which guards the lists and the changes of all its nodes.
// Cancelling takes the lock once: it unlinks and marks the node and everything below it, and then closes their done
// channels. So anyone who finds a node's channel closed, or finds the node cancelled under the lock, as a second
// cancel() of it does, finds everything below it cancelled as well. What may run user code (stop callbacks) or is slow
// (timers) is done afterwards, without the lock.
//
// Some fields are read without the lock: `state` (stored with seq_cst; read with acquire, in err() with seq_cst), and
// what is written before it, the cause; `settled`, and with it whether there ever was a node below; and `channel`. The
// reason is that a goroutine that waits for the lock keeps its P, and cancelling a wide tree takes long. Goroutines
// that the cancel wakes, and those that start beside it, must not queue for the lock only to find everything done
// already.
//
// A cancel() at work, and the function of a deadline's timer, only keep the node's memory (`keep`). They may be late,
// and must not be what destroys the user's values after all handles are gone. A node with a deadline and its timer keep
// each other alive. Cancelling breaks that cycle: it stops the timer and lets go of it, and every node is cancelled in
// the end.
//
// A cancel() that has marked its nodes must not leave their stop_tokens as they were: whoever holds one knows nothing
// of run(). So from before the tree's lock is released a goroutine that has callbacks to call is in no_preemption, and
// if its run() ends meanwhile, it goes on as long as options::shutdown_grace lasts.
//
// A timer ends with its run(), but a context may live on. So a call that asks a context for something in another run(),
// or while no runtime is running, looks at the clock and, in a run(), sets the timer again (see_to_deadline).

#include "weft/context.hpp"

#include "api/src/chan_core.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"
#include "weft/runtime.hpp"
#include "weft/time.hpp"

#include <memory>

namespace weft::detail {

namespace {

struct tree {
  rt::lock mutex{rt::lock_rank::context};
  rt::atomic<std::uint32_t> references{1};  // one for each cancellable node
};

void release(tree* t) noexcept {
  if (t->references.fetch_sub(1, rt::acq_rel) == 1) delete t;
}

enum class cancel_state : std::uint8_t { active, canceled, timed_out };

}  // namespace

class cancel_node;

class context_node {
 public:
  explicit context_node(context_node* above) noexcept : parent(above) {
    if (parent) context_retain(parent);
  }
  context_node(const context_node&) = delete;
  context_node& operator=(const context_node&) = delete;
  virtual ~context_node() = default;  // does not release the parent: context_release goes up in a loop

  // Called when the last reference is gone: nobody asks the node for anything any more.
  virtual void forget() noexcept {}
  void keep() noexcept { kept.fetch_add(1, rt::relaxed); }
  void let_go() noexcept {
    if (kept.fetch_sub(1, rt::acq_rel) == 1) delete this;
  }

  rt::atomic<std::uint32_t> references{1};
  rt::atomic<std::uint32_t> kept{1};  // all references together hold one
  context_node* const parent;
  cancel_node* canceller = nullptr;  // this node, or the nearest cancellable one above; null: cannot be cancelled
};

namespace {

class value_node final : public context_node {
 public:
  value_node(context_node* above, const void* k, void* v, void (*d)(void*) noexcept) noexcept
      : context_node(above), key(k), value(v), destroy(d) {
    if (parent) canceller = parent->canceller;
  }
  ~value_node() override { destroy(value); }

  const void* const key;
  void* const value;
  void (*const destroy)(void*) noexcept;
};

}  // namespace

class cancel_node final : public context_node {
 public:
  // Takes over one reference to the tree.
  cancel_node(context_node* above, std::int64_t latest, tree* t) noexcept
      : context_node(above), deadline(latest), in(t), above_me(above ? above->canceller : nullptr) {
    canceller = this;
  }
  ~cancel_node() override {
    if (chan_core* c = channel.load(rt::relaxed)) chan_release(c);
    release(in);
  }

  // The node is cancelled by now, so nobody sets the cause any more.
  void forget() noexcept override { cause = nullptr; }

  bool is_cancelled() const noexcept { return state.load(rt::acquire) != cancel_state::active; }

  // True: a cancel() that starts now has nothing to do, and nothing to wait for. Nothing is linked below a cancelled
  // node, and the cancel() that cancelled this one does not come back to it. acquire: a caller that lets go of the node
  // now may free it.
  bool is_done_with() const noexcept { return settled.load(rt::acquire) && !has_been_parent.load(rt::relaxed); }

  // Returns the done channel. Null: it does not exist, or a cancel() is about to close it.
  chan_core* settled_channel() const noexcept {
    chan_core* c = channel.load(rt::acquire);
    return c && (c->closed.load(rt::acquire) || !is_cancelled()) ? c : nullptr;
  }

  // --- under the tree's lock, or before anybody else knows the node
  void link() noexcept {
    next = above_me->children;
    if (next) next->prev = this;
    above_me->children = this;
    above_me->has_been_parent.store(true, rt::relaxed);
  }
  void unlink() noexcept {
    if (!above_me || is_cancelled()) return;
    (prev ? prev->next : above_me->children) = next;
    if (next) next->prev = prev;
    next = prev = nullptr;
  }
  void mark(cancel_state s, const std::exception_ptr& why) noexcept {
    cause = why;
    // seq_cst, since err() reads it without the lock: once cancel() has returned, err() never says that the context is
    // active. The release that this includes is for the cause.
    state.store(s, rt::seq_cst);
  }
  void close_channel() noexcept {
    if (chan_core* c = channel.load(rt::relaxed)) chan_close(c);
  }
  void settle() noexcept { settled.store(true, rt::release); }  // the last access by cancel(), unless the node is kept

  const std::int64_t deadline;
  tree* const in;
  cancel_node* const above_me;
  cancel_node* timed = nullptr;            // the node whose timer serves the deadline: this or one above; or null
  rt::atomic<std::uint64_t> timer_run{0};  // the run() in which the timer was set. relaxed: it publishes nothing else
  rt::atomic<cancel_state> state{cancel_state::active};
  std::exception_ptr cause;
  rt::atomic<bool> has_been_parent{false};  // set under the tree's lock
  rt::atomic<bool> settled{false};          // cancelled, and its channel closed
  rt::atomic<chan_core*> channel{nullptr};  // set under the tree's lock, once

  // Under the tree's lock:
  cancel_node* children = nullptr;
  cancel_node* next = nullptr;  // siblings; once cancelled: the list of the cancel() at work on it
  cancel_node* prev = nullptr;
#if defined(__cpp_lib_jthread)
  std::optional<std::stop_source> source;
#endif
  // Once the node is cancelled, these belong to the cancel() at work on it.
  std::optional<func_timer> timer;
  bool has_callbacks = false;
};

namespace {

struct let_go {
  void operator()(cancel_node* kept) const noexcept { kept->let_go(); }
};
using kept_node = std::unique_ptr<cancel_node, let_go>;

kept_node keep(cancel_node* n) noexcept {
  n->keep();
  return kept_node(n);
}

void cancel(cancel_node* root, cancel_state s, const std::exception_ptr& why) noexcept {
  if (root->is_done_with()) {
    answer_runtime_request();
    return;
  }
  // Whoever is woken by the channel may let go of the context at once, and destroy the very object that is called here.
  const kept_node kept = keep(root);
  cancel_node* with_more = nullptr;  // kept nodes that need more work, done without the lock
  // A std::stop_callback that is destroyed while its callback runs decides by the thread whether it is destroyed from
  // within the callback, or has to wait for it. So a goroutine that calls the callbacks keeps its thread, and no other
  // goroutine runs there meanwhile. This must hold beyond the last callback: only then does request_stop look whether
  // the callback has destroyed its own std::stop_callback.
  std::optional<no_preemption> keeps_thread;
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(root->in->mutex);
    if (root->is_cancelled()) return;
    root->unlink();
    // Breadth first: everything below becomes one list, linked through `next`, with `last` as its end.
    cancel_node* last = root;
    for (cancel_node* n = root; n; n = n->next) {
      if (n->children) {
        last->next = std::exchange(n->children, nullptr);
        while (last->next) last = last->next;
      }
      n->mark(s, why);
    }
    for (cancel_node* n = root; n;) {
      n->close_channel();
      cancel_node* following = std::exchange(n->next, nullptr);
      n->prev = nullptr;
#if defined(__cpp_lib_jthread)
      n->has_callbacks = n->source.has_value();
      if (n->has_callbacks && scope.m() && !keeps_thread) keeps_thread.emplace();
#endif
      if (n->has_callbacks || n->timer) {
        n->keep();
        n->next = std::exchange(with_more, n);
      }
      n->settle();
      n = following;
    }
  }
  while (with_more) {
    cancel_node* n = with_more;
    with_more = std::exchange(n->next, nullptr);
    if (n->timer) {
      n->timer->stop();
      n->timer.reset();
    }
#if defined(__cpp_lib_jthread)
    if (n->has_callbacks) n->source->request_stop();
#endif
    n->let_go();
  }
}

void start_timer(cancel_node* n) {
  rt::throw_if_not_running("a context's deadline");
  std::int64_t ns = n->deadline - rt::nanotime();
  n->timer_run.store(number_of_run(), rt::relaxed);
  func_timer t = after_func(std::chrono::nanoseconds(ns),
                            [kept = keep(n)] { cancel(kept.get(), cancel_state::timed_out, nullptr); });
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(n->in->mutex);
    if (!n->is_cancelled()) {
      n->timer.emplace(std::move(t));
      return;
    }
  }
  t.stop();
}

// If the deadline's timer was set in another run(): cancels the context if the deadline has passed, or else sets the
// timer again in the present run(). If there is no memory for the timer, the next call on the context tries again.
void see_to_deadline(cancel_node* n) noexcept {
  cancel_node* t = n->timed;
  if (!t) return;
  // Once a run() is ending, no timer fires.
  const std::uint64_t run = rt::sched.shutting_down.load(rt::relaxed) ? 0 : number_of_run();
  std::uint64_t set_in = t->timer_run.load(rt::relaxed);
  if ((run != 0 && set_in == run) || t->is_cancelled()) return;
  std::int64_t left = t->deadline - rt::nanotime();
  if (left <= 0) return cancel(t, cancel_state::timed_out, nullptr);
  if (run == 0 || !t->timer_run.compare_exchange_strong(set_in, run, rt::relaxed, rt::relaxed)) return;
  std::optional<func_timer> timer;
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(t->in->mutex);
    if (!t->is_cancelled()) timer = t->timer;
  }
  // The thread that makes the context has not stored its timer yet, in a run() that is over. The next call finds the
  // timer.
  if (!timer) t->timer_run.store(set_in, rt::relaxed);
  try {
    if (timer) timer->reset(std::chrono::nanoseconds(left));
    if (timer && t->is_cancelled()) timer->stop();  // cancelled meanwhile, and its timer was stopped before we set it
  } catch (...) {
    t->timer_run.store(0, rt::relaxed);
  }
}

}  // namespace

void context_retain(context_node* n) noexcept { n->references.fetch_add(1, rt::relaxed); }

void context_release(context_node* n) noexcept {
  while (n && n->references.fetch_sub(1, rt::acq_rel) == 1) {
    context_node* parent = n->parent;
    n->forget();
    n->let_go();
    n = parent;
  }
}

context_node* context_make(context_node* parent, std::int64_t deadline) {
  cancel_node* above = parent ? parent->canceller : nullptr;
  if (above) see_to_deadline(above);
  bool own_deadline = deadline < (above ? above->deadline : never_ns);
  if (!own_deadline) deadline = above ? above->deadline : never_ns;
  auto own_tree = above ? nullptr : std::make_unique<tree>();
  auto* n = new cancel_node(parent, deadline, above ? above->in : own_tree.get());
  if (above) {
    n->in->references.fetch_add(1, rt::relaxed);
  } else {
    own_tree.release();
  }
  context_ref made(n);
  n->timed = own_deadline ? n : above ? above->timed : nullptr;
  bool linked = false;
  if (above && !above->is_cancelled()) {
    rt::runtime_scope scope;
    rt::lock_guard hold(n->in->mutex);
    linked = !above->is_cancelled();
    if (linked) n->link();
  }
  if (above && !linked) {
    n->mark(above->state.load(rt::relaxed), above->cause);
    n->settle();
  }
  if (own_deadline && !n->is_cancelled()) {
    if (deadline <= rt::nanotime()) {
      cancel(n, cancel_state::timed_out, nullptr);
    } else {
      try {
        start_timer(n);
      } catch (...) {
        cancel(n, cancel_state::canceled, nullptr);  // takes it out of the list
        throw;
      }
    }
  }
  context_retain(n);
  context_retain(n);
  return n;
}

void context_cancel(context_node* node, std::exception_ptr cause) noexcept {
  auto* n = static_cast<cancel_node*>(node);
  kept_node kept;
  if (n->timed) {
    kept = keep(n);      // whoever is woken because the deadline has passed may let go of the context
    see_to_deadline(n);  // it may have passed while no runtime was running
  }
  cancel(n, cancel_state::canceled, cause);
}

context_node* context_make_value(context_node* parent, const void* key, void* value, void (*destroy)(void*) noexcept) {
  return new value_node(parent, key, value, destroy);
}

const void* context_value(const context_node* n, const void* key) noexcept {
  for (; n; n = n->parent) {
    if (n->canceller == n) continue;
    auto* v = static_cast<const value_node*>(n);
    if (v->key == key) return v->value;
  }
  return nullptr;
}

chan_core* context_done(context_node* node) {
  cancel_node* n = node->canceller;
  if (!n) return nullptr;
  see_to_deadline(n);
  chan_core* c = n->settled_channel();
  chan_core* made = nullptr;
  while (!c) {
    {
      rt::runtime_scope scope;
      rt::lock_guard hold(n->in->mutex);
      c = n->channel.load(rt::relaxed);
      if (!c && made) {
        c = std::exchange(made, nullptr);
        n->channel.store(c, rt::release);
        if (n->is_cancelled()) chan_close(c);
      }
    }
    if (!c) made = chan_make(no_element, 0);
  }
  if (made) chan_release(made);  // somebody else was faster
  chan_retain(c);
  return c;
}

std::error_code context_err(const context_node* node) noexcept {
  answer_runtime_request();
  cancel_node* n = node->canceller;
  if (n) see_to_deadline(n);
  switch (n ? n->state.load(rt::seq_cst) : cancel_state::active) {
    case cancel_state::active: break;
    case cancel_state::canceled: return std::make_error_code(std::errc::operation_canceled);
    case cancel_state::timed_out: return std::make_error_code(std::errc::timed_out);
  }
  return {};
}

std::exception_ptr context_cause(const context_node* node) {
  std::error_code e = context_err(node);
  if (!e) return nullptr;
  if (node->canceller->cause) return node->canceller->cause;
  return std::make_exception_ptr(std::system_error(e, "weft::context"));
}

std::int64_t context_deadline(const context_node* node) noexcept {
  return node->canceller ? node->canceller->deadline : never_ns;
}

#if defined(__cpp_lib_jthread)
std::stop_token context_stop_token(context_node* node) {
  cancel_node* n = node->canceller;
  if (!n) return {};
  see_to_deadline(n);
  std::optional<std::stop_source> made;
  for (;;) {
    {
      rt::runtime_scope scope;
      rt::lock_guard hold(n->in->mutex);
      if (!n->source && made) {
        // A cancel() that came before has stopped only the source that it found. This one has no callbacks yet that
        // could run.
        if (n->is_cancelled()) made->request_stop();
        n->source.emplace(*made);
      }
      if (n->source) break;
    }
    made.emplace();
  }
  return n->source->get_token();
}
#endif

}  // namespace weft::detail
