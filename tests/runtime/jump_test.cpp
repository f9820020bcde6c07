// What a goroutine that has not begun looks like from outside (runtime/jump.hpp).

#include "runtime/jump.hpp"
#include "tests/support/catch.hpp"

#include <cstddef>
#include <cstdint>

using namespace weft::rt;

namespace {

void first(thread_state*, G*, void (*)(G*, void*), void*) {}

}  // namespace

#if defined(__x86_64__)

TEST_CASE("jump: the frame pointer with which a goroutine begins has no caller") {
  alignas(64) std::byte memory[256] = {};
  const auto* c = static_cast<saved_context*>(make_context<first>(memory + sizeof memory, float_control{}));
  REQUIRE(c->frame >= memory);
  REQUIRE(c->frame <= memory + sizeof memory - sizeof(frame_record));
  const auto* frame = static_cast<const frame_record*>(c->frame);
  CHECK(frame->caller == nullptr);
  CHECK(frame->return_address == nullptr);
  CHECK(c->resume_at == reinterpret_cast<const void*>(&first));
  // The stack pointer at first, as after a call that nobody made.
  const void* const* sp = reinterpret_cast<const void* const*>(c + 1);
  CHECK(reinterpret_cast<std::uintptr_t>(sp) % 16 == 8);
  CHECK(*sp == nullptr);
}

#endif
