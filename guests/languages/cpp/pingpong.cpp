// Ping-pong: every byte of a message comes back inverted.  The request's private data says how often.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "connection.hpp"

static constexpr uint32_t size = 64;

void pingpong_serve(const options *options)
{
	Connection c = Connection::accept_from(options->port);
	Region ping(c.pd, size, RDMARUN_ACCESS_LOCAL_WRITE), pong(c.pd, size, 0);
	uint32_t rounds = 0;

	c.private_data().copy(reinterpret_cast<char *>(&rounds), sizeof(rounds));
	c.receive(ping);
	c.accept();
	for (; rounds; rounds--) {
		c.received();
		std::transform(ping.data(), ping.data() + size, pong.data(), [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
		c.receive(ping); // before the answer, after which the next may come
		c.send(pong);
	}
	c.hung_up();
}

void pingpong_ask(const options *options)
{
	Connection c = Connection::to(options->address, options->port);
	Region ping(c.pd, size, 0), pong(c.pd, size, RDMARUN_ACCESS_LOCAL_WRITE);

	c.connect({reinterpret_cast<const char *>(&options->count), sizeof(options->count)});
	for (uint32_t round = 0; round < options->count; round++) {
		for (uint32_t i = 0; i < size; i++)
			ping[i] = static_cast<uint8_t>(round + i);
		c.receive(pong);
		c.send(ping);
		c.received();
		for (uint32_t i = 0; i < size; i++)
			expect(pong[i] == static_cast<uint8_t>(~ping[i]), "a byte came back wrong");
	}
	std::printf("pingpong: %u rounds, every byte verified\n", static_cast<unsigned>(options->count));
	c.hang_up();
}
