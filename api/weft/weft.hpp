// All of weft.
#pragma once

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>
