// Catch2 under both of its names: v2 is one header (Debian 12), v3 is a library.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
