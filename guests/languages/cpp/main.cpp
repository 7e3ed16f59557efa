// The examples of guests/languages in C++: EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "connection.hpp"

const int64_t wait_limit = 10'000'000'000;

rdmarun_handle must(int32_t result)
{
	if (result >= 0)
		return static_cast<rdmarun_handle>(result);
	std::string why(256, '\0');
	why.resize(static_cast<size_t>(rdmarun_error_text(why.data(), static_cast<uint32_t>(why.size()))));
	std::fprintf(stderr, "%s\n", why.c_str());
	std::exit(1);
}

void expect(int holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "%s\n", what);
	std::exit(1);
}

void print(const char *first, ...)
{
	va_list rest;

	va_start(rest, first);
	for (const char *text = first; text; text = va_arg(rest, const char *))
		std::fputs(text, stdout);
	va_end(rest);
	std::fputs("\n", stdout);
}

const char *decimal(uint32_t number, char *text)
{
	std::snprintf(text, 11, "%u", static_cast<unsigned>(number));
	return text;
}

int main(int argc, char **argv)
{
	static const std::map<std::string, void (*)(const options *)> examples = {
		{"pingpong server", pingpong_serve},   {"pingpong client", pingpong_ask},
		{"kv server", kv_serve},               {"kv client", kv_ask},
		{"negotiate server", negotiate_serve}, {"negotiate client", negotiate_ask},
	};
	const std::vector<std::string> args(argv + 1, argv + argc);

	expect(args.size() >= 3, "EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT");
	const auto found = examples.find(args[0] + " " + args[1]);
	expect(found != examples.end(), "pingpong, kv or negotiate; server or client");
	const options options = {
		static_cast<uint16_t>(std::stoi(args[2])),
		args.size() > 3 ? args[3].c_str() : "",
		args.size() > 4 ? static_cast<uint32_t>(std::stoul(args[4])) : 100,
	};
	found->second(&options);
	return 0;
}
