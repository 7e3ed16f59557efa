// The examples in C, for C++: their store and their negotiation are linked with the ping-pong in C++.
#ifndef EXAMPLE_HPP
#define EXAMPLE_HPP

extern "C" {
#include "../c/example.h"
}

#endif
