// What every public header needs: the attribute of exported names, the version, and errno.
#pragma once

#if __cplusplus < 202002L
#error "weft needs C++20: compile with -std=c++20"
#endif

#define WEFT_API __attribute__((visibility("default")))

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#include <weft/errno.hpp>
