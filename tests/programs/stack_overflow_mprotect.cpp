// As on a kernel that can do no better than mprotect: the overflow is still caught, and the right goroutine named.
#include "stack_overflow.cpp"
