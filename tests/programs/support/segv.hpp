#pragma once

#include <csignal>

// Installs a handler of SIGSEGV that runs on the signal stack. *before: what was there, if it is wanted.
inline void install_segv_handler(void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, before);
}
