// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of names of C++ functions; c++filt translates the mangled ones of the table. */
#include "usdt/mangled.h"

#include <string.h>

#include "tests/unit/check.h"

static void names(void)
{
	static const struct {
		const char *symbol, *name;
		bool is;
	} cases[] = {
		{ "_Z16dispatch_command19enum_server_commandP3THDPcjb", "dispatch_command", true },
		{ "_Z16dispatch_command19enum_server_commandP3THDPcjb", "dispatch_comman", false },
		{ "_Z16dispatch_command19enum_server_commandP3THDPcjb", "THD", false },
		{ "_Z1fv", "f", true }, { "_Z1f", "f", false }, { "_Z2fgv", "f", false },
		{ "_Z1fIiEvT_", "f", true },
		{ "_ZN3THD15raise_conditionEPK13Sql_condition", "THD::raise_condition", true },
		{ "_ZN3THD15raise_conditionEPK13Sql_condition", "raise_condition", false },
		{ "_ZNK1A1fEv", "A::f", true }, { "_ZN1A1fIiEEvT_", "A::f", true },
		{ "_ZN1A1B1fEv", "A::B::f", true }, { "_ZN1A1B1fEv", "A::B", false },
		{ "_ZN1A1fEv.cold", "A::f", false }, { "_ZN1A1fEv.part.0", "A::f", false },
		{ "A::f", "A::f", false }, { "f", "f", false },
		{ "_Z", "", false }, { "", "", false },
		{ "_ZN1A1fEv", "A::", false }, { "_ZN1A1fEv", "::f", false },
		{ "_ZN1A1fEv", "A::f::", false }, { "_ZN1A", "A::f", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(mangled_is(cases[i].symbol, cases[i].name) == cases[i].is, "%s %s",
		      cases[i].symbol, cases[i].name);
}

static void name_alone(void)
{
	static const struct {
		const char *symbol, *name;
	} cases[] = {
		{ "_Z16dispatch_command19enum_server_commandP3THDPcjb", "dispatch_command" },
		{ "_Z1fv", "f" }, { "_Z1fv.constprop.0", "f" },
		/* A member, and what only looks like a mangled name. */
		{ "_ZN1A1fEv", "_ZN1A1fEv" }, { "EndCommand", "EndCommand" }, { "", "" },
		{ "_Z", "_Z" }, { "_Z9f", "_Z9f" }, { "_Z0", "_Z0" },
		{ "_Z99999999999999999999999999f", "_Z99999999999999999999999999f" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len;
		const char *name = mangled_name(cases[i].symbol, &len);

		CHECK(len == strlen(cases[i].name) && !memcmp(name, cases[i].name, len) &&
		      name >= cases[i].symbol &&
		      name + len <= cases[i].symbol + strlen(cases[i].symbol), "%s",
		      cases[i].symbol);
	}
}

int main(void)
{
	RUN(names);
	RUN(name_alone);
	return check_done();
}
