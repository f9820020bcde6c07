// A global that is never destroyed, because goroutines may still run while static destructors do.
#pragma once

namespace weft::rt {

template <class T>
union never_destroyed {
  T value;
  constexpr never_destroyed() noexcept : value() {}
  ~never_destroyed() {}
};

}  // namespace weft::rt
