// What the workloads for Boost.Fiber share.
#pragma once

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/fixedsize_stack.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace bench {

// Starts a fiber on a stack of Boost.Fiber's default size (128 KiB).
template <class F>
boost::fibers::fiber start(F f, boost::fibers::launch how = boost::fibers::launch::post) {
  return boost::fibers::fiber(how, std::move(f));
}

// Starts a fiber on a small stack, for workloads with a great number of fibers.
template <class F>
boost::fibers::fiber start_small(F f, boost::fibers::launch how = boost::fibers::launch::post) {
  return boost::fibers::fiber(how, std::allocator_arg, boost::fibers::fixedsize_stack(16 * 1024), std::move(f));
}

// Runs f in n fibers and waits for them.
template <class F>
void in_fibers(std::size_t n, F f) {
  std::vector<boost::fibers::fiber> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(start(f));
  for (auto& fiber : all) fiber.join();
}

}  // namespace bench
