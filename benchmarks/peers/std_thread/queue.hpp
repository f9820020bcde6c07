// A channel as one would write it with what the standard library offers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

namespace bench {

template <class T>
class queue {
 public:
  explicit queue(std::size_t capacity) : capacity_(capacity) {}

  void push(T v) {
    std::unique_lock lock(m_);
    room_.wait(lock, [&] { return values_.size() < capacity_; });
    values_.push_back(std::move(v));
    lock.unlock();
    filled_.notify_one();
  }

  // Waits for a value and returns it; nothing if the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(m_);
    filled_.wait(lock, [&] { return !values_.empty() || closed_; });
    if (values_.empty()) return std::nullopt;
    T v = std::move(values_.front());
    values_.pop_front();
    lock.unlock();
    room_.notify_one();
    return v;
  }

  void close() {
    {
      std::lock_guard lock(m_);
      closed_ = true;
    }
    filled_.notify_all();
  }

 private:
  const std::size_t capacity_;
  std::mutex m_;
  std::condition_variable room_, filled_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace bench
