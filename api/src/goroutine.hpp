// How a goroutine's user code is run: shared by go.cpp, task.cpp and runtime.cpp.
#pragma once

#include "runtime/g.hpp"

#include <exception>

namespace weft::detail {

// What exit_goroutine throws. Deliberately not derived from std::exception: only `catch (...)` sees it.
struct goroutine_exit {};

// `catch (const unhandled&)` catches nothing, and reports what no handler of the goroutine catches (uncaught.cpp).
struct unhandled {
  virtual ~unhandled();
};

// The report of an exception that left a goroutine, then std::terminate. Null: the one that runs here.
[[noreturn]] void die_of_exception(const std::exception_ptr& e, const rt::G* left = nullptr) noexcept;

}  // namespace weft::detail
