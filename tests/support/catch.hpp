// The test framework, whichever version of it is installed: Debian 12 has Catch2 v2, newer systems have v3.
#pragma once

#if defined(WEFT_SMALL_CATCH)
#include "tests/support/small_catch.hpp"
#elif __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
