// Request targets: /path%20with%20escapes?query
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace demo::http {

// Splits a target ("/a%20b?c=d", also "http://host/a%20b?c=d") into its path, decoded, and its query, as it came.
// False: it is malformed, or its path has a NUL, which no file name has.
bool split_target(std::string_view target, std::string& path, std::string& query);

// Decodes %XX. False: that was malformed.
bool percent_decode(std::string_view text, std::string& out);

// The value of `key` in "a=1&b=2".
std::optional<std::string_view> query_value(std::string_view query, std::string_view key);

}  // namespace demo::http
