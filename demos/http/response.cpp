#include "response.hpp"

#include <array>
#include <charconv>
#include <span>

namespace demo::http {

namespace {

// When so many bytes are collected they are sent, even if there are more requests to answer.
constexpr std::size_t flush_at = 16 * 1024;

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

void append_number(std::string& out, std::uint64_t n) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

}  // namespace

void response_writer::head(int status, std::string_view type, std::uint64_t length) {
  out_ += "HTTP/1.1 ";
  append_number(out_, static_cast<unsigned>(status));
  out_ += ' ';
  out_ += reason(status);
  out_ += "\r\nServer: weft\r\nDate: ";
  out_ += date();
  out_ += "\r\nContent-Type: ";
  out_ += type;
  out_ += "\r\nContent-Length: ";
  append_number(out_, length);
  if (status == 405) out_ += "\r\nAllow: GET, HEAD";
  if (!form_.keep_alive) {
    out_ += "\r\nConnection: close";
  } else if (form_.version == 10) {
    out_ += "\r\nConnection: keep-alive";
  }
  out_ += "\r\n\r\n";
}

void response_writer::body(std::string_view piece) {
  if (!wants_body()) return;
  if (piece.size() < flush_at) {
    out_ += piece;
    if (out_.size() >= flush_at) flush();
  } else {
    write({std::as_bytes(std::span(out_)), std::as_bytes(std::span(piece))});
  }
}

void response_writer::send(int status, std::string_view type, std::string_view text) {
  head(status, type, text.size());
  body(text);
}

void response_writer::send_error(int status, std::string_view text) {
  std::string page = std::to_string(status) + ' ' + std::string(reason(status));
  if (!text.empty()) page += ": " + std::string(text);
  send(status, "text/plain; charset=utf-8", page + '\n');
}

void response_writer::flush() {
  if (!out_.empty()) write({std::as_bytes(std::span(out_)), {}});
}

// Writes both parts, with one system call if the client keeps up.
void response_writer::write(const std::array<std::span<const std::byte>, 2>& parts) {
  stream_.set_write_deadline(std::chrono::steady_clock::now() + limit_);
  stream_.writev(parts);
  out_.clear();
}

// Returns the present date as in "Sun, 06 Nov 1994 08:49:37 GMT". Formats it at most once a second.
std::string_view response_writer::date() {
  constexpr std::size_t size = 29;
  if (const std::time_t now = std::time(nullptr); now != date_of_) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::strftime(date_, sizeof date_, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    date_of_ = now;
  }
  return {date_, size};
}

}  // namespace demo::http
