// Finds the waiters of an object by its address.
//
// A digital search tree (Knuth, The Art of Computer Programming 3, 6.3): bits of the object's address say left or
// right, one on each level, and a new object's node becomes a leaf. Among n objects one is found in log2 n steps on
// average, in 64 at most, and nothing is allocated: the nodes are waiters, on their stacks. (Go's semaRoot has a treap.
// With a list, n mutexes with waiters take n² steps: Go issue 17953.)
#pragma once

#include <cstdint>
#include <utility>

namespace weft::detail {

// A Node has `of`, a pointer to its object, and `Node* below[2]`.
template <class Node>
class address_tree {
 public:
  // Returns the place where the object's node is stored, or would be.
  Node** place(const void* address) noexcept {
    // The factor is odd, so the products of different addresses differ. Their high bits depend on all lower bits.
    std::uint64_t bits = reinterpret_cast<std::uintptr_t>(address) * std::uint64_t{0xd6e8feb86659fd93};
    Node** p = &root_;
    for (; *p && (*p)->of != address; bits <<= 1) p = &(*p)->below[bits >> 63];
    return p;
  }

  // Stores n at a place that is empty.
  static void put(Node** place, Node& n) noexcept {
    n.below[0] = n.below[1] = nullptr;
    *place = &n;
  }

  // Takes out the node at a place. Another node of the same object takes the place; if there is none (null), a leaf
  // does: all nodes below share the bits that lead here, so any leaf may. Returns the node that has the place now, or
  // null.
  static Node* replace(Node** place, Node* other) noexcept {
    Node& old = **place;
    Node* const next = other ? other : take_leaf_below(old);
    *place = next;
    if (next) {
      next->below[0] = old.below[0];
      next->below[1] = old.below[1];
    }
    return next;
  }

  // Calls f(place) for each node. f may take the node out, and the one that gets its place, and so on.
  template <class F>
  void for_each_place(F f) noexcept {
    at_and_below(&root_, f);
  }

  const Node* root() const noexcept { return root_; }

 private:
  // Takes a leaf below `node` out of the tree. Null: `node` is a leaf itself.
  static Node* take_leaf_below(Node& node) noexcept {
    Node** leaf = nullptr;
    for (Node* n = &node;; n = *leaf) {
      Node** deeper = n->below[0] ? &n->below[0] : &n->below[1];
      if (!*deeper) return leaf ? std::exchange(*leaf, nullptr) : nullptr;
      leaf = deeper;
    }
  }

  template <class F>
  static void at_and_below(Node** place, F& f) noexcept {
    if (*place) f(place);
    if (!*place) return;
    for (Node*& b : (*place)->below) at_and_below(&b, f);
  }

  Node* root_ = nullptr;
};

}  // namespace weft::detail
