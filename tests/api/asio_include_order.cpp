// Includes Boost's headers before weft's; asio_test.cpp has the opposite order. This only has to compile.
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <weft/weft.hpp>

#include <string>

namespace asio_include_order {

using weft::net::tcp_stream;
static_assert(boost::beast::is_sync_stream<tcp_stream>::value);

void instantiate(tcp_stream& s);
void instantiate(tcp_stream& s) {
  char b[4];
  boost::system::error_code ec;
  boost::asio::read(s, boost::asio::buffer(b), ec);
  if (ec == boost::asio::error::eof) return;
  boost::asio::write(s, boost::asio::buffer(b));
  boost::beast::flat_buffer buffer;
  boost::beast::http::request<boost::beast::http::string_body> q;
  boost::beast::http::read(s, buffer, q);
  boost::beast::http::write(s, q);
  boost::beast::websocket::stream<tcp_stream&> w{s};
  w.accept();
  w.read(buffer);
  w.close(boost::beast::websocket::close_code::normal);
}

}  // namespace asio_include_order
