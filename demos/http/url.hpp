// Request targets: /path%20with%20escapes?query
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace demo::http {

// Splits a target ("/a%20b?c=d", also "http://host/a%20b?c=d") into its path, which is decoded, and its query, which is
// left as it came. False: the target is malformed, or its path has a NUL, which no file name has.
bool split_target(std::string_view target, std::string& path, std::string& query);

// Decodes each %XX. False: one is malformed.
bool percent_decode(std::string_view text, std::string& out);

// Returns the value of `key` in a query such as "a=1&b=2". Nothing: the query has no such key.
std::optional<std::string_view> query_value(std::string_view query, std::string_view key);

}  // namespace demo::http
