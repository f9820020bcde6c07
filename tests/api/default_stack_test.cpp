// What common libraries need of a stack fits into one of the default size.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <cstdio>
#include <memory>
#include <netdb.h>
#include <regex>
#include <sstream>
#include <string>

#if defined(TEST_WITH_OPENSSL)
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#endif

using namespace weft::test;

TEST_CASE("std::regex fits into the default stack") {
  weft::run([] {
    weft::spawn([] {
      // libstdc++'s matcher recurses for each character.
      std::string line;
      while (line.size() < 300) line += "key_" + std::to_string(line.size()) + "=value;";
      CHECK(std::regex_match(line, std::regex("(([a-z_]+[0-9]+)=([a-z]*);)*")));
      CHECK(std::regex_replace(line, std::regex("value"), std::string("v")).size() < line.size());
    }).join();
  });
}

TEST_CASE("getaddrinfo fits into the default stack") {
  weft::run([] {
    weft::spawn([] {
      for (const char* host : {"localhost", "127.0.0.1", "no-such-host.invalid"}) {
        addrinfo* found = nullptr;
        int error = weft::blocking([&] { return ::getaddrinfo(host, "80", nullptr, &found); });
        if (error == 0) ::freeaddrinfo(found);
        if (std::string(host) == "127.0.0.1") CHECK(error == 0);
      }
    }).join();
  });
}

TEST_CASE("printf of a long double fits into the default stack") {
  weft::run([] {
    weft::spawn([] {
      char text[8192];
      CHECK(std::snprintf(text, sizeof text, "%.3000Lf", 1.0L / 3) == 3002);
      CHECK(std::snprintf(text, sizeof text, "%Lf", 1e4000L) > 4000);
      std::ostringstream out;
      out << 1e4000L;
      CHECK(out.str() == "1e+4000");
    }).join();
  });
}

#if defined(TEST_WITH_OPENSSL)

namespace {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
template <class T, auto Free>
using owned = std::unique_ptr<T, freed_by<Free>>;
using ssl_context = owned<SSL_CTX, SSL_CTX_free>;
using ssl_connection = owned<SSL, SSL_free>;

ssl_context make_server() {
  owned<EVP_PKEY, EVP_PKEY_free> key(EVP_RSA_gen(2048));
  owned<X509, X509_free> certificate(X509_new());
  X509* c = certificate.get();
  ASN1_INTEGER_set(X509_get_serialNumber(c), 1);
  X509_gmtime_adj(X509_getm_notBefore(c), 0);
  X509_gmtime_adj(X509_getm_notAfter(c), 3600);
  X509_set_pubkey(c, key.get());
  X509_NAME* name = X509_get_subject_name(c);
  const unsigned char text[] = "weft";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(c, name);
  REQUIRE(X509_sign(c, key.get(), EVP_sha256()) != 0);
  ssl_context server(SSL_CTX_new(TLS_server_method()));
  REQUIRE(SSL_CTX_use_certificate(server.get(), c) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey(server.get(), key.get()) == 1);
  return server;
}

bool step(SSL* s) {
  int r = SSL_do_handshake(s);
  return r == 1 || SSL_get_error(s, r) == SSL_ERROR_WANT_READ;
}

}  // namespace

TEST_CASE("a TLS handshake fits into the default stack") {
  weft::run([] {
    weft::spawn([] {
      ssl_context to_serve = make_server(), to_ask(SSL_CTX_new(TLS_client_method()));
      // The client checks the certificate, and accepts any.
      SSL_CTX_set_verify(to_ask.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
      ssl_connection server(SSL_new(to_serve.get())), client(SSL_new(to_ask.get()));
      BIO *servers = nullptr, *clients = nullptr;
      REQUIRE(BIO_new_bio_pair(&servers, 0, &clients, 0) == 1);
      SSL_set_bio(server.get(), servers, servers);
      SSL_set_bio(client.get(), clients, clients);
      SSL_set_accept_state(server.get());
      SSL_set_connect_state(client.get());
      for (int i = 0; i < 20 && !(SSL_is_init_finished(client.get()) && SSL_is_init_finished(server.get())); ++i) {
        REQUIRE(step(client.get()));
        REQUIRE(step(server.get()));
      }
      CHECK(SSL_is_init_finished(client.get()));
      char back[6] = {};
      CHECK(SSL_write(client.get(), "hello", 5) == 5);
      CHECK(SSL_read(server.get(), back, 5) == 5);
      CHECK(std::string(back) == "hello");
    }).join();
  });
}

#endif
