// A list whose links lie in its elements, so that nothing is allocated, and an element is removed without a search.
#pragma once

namespace weft::rt {

template <class T>
struct list_links {
  T* next = nullptr;
  T* prev = nullptr;
};

// Keeps its elements in the order in which they came. An iterator stays valid while other elements are taken out.
template <class T, list_links<T> T::*Links>
class linked_list {
 public:
  class iterator {
   public:
    explicit iterator(T* e) noexcept : e_(e) {}
    T* operator*() const noexcept { return e_; }
    iterator& operator++() noexcept {
      e_ = (e_->*Links).next;
      return *this;
    }
    bool operator==(const iterator&) const noexcept = default;

   private:
    T* e_;
  };

  iterator begin() const noexcept { return iterator(first_); }
  iterator end() const noexcept { return iterator(nullptr); }
  T* front() const noexcept { return first_; }

  void push_back(T* e) noexcept {
    T* last = first_ ? (first_->*Links).prev : e;
    e->*Links = {nullptr, last};
    (first_ ? (last->*Links).next : first_) = e;
    (first_->*Links).prev = e;
  }

  void erase(T* e) noexcept {
    auto [next, prev] = e->*Links;
    (e == first_ ? first_ : (prev->*Links).next) = next;
    T* after = next ? next : first_;
    if (after) (after->*Links).prev = prev;
  }

  void clear() noexcept { first_ = nullptr; }

 private:
  T* first_ = nullptr;  // its prev is the last element
};

}  // namespace weft::rt
