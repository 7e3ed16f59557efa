// What the example in C++ owns: what is made in a constructor is gone with its owner, in the order that the host wants, even
// when something fails on the way.
#ifndef CONNECTION_HPP
#define CONNECTION_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "example.hpp"

// A handle with the function that gives it back.
template <int32_t (*destroy)(rdmarun_handle)> class Owned {
public:
	Owned() = default;
	explicit Owned(int32_t result) : handle(must(result)) {}
	Owned(Owned &&other) noexcept : handle(std::exchange(other.handle, 0)) {}
	Owned &operator=(Owned &&other) noexcept
	{
		std::swap(handle, other.handle);
		return *this;
	}
	~Owned()
	{
		if (handle)
			destroy(handle);
	}
	operator rdmarun_handle() const { return handle; }

private:
	rdmarun_handle handle = 0;
};

using Channel = Owned<rdmarun_destroy_event_channel>;
using Domain = Owned<rdmarun_dealloc_pd>;
using Endpoint = Owned<rdmarun_destroy_ep>;

// Memory that a peer or the provider reads and writes, registered as long as it is there.
class Region {
public:
	Region(const Domain &pd, uint32_t size, uint32_t access)
	    : bytes(size), handle(rdmarun_reg_mr(pd, bytes.data(), size, access, &mr))
	{
	}
	Region(const Region &) = delete;
	Region &operator=(const Region &) = delete;

	uint8_t &operator[](uint32_t at) { return bytes[at]; }
	uint8_t *data() { return bytes.data(); }
	uint32_t size() const { return static_cast<uint32_t>(bytes.size()); }
	const rdmarun_mr &keys() const { return mr; }

private:
	std::vector<uint8_t> bytes;
	rdmarun_mr mr = {};
	Owned<rdmarun_dereg_mr> handle; // goes first
};

// A connection with its queues.
class Connection {
public:
	static Connection accept_from(uint16_t port);
	static Connection to(const std::string &address, uint16_t port);

	void accept();
	void connect(std::string_view private_data);
	void hang_up();  // as the one who began
	void hung_up();  // as the other

	void receive(Region &into) { must(rdmarun_post_recv_one(queue, 0, into.data(), into.size(), &into.keys())); }
	void send(Region &from)
	{
		must(rdmarun_post_send_one(queue, 0, from.data(), from.size(), &from.keys()));
		complete(sends);
	}
	void received() { complete(receives); }

	// What the peer's request said.
	std::string_view private_data() const
	{
		return {reinterpret_cast<const char *>(event.param.private_data), event.param.private_data_len};
	}

	Domain pd;

private:
	void adopt();
	void wait_for(uint32_t type);
	static void complete(rdmarun_handle cq);

	Channel channel;
	Endpoint listener, endpoint;
	rdmarun_handle queue = 0, sends = 0, receives = 0;
	rdmarun_cm_event event = {};
};

#endif
