// A global that lives as long as the process: goroutines may still run while static destructors do.
#pragma once

namespace weft::rt {

template <class T>
union never_destroyed {
  T value;
  constexpr never_destroyed() noexcept : value() {}
  ~never_destroyed() {}
};

}  // namespace weft::rt
