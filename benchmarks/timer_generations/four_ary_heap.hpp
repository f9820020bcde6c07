// A 4-ary heap. The heap asks an entry when() it is due, and calls at(i) to tell it its place i.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace generations {

template <class Entry>
class four_ary_heap {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const Entry& front() const { return entries_.front(); }
  const Entry& back() const { return entries_.back(); }

  void push(Entry e) {
    entries_.push_back(e);
    sift_up(entries_.size() - 1);
  }

  void remove(std::size_t i) {
    Entry last = entries_.back();
    entries_.pop_back();
    if (i == entries_.size()) return;
    entries_[i] = last;
    sift_up(i);
    sift_down(i);
  }

  // Replaces the first entry by e, whose time may differ.
  void replace_front(Entry e) {
    entries_.front() = e;
    sift_down(0);
  }

  // Keeps the entries for which keep(entry) is true; keep may change the entry. at(i) is not called for every entry
  // that gets another place, so this is only for entries that need not know theirs.
  template <class Keep>
  void sweep(Keep keep) {
    std::size_t out = 0;
    for (Entry& e : entries_) {
      if (keep(e)) entries_[out++] = e;
    }
    entries_.resize(out);
    if (out < 2) return;
    for (std::size_t i = (out - 2) / arity + 1; i-- > 0;) sift_down(i);
  }

 private:
  static constexpr std::size_t arity = 4;

  void put(std::size_t i, Entry e) {
    entries_[i] = e;
    e.at(i);
  }

  void sift_up(std::size_t i) {
    Entry e = entries_[i];
    while (i > 0) {
      std::size_t parent = (i - 1) / arity;
      if (e.when() >= entries_[parent].when()) break;
      put(i, entries_[parent]);
      i = parent;
    }
    put(i, e);
  }

  void sift_down(std::size_t i) {
    Entry e = entries_[i];
    for (;;) {
      std::size_t first = i * arity + 1;
      if (first >= entries_.size()) break;
      std::size_t end = std::min(first + arity, entries_.size());
      std::size_t least = first;
      for (std::size_t c = first + 1; c < end; ++c) {
        if (entries_[c].when() < entries_[least].when()) least = c;
      }
      if (entries_[least].when() >= e.when()) break;
      put(i, entries_[least]);
      i = least;
    }
    put(i, e);
  }

  std::vector<Entry> entries_;
};

}  // namespace generations
