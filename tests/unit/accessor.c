/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usdt/accessor.c with the bodies of accessors from distributions' servers, the
 * code of other compilers for the same source, and bodies that must be refused.
 */
#include "usdt/accessor.h"
#include "usdt/elf_symbol.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"
#include "tests/unit/host.h"

#define BODY_MAX	160
#define ENDBR64		"f30f1efa"
#define BTI		"5f2403d5"
#define RET		"c0035fd6"

static int body_copied(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return accessor_body_copied(machine, code, size, 8, out);
}

typedef int (*read_body)(uint16_t machine, const void *code, size_t size, struct accessor *out);

struct body {
	const char *name, *hex;
	uint16_t machine;
	read_body read;
	struct accessor want;
};

#define ADDRESS(off)		{ ACCESSOR_ADDRESS, off, 0, 0, -1, 8 }
#define VALUE(off, bytes)	{ ACCESSOR_VALUE, off, 0, 0, -1, bytes }
#define PAIR(off, other)	{ ACCESSOR_VALUE, off, 0, 0, other, 8 }
#define POINTER(off, in, bytes)	{ ACCESSOR_POINTER, off, in, 0, -1, bytes }
#define EQUALS(off, in, number)	{ ACCESSOR_EQUALS, off, in, number, -1, 4 }
#define FLAG(off, bit, bytes)	{ ACCESSOR_FLAG, off, 0, bit, -1, bytes }
#define X86(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body, __VA_ARGS__ }
#define X86_SET(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_setter, __VA_ARGS__ }
#define X86_CMP(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_compared, __VA_ARGS__ }
#define X86_FLAG(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_flag, __VA_ARGS__ }
#define X86_PASS(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_passed, __VA_ARGS__ }
#define X86_GIVE(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_given, __VA_ARGS__ }
#define X86_GLOBAL(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_global, __VA_ARGS__ }
#define X86_COPY(name, hex, ...)	{ name, hex, EM_X86_64, body_copied, __VA_ARGS__ }
#define X86_THIRD(name, hex, ...)	{ name, hex, EM_X86_64, accessor_body_third, __VA_ARGS__ }
#define ARM_THIRD(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_third, __VA_ARGS__ }
#define ARM(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body, __VA_ARGS__ }
#define ARM_GLOBAL(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_global, __VA_ARGS__ }
#define ARM_SET(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_setter, __VA_ARGS__ }
#define ARM_CMP(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_compared, __VA_ARGS__ }
#define ARM_FLAG(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_flag, __VA_ARGS__ }
#define ARM_PASS(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_passed, __VA_ARGS__ }
#define ARM_GIVE(name, hex, ...)	{ name, hex, EM_AARCH64, accessor_body_given, __VA_ARGS__ }
#define ARM_COPY(name, hex, ...)	{ name, hex, EM_AARCH64, body_copied, __VA_ARGS__ }

/* From Debian's packages: MariaDB 10.5, 10.11, 11.8 (two builds), MySQL 9.7, PostgreSQL 15. */
static const struct body server_bodies[] = {
	X86_THIRD("15 PortalDefineQuery",
		  "4889770848895738894f4848c7475000000000894f404c8947584c894f60"
		  "c7878400000001000000c3", VALUE(0x38, 8)),
	ARM_THIRD("15 PortalDefineQuery",
		  "26008052010400f9021c00f9034000b9034800b91f1005a9053000f9068400b9c0035fd6",
		  VALUE(0x38, 8)),
	X86("10.11 thd_query_string", "488d4768c3", ADDRESS(0x68)),
	X86("11.8 thd_query_string", ENDBR64 "488d4768c3", ADDRESS(0x68)),
	X86("10.11 thd_current_db", "488d87a0000000c3", ADDRESS(0xa0)),
	X86("10.11 thd_user_name", "488b87f82500004885c07404488b4008c3", POINTER(0x25f8, 8, 8)),
	X86("11.8 thd_user_name", ENDBR64 "488b87202700004885c07404488b4008c3",
	    POINTER(0x2720, 8, 8)),
	X86("10.5 thd_client_host", "488b87882300004885c07403488b00c3", POINTER(0x2388, 0, 8)),
	X86("10.5 thd_client_ip", "488b87882300004885c07404488b4010c3", POINTER(0x2388, 16, 8)),
	X86("10.11 thd_get_thread_id", "488b87183f0000c3", VALUE(0x3f18, 8)),
	X86("9.7 thd_get_thread_id", ENDBR64 "8b87d0250000c3", VALUE(0x25d0, 4)),
	X86("10.11 thd_get_error_number", "488b87e06200008b4008c3", POINTER(0x62e0, 8, 4)),
	X86("10.11 thd_sql_command", "488b47588b4008c3", POINTER(0x58, 8, 4)),
	X86("10.11 thd_binlog_filter_ok",
	    "488d05c9521001488bb7a0000000488b38e97a12f9ff", VALUE(0xa0, 8)),
	X86("11.8 ps_report_examined_row_count",
	    ENDBR64 "488bb7d03c00004885f6740c488bbf883d00004885ff7504c30f1f00488d05f9e92001488b00"
	    "ffa088020000", VALUE(0x3cd0, 8)),
	X86("9.7 thd_query_unsafe", ENDBR64 "488b8710050000488b9718050000c3",
	    PAIR(0x510, 0x518)),
	X86("9.7 thd_is_error", ENDBR64 "488b87a033000083b88c000000030f94c0c3",
	    EQUALS(0x33a0, 0x8c, 3)),
	X86("9.7 thd_get_security_context",
	    ENDBR64 "4885f67417488b870018000048890631c0c3662e0f1f840000000000b801000000c3",
	    VALUE(0x1800, 8)),
	X86("9.7 thd_binlog_filter_ok",
	    ENDBR64 "488d05adc36203488bb758050000ba01000000488b38e9e1631101", VALUE(0x558, 8)),
	X86("9.7 Security_context::user", ENDBR64 "488b07488b5708c3", PAIR(0, 8)),
	X86("9.7 Security_context::ip", ENDBR64 "488b4740488b5748c3", PAIR(0x40, 0x48)),
	X86_COPY("10.11 set_thd_stage_info",
		 "4989d4" "4889fb" "4d85e47416" "8b8308260000" "41890424" "488b8300260000"
		 "4989442408" "c3", VALUE(0x2600, 8)),
	ARM_COPY("a copy of the stage", "083440f9" "480400f9" RET, VALUE(0x68, 8)),
	X86_COPY("9.7 THD::enter_stage",
		 ENDBR64 "4885d27413" "8bb770180000" "8932" "488bb778180000" "48897208" "c3",
		 VALUE(0x1878, 8)),
	X86_SET("10.11 set_sent_row_count",
		"4889b7983b0000488bbf503c00004885ff7505c30f1f4000488d05e1920501488b00ffa078020000",
		VALUE(0x3b98, 8)),
	X86_SET("11.8 set_sent_row_count",
		ENDBR64 "4801b7c83c00004889b7c03c0000488bbf883d00004885ff7502c390488d0579ea2001"
		"488b00ffa080020000", VALUE(0x3cc0, 8)),
	X86_SET("9.7 set_sent_row_count",
		ENDBR64 "4889b7a0220000488bbf302300004885ff7409e9540feb010f1f4000c3",
		VALUE(0x22a0, 8)),
	X86_SET("9.7 inc_examined_row_count",
		ENDBR64 "4803b7a82200004889b7a8220000488bbf302300004885ff740ae90d0feb01"
		"0f1f440000c3", VALUE(0x22a8, 8)),
	X86_SET("9.7 set_error_status",
		ENDBR64 "554889e541564989d689f241554989cd41544189f4be03000000534889fbe8c9feffff83bb"
		"8c0000000474534489a39c020000418b4500baff0100004c89f6488dbb9000000089839402"
		"0000410fb64504c6839902000000888398020000e869b16801488dbb90000000e82d20ceff"
		"c7838c000000030000008983900200005b415c415d415e5dc3", VALUE(0x29c, 4)),
	X86("11.8 ps_report_examined_row_count",
	    ENDBR64 "488bb7d03c00004885f6740c488bbf883d00004885ff7504c30f1f00488d0579341101488b"
		"00ffa088020000", VALUE(0x3cd0, 8)),
	ARM("10.11 thd_query_string", "00a00191" RET, ADDRESS(0x68)),
	ARM("11.8 thd_query_string", BTI "00a00191" RET, ADDRESS(0x68)),
	ARM("10.11 thd_user_name", "000c53f9400000b4000440f9" RET, POINTER(0x2618, 8, 8)),
	ARM("11.8 thd_client_host", BTI "00a053f9400000b4000040f9" RET, POINTER(0x2740, 0, 8)),
	ARM("10.11 thd_get_thread_id", "009c5ff9" RET, VALUE(0x3f38, 8)),
	ARM("10.11 thd_get_error_number", "008071f9000840b9" RET, POINTER(0x6300, 8, 4)),
	ARM("11.8 ps_report_examined_row_count",
	    BTI "01785ef9610000b400d45ef9400000b5" RET "c28c009042b444f9420040f9424441f9f00302aa"
	    "00021fd6", VALUE(0x3cf0, 8)),
	ARM("9.7 thd_query_unsafe", BTI "00001891000472a9" RET, PAIR(0x520, 0x528)),
	ARM("9.7 thd_is_error", BTI "00f459f9008c40b91f0c0071e0179f1a" RET,
	    EQUALS(0x33e8, 0x8c, 3)),
	ARM("9.7 thd_get_security_context",
	    BTI "a10000b400204cf9200000f900008052" RET "20008052" RET, VALUE(0x1840, 8)),
	ARM("9.7 thd_binlog_filter_ok", BTI "01b442f922008052007e0190002840f9000040f952ee3a14",
	    VALUE(0x568, 8)),
	ARM("9.7 thd_get_thread_id", BTI "001866b9" RET, VALUE(0x2618, 4)),
	ARM("9.7 Security_context::host", BTI "000442a9" RET, PAIR(0x20, 0x28)),
	ARM_SET("10.11 set_sent_row_count",
		"02385ef901dc1df9420000b5" RET "437e009063a845f9e00302aa620040f9423c41f9f00302aa"
		"00021fd6", VALUE(0x3bb8, 8)),
	ARM_SET("11.8 set_sent_row_count",
		BTI "03745ef901701ef904d45ef96200018b02741ef9440000b5" RET "c28c009042b444f9"
		"e00304aa420040f9424041f9f00302aa00021fd6", VALUE(0x3ce0, 8)),
	ARM_SET("9.7 inc_examined_row_count",
		BTI "027851f92100028b017811f900bc51f9400000b45a2e6e14" RET, VALUE(0x22f0, 8)),
	ARM_SET("9.7 set_error_status",
		"3f2303d5fd7bbca9fd030091f35301a9f30300aaf403012af51300f9f50302aae203012a61008052e3"
		"1f00f9a5ffff97608e40b91f10007120020054e31f40f9749e02b9e23f80d2601040396100"
		"40b9619602b9e10315aa60620a39604202917f660a396f714f946042029131edf997609202"
		"b960008052608e00b9f51340f9f35341a9fd7bc4a8bf2303d5c0035fd6", VALUE(0x29c, 4)),
	X86_SET("10.5 set_ok_status",
		"4889f04889ce8b8f34020000448d41fb4183f801770ac3660f1f8400000000004c8b8700030000458b"
		"406483f903744880bf38020000014889872002000019c04489873002000083e0fe83c0038987340200"
		"00488997280200004885f674114883c71bbaff010000e913257d000f1f00c6471b00c30f1f00440187"
		"3002000048018720020000ebcb", VALUE(0x220, 8)),
	X86_SET("10.11 set_ok_status",
		"4889f84889f74889ce8b8834020000448d41fb4183f8017707c3660f1f4400004c8b8000030000458b"
		"406483f903744880b838020000014489803002000019c94889b82002000083e1fe83c1038988340200"
		"00488990280200004885f67411488d781abaff010000e9e3dc75000f1f00c6401a00c30f1f00440180"
		"300200004801b820020000ebcb", VALUE(0x220, 8)),
	X86_SET("11.8.6 set_ok_status",
		ENDBR64 "4889f88bbf34020000448d47fb4183f801765d4c8b8000030000458b406483ff03745180b8"
		"38020000004889b020020000be01000000448980300200007405be0300000089b03402000048899028"
		"0200004885c97416488d781abaff0100004889cee915908d000f1f440000c6401a00c30f1f00440180"
		"300200004801b020020000ebc6", VALUE(0x220, 8)),
	X86_SET("11.8.9 set_ok_status",
		ENDBR64 "8b87340200004989f04889d68d50fb83fa01765c488b97000300008b526483f803745180bf"
		"380200000189973002000019c04c89872002000083e0fe83c0038987340200004889b7280200004885"
		"c9741b4883c71abaff0100004889cee9dac58500662e0f1f840000000000c6471a00c30f1f00019730"
		"0200004c018720020000ebc2", VALUE(0x220, 8)),
	X86_SET("9.7 set_ok_status",
		ENDBR64 "554889e541564989f6be0100000041554989d531d241544989cc534889fbe8c9ffffff8b83"
		"8c00000083e80383f801764f8b83b40200004c89b3a00200004c89aba80200008983b00200004d85e4"
		"743c488dbb90000000baff0100004c89e6e868b26801488dbb90000000e82c21ceff898390020000c7"
		"838c000000010000005b415c415d415e5dc30f1f00c683900000000031c0ebd9",
		VALUE(0x2a0, 8)),
	ARM_SET("10.11 set_ok_status",
		"e40301aae10303aa033442b965140051bf04007148000054c0035fd6058041f9a56440b97f0c0071e0"
		"01005406e0483963008052041001f9df000071053002b963149f1a033402b9021401f9810000b40068"
		"0091e23f80d205c21b141f680039c0035fd6061041f9033042b9c400048b041001f96300050b033002"
		"b9f3ffff17", VALUE(0x220, 8)),
	ARM_SET("11.8.6 set_ok_status",
		BTI "043442b985140051bf04007169020054058041f9a56440b99f0c00710002005406e04839640080"
		"52011001f9df000071053002b981149f1a013402b9021401f9a30000b4e10303aa00680091e23f80d2"
		"f7aa21141f680039c0035fd6061041f9043042b9c100018b011001f98100050b013002b9f2ffff17",
		VALUE(0x220, 8)),
	ARM_SET("11.8.9 set_ok_status",
		BTI "043442b985140051bf04007169020054058041f9a56440b99f0c007100020054011001f901e048"
		"39053002b93f0000716100805221149f1a013402b9021401f9a30000b4e10303aa00680091e23f80d2"
		"a08b1f141f680039c0035fd6043042b98400050b043002b9041041f98100018b011001f9f2ffff17",
		VALUE(0x220, 8)),
	ARM_SET("9.7 set_ok_status",
		"3f2303d5fd7bbca9fd030091f35301a9f30300aaf40302aa02008052f51300f9f50301aa21008052e3"
		"1f00f9edffff97608e40b9000c00511f04007109020054e31f40f9755201f960b642b9745601f960b2"
		"02b9e30100b4e10303aae23f80d260420291b7714f946042029179edf997609202b920008052608e00"
		"b9f51340f9f35341a9fd7bc4a8bf2303d5c0035fd6000080527f420239f6ffff17",
		VALUE(0x2a0, 8)),
	X86_CMP("10.5 thd_current_status",
		"488b87885e00004531c04885c0740d83b834020000057504448b40084489c0c3",
		EQUALS(0x5e88, 0x234, 5)),
	X86_CMP("10.11 thd_current_status",
		"488b87e062000031d24885c0740c83b8340200000575038b500889d0c3",
		EQUALS(0x62e0, 0x234, 5)),
	X86_CMP("11.8.6 thd_current_status",
		ENDBR64 "488b877863000031d24885c0740c83b8340200000575038b500889d0c3",
		EQUALS(0x6378, 0x234, 5)),
	X86_CMP("11.8.9 thd_current_status",
		ENDBR64 "488b87d06300004885c0740983b83402000005740731c0c30f1f40008b4008c3",
		EQUALS(0x63d0, 0x234, 5)),
	ARM_CMP("10.11 thd_current_status",
		"018071f9010100b4223442b9000080525f14007140000054c0035fd6200840b9c0035fd600008052c0"
		"035fd6", EQUALS(0x6300, 0x234, 5)),
	ARM_CMP("11.8.6 thd_current_status",
		BTI "01cc71f9010100b4223442b9000080525f14007140000054c0035fd6200840b9c0035fd6000080"
		"52c0035fd6", EQUALS(0x6398, 0x234, 5)),
	ARM_CMP("11.8.9 thd_current_status",
		BTI "00f871f9800000b4013442b93f1400716000005400008052c0035fd6000840b9c0035fd6",
		EQUALS(0x63f0, 0x234, 5)),
	/* up to the call */
	X86_GLOBAL("15 pgstat_get_my_query_id",
		   "488b05b14340004885c0740c488b80a8010000c30f1f400031c0c3", POINTER(0, 0x1a8, 8)),
	X86_PASS("10.11 thd_decrement_pending_ops",
		 "554889e5415641554c8dafc06400004154534883bfe8640000004889fb0f85f7b0eaff4c89efe825"
		 "45eaff", ADDRESS(0x64c0)),
	X86_PASS("10.11 wait_for_wakeup_ready",
		 "554889e5415541544c8da718640000534889fb4883ec084883bf40640000000f85e56beaff4c89e7"
		 "e863fee9ff", ADDRESS(0x6418)),
	X86_GIVE("9.7 reset_session_connect_attrs",
		 "f30f1efa48c7871011000000000000488bbf081100004885ff740f488d057eaaa301488b104885d2"
		 "7506c30f1f44000031f6e9a9c3e6fd", VALUE(0x1108, 8)),
};

/* set_status_no_index_used() and inc_status_created_tmp_tables() of the same packages. */
static const struct body flag_bodies[] = {
	X86_FLAG("10.5 no index",
		 "488d05d985f600838f543c000020488bbf80390000488b00ffa0e0020000",
		 FLAG(0x3c54, 0x20, 4)),
	X86_FLAG("10.5 temporary table",
		 "488d05b987f600488387d03b000001be0100000048818fc03b000000020000488b00488387e0"
		 "11000001488bbf80390000488b8090020000ffe0", FLAG(0x3bc0, 0x200, 8)),
	X86_FLAG("10.11 temporary table",
		 "488d05b98f0501488387a03e000001be0100000048818f903e000000020000488b0048838740"
		 "12000001488bbf503c0000488b8090020000ffe0", FLAG(0x3e90, 0x200, 8)),
	X86_FLAG("11.8 no index",
		 ENDBR64 "488d0535321101838f7440000020488bbf883d0000488b00ffa0e8020000",
		 FLAG(0x4074, 0x20, 4)),
	X86_FLAG("9.7 no index", ENDBR64 "838fd825000020488bbf30230000e9990deb01",
		 FLAG(0x25d8, 0x20, 4)),
	ARM_FLAG("10.5 no index",
		 "027700d0e10300aa435440f902747cb900d05cf942001b32630040f922743cb9617041f9f00301aa"
		 "00021fd6", FLAG(0x3c74, 0x20, 4)),
	ARM_FLAG("10.11 temporary table",
		 "e37d00f063b845f9e20300aa052849f9210080d204585ff9a500018b600040f9840077b243605ff9"
		 "064841f96300018b40385ef9452809f944581ff9f00306aa43601ff900021fd6",
		 FLAG(0x3eb0, 0x200, 8)),
	ARM_FLAG("11.8 no index: offset in two",
		 BTI "a18500f021bc44f90210409100d45ef9230040f9419440b9637441f921001b32419400b9"
		 "f00303aa00021fd6", FLAG(0x4094, 0x20, 4)),
	ARM_FLAG("9.7 no index", BTI "012066b921001b32012026b900bc51f9fb2d6e14",
		 FLAG(0x2620, 0x20, 4)),
	X86_FLAG("by a register", "8b471083c820894710c3", FLAG(0x10, 0x20, 4)),
	X86_FLAG("one byte of it", "804f1102c3", FLAG(0x11, 2, 1)),
	ARM_FLAG("the highest bit", "010840f9" "210041b2" "010800f9" RET,
		 FLAG(0x10, INT64_MIN, 8)),
	ARM_FLAG("the object overwritten", "000840f9" "000041b2" "000800f9" RET, { 0 }),
	X86_FLAG("9.7 temporary table: only counted",
		 ENDBR64 "488387000b000001488bbf30230000be01000000e9b33eeb01", { 0 }),
	X86_FLAG("stored elsewhere", "8b471083c820894714c3", { 0 }),
	X86_FLAG("of the second argument", "834e1020c3", { 0 }),
	X86_FLAG("behind a pointer", "488b4708834810" "20c3", { 0 }),
	X86_FLAG("two members", "834f1020834f1420c3", { 0 }),
	X86_FLAG("two bits of a member", "834f1020834f1040c3", { 0 }),
	X86_FLAG("bits by a register", "094f10c3", { 0 }),
	X86_FLAG("cleared", "836710dfc3", { 0 }),
	X86_FLAG("only half of it", "8b471083c82048894710c3", { 0 }),
	ARM_FLAG("two bits", "011040b9" "21040032" "011000b9" RET, { 0 }),
	ARM_FLAG("half of it", "011040b9" "21007bb2" "010800f9" RET, { 0 }),
};

/* The code of other compilers, versions and options for the same members. */
static const struct body variant_bodies[] = {
	X86("frame pointer", "554889e5488d47685dc3", ADDRESS(0x68)),
	X86("frame pointer, leave", "554889e5488b4768c9c3", VALUE(0x68, 8)),
	X86("frame pointer, endbr64", ENDBR64 "554889e5488b87f82500004885c07404488b40085dc3",
	    POINTER(0x25f8, 8, 8)),
	X86("first member", "4889f8c3", ADDRESS(0)),
	X86("first member's value", "488b07c3", VALUE(0, 8)),
	X86("add", "4889f84883c068c3", ADDRESS(0x68)),
	X86("add, long form", "4889f84805a0000000c3", ADDRESS(0xa0)),
	X86("sub of a negative", "4889f84883e880c3", ADDRESS(0x80)),
	X86("movslq", "48638768010000c3", VALUE(0x168, 4)),
	X86("movzwl", "0fb78768010000c3", VALUE(0x168, 2)),
	X86("movzbl", "0fb6474ac3", VALUE(0x4a, 1)),
	X86("rep ret", "488b4768f3c3", VALUE(0x68, 8)),
	X86_PASS("clang", "415653504889fb4c8db7c06400004883bff064000000743c488d35000000004c89f7"
		 "ba03000000e800000000", ADDRESS(0x64c0)),
	ARM_PASS("clang", "fd7bbea9f44f01a9fd03009108988c52f40300aa097872f91300088be90000b401000090"
		 "e00313aa210000916200805200000094", ADDRESS(0x64c0)),
	X86_GIVE("clang", "48c7871011000000000000488bbf081100004885ff7416488b0500000000488b104885d2"
		 "740731f6e901000000c3", VALUE(0x1108, 8)),
	X86_GIVE("a call", "554889e5488bbf081100004885ff7407e80000000031f6c9c3",
		 VALUE(0x1108, 8)),
	ARM_GIVE("clang", "e80300aa008448f91f8908f9e00000b408000090080140f9020140f9620000b4e1031f2a"
		 "00010014" RET, VALUE(0x1108, 8)),
	X86("extended registers", "4c8b87f82500004d85c07405498b4008c331c0c3",
	    POINTER(0x25f8, 8, 8)),
	X86("zero first", "488b97f825000031c04885d27404488b4208c3", POINTER(0x25f8, 8, 8)),
	X86("two returns", "488b87f82500004885c07405488b4008c331c0c3", POINTER(0x25f8, 8, 8)),
	X86("jne", "488b87f82500004885c0750331c0c3488b4008c3", POINTER(0x25f8, 8, 8)),
	X86("long jump", "488b87f82500004885c00f8404000000488b4008c3", POINTER(0x25f8, 8, 8)),
	X86("after a jump", "488b87f82500004885c07402eb02c390488b4008c3",
	    POINTER(0x25f8, 8, 8)),
	X86("%rsp-like base %r12", "4989fc498b442468c3", VALUE(0x68, 8)),
	X86("sete and movzbl", "488b87a033000083b88c000000030f94c00fb6c0c3",
	    EQUALS(0x33a0, 0x8c, 3)),
	X86("zeroed, cmp of a register, sete",
	    "31c0488b97a03300008b928c00000083fa030f94c0c3", EQUALS(0x33a0, 0x8c, 3)),
	ARM("large offset in two", "001040910040" "42f9" RET, VALUE(0x4480, 8)),
	ARM("offset in a register", "01888852" "006861f8" RET, VALUE(0x4440, 8)),
	ARM("unscaled", "00c040f8" RET, VALUE(12, 8)),
	ARM("other register", "010c53f9" "610000b4" "200440f9" RET "00008052" RET,
	    POINTER(0x2618, 8, 8)),
	ARM("zero first", "010c53f9" "00008052" "410000b4" "200440f9" RET, POINTER(0x2618, 8, 8)),
	ARM("cbnz", "000c53f9" "600000b5" "00008052" RET "000440f9" RET, POINTER(0x2618, 8, 8)),
	ARM("frame pointer", "fd7bbfa9" "fd030091" "000c53f9" "fd7bc1a8" RET, VALUE(0x2618, 8)),
	ARM("signed return address", "3f2303d5" "000c53f9" "ff0b5fd6", VALUE(0x2618, 8)),
	ARM("ldrsw", "006898b9" RET, VALUE(0x1868, 4)),
	ARM("ldrb", "00a04139" RET, VALUE(0x68, 1)),
	X86_GLOBAL("clang", "488b05b14340004885c07408488b80a8010000c331c0c3", POINTER(0, 0x1a8, 8)),
	ARM_GLOBAL("clang", "080000b0" "080140f9" "680000b4" "00d540f9" RET "e0031faa" RET,
		   POINTER(0, 424, 8)),
	ARM_GLOBAL("gcc", BTI "000000b0" "000840f9" "400000b4" "00d440f9" RET, POINTER(0, 424, 8)),
	X86_SET("32 bits", "897768c3", VALUE(0x68, 4)),
	ARM_SET("32 bits", "016800b9" RET, VALUE(0x68, 4)),
	X86_SET("32 bits, copied", "89f0894768c3", VALUE(0x68, 4)),
	X86_SET("followed by an unknown instruction", "48897768" "0f0b", VALUE(0x68, 8)),
	X86_SET("only on one side of a jump", "4885c97201c3" "48897768c3", VALUE(0x68, 8)),
	X86_SET("set on one side, added to on the other", "4885c9720548897768c3" "48017768c3",
		VALUE(0x68, 8)),
	X86_SET("other members", "897710" "c7471805000000" "48895720" "c6472801" "48897768c3",
		VALUE(0x68, 8)),
	X86_SET("preserved across a call",
		"534889f3554889fde8000000" "0048895d685d5bc3", VALUE(0x68, 8)),
	X86_SET("a frame", "4883ec18" "48897768" "4883c418c3", VALUE(0x68, 8)),
	X86_CMP("a register", "488b47688b401083f803" "7501c331c0c3", EQUALS(0x68, 0x10, 3)),
	X86_CMP("twice the same", "488b476883781003" "740783781003" "7401c3c3",
		EQUALS(0x68, 0x10, 3)),
	ARM_SET("one of a pair", "018808a9" RET, VALUE(0x88, 8)),
	ARM_SET("the second of a pair", "028408a9" RET, VALUE(0x90, 8)),
	ARM_SET("tbz", "42000036" RET "013400f9" RET, VALUE(0x68, 8)),
	ARM_SET("preserved across a call", "fd7bbea9" "f30b00f9" "f30301aa" "f40300aa" "00000094"
		"933600f9" RET, VALUE(0x68, 8)),
};

/* Bodies that do not return a member, or cannot be analysed. */
static const struct body refused_bodies[] = {
	X86("nothing", "", { 0 }),
	X86("no return", "488d4768", { 0 }),
	X86("the argument overwritten", "4889f7488d4768c3", { 0 }),
	X86("second argument's member", "488d4668c3", { 0 }),
	X86("a constant", "31c0c3", { 0 }),
	X86("no value set", "c3", { 0 }),
	X86("a global", "488b05c9521001c3", { 0 }),
	X86("thread-local", "64488b042528000000c3", { 0 }),
	X86("a call", "5de8c9521001c3", { 0 }),
	X86("thd_security_context: tail call", ENDBR64 "e907591100", { 0 }),
	X86("thd_start_utime: arithmetic", "486987e827000040420f00480387f0270000c3", { 0 }),
	X86("thd_get_error_message: behind a pointer", "488b87e06200004883c01ac3", { 0 }),
	X86("thd_get_error_row: three pointers", "488b87885e0000488b8000030000488b4068c3", { 0 }),
	X86("thd_current_status: another test",
	    "488b87e062000031d24885c0740c83b83402000005750" "38b500889d0c3", { 0 }),
	X86("thd_is_connected: a test of 32 bits, a call",
	    "8b973c3f0000b80100000085d27401c3488b97c002000031c04885d274f1554889d74889e5ff92b8010000"
	    "5d84c00f95c00fb6c0c3", { 0 }),
	X86("thd_inc_row_count: writes", ENDBR64 "488b87a03300004883" "80c802000001c3", { 0 }),
	X86("NULL returns another value", "488b87f82500004885c07405488b4008c3b801000000c3", { 0 }),
	X86("NULL returns an unset register", "4c8b87f82500004d85c07404498b4008c3", { 0 }),
	X86("%al only", "8a4768c3", { 0 }),
	X86("16 bits only", "668b4768c3", { 0 }),
	X86("indexed", "488b44b768c3", { 0 }),
	X86("low half of a pointer", "488b576889d0c3", { 0 }),
	X86("an address cut to 32 bits", "8d4768c3", { 0 }),
	X86("negative offset", "488d47f8c3", { 0 }),
	X86("huge offset", "488d8700000010c3", { 0 }),
	X86("stack", "488b442408c3", { 0 }),
	X86("endless loop", "488b4768ebfa", { 0 }),
	X86("setter read as accessor", "4889b7983b0000c3", { 0 }),
	X86("flags clobbered before sete", "488b87a033000083b88c0000000331d20f94c0c3", { 0 }),
	X86("%ah", "488b87a033000083b88c000000030f94c4c3", { 0 }),
	X86_GLOBAL("a global", "488b05c9521001c3", { 0 }),
	X86_GLOBAL("an argument's member", "488b4768488b4008c3", { 0 }),
	X86_GLOBAL("the stack", "488b442408488b4008c3", { 0 }),
	X86_GLOBAL("indexed", "488b44b768488b4008c3", { 0 }),
	X86_GLOBAL("three pointers", "488b05c9521001488b00488b4008c3", { 0 }),
	X86_GLOBAL("an address", "488d05c9521001c3", { 0 }),
	X86_PASS("the object itself", "e800000000c3", { 0 }),
	X86_PASS("a member's value", "488b7f68e800000000c3", { 0 }),
	X86_PASS("the second argument", "488d7e68e800000000c3", { 0 }),
	X86_PASS("no call", "488d7f68c3", { 0 }),
	ARM_PASS("no call", "00a00191" RET, { 0 }),
	X86_GIVE("a member's address", "488d7f68e800000000c3", { 0 }),
	X86_GIVE("the low half", "8b7f68e800000000c3", { 0 }),
	X86_GIVE("two members", "4885f67409488b7f68e800000000488b7f70e800000000c3", { 0 }),
	X86_GIVE("after a call", "50e800000000488b7b68e80000000058c3", { 0 }),
	X86_GIVE("no call", "488b7f68c3", { 0 }),
	X86_THIRD("two members", "4889570848895710c3", { 0 }),
	X86_THIRD("the low half", "895708c3", { 0 }),
	X86_THIRD("of another object", "48895608c3", { 0 }),
	X86_THIRD("the second argument", "48897708c3", { 0 }),
	X86_SET("accessor read as setter", "488b4768c3", { 0 }),
	X86_SET("third argument", "48895768c3", { 0 }),
	ARM_COPY("an address", "08a00191" "480400f9" RET, { 0 }),
	X86_COPY("nothing", "c3", { 0 }),
	X86_COPY("another place", "488b4768" "48894210" "c3", { 0 }),
	X86_COPY("through the second argument", "488b4768" "48894608" "c3", { 0 }),
	X86_COPY("an address", "488d4768" "48894208" "c3", { 0 }),
	X86_COPY("two members", "488b4768" "48894208" "488b4770" "48894208" "c3", { 0 }),
	X86_SET("two members of 32 bits", "897768897770c3", { 0 }),
	X86_SET("16 bits of 32", "6689777068c3", { 0 }),
	X86_SET("two members", "48897768488977" "70c3", { 0 }),
	X86_SET("adds one member, writes another", "4803776848897770c3", { 0 }),
	X86_SET("an array's element", "488974f768c3", { 0 }),
	X86_SET("two members on two sides", "4885c9720548897768c348897770c3", { 0 }),
	X86_SET("set on one side, another added to", "4885c9720548897768c348017770c3", { 0 }),
	X86_SET("clobbered by a call", "e800000000" "48897768c3", { 0 }),
	X86_SET("the object clobbered by a call", "534889f3e800000000" "48895f68" "5bc3", { 0 }),
	X86_SET("through the stack", "48897424f8" "488b7424f8" "48897768c3", { 0 }),
	X86_SET("preceded by an unknown instruction", "0f0b" "48897768c3", { 0 }),
	X86_SET("behind a pointer", "488b07" "48897068c3", { 0 }),
	X86_SET("changed before", "4883ee01" "48897768c3", { 0 }),
	X86_SET("or with another", "4809ce" "48897768c3", { 0 }),
	X86_SET("a jump out of the body", "48897768" "7240" "c3", { 0 }),
	X86_SET("endless loop", "48897768" "ebfa", { 0 }),
	X86_SET("endless loop with an exit", "48897768" "72fa" "c3", { 0 }),
	X86_SET("too many jumps", "48897768" "7200" "7200" "7200" "7200" "7200" "7200" "7200" "7200"
		"7200" "c3", { 0 }),
	X86_SET("truncated", "48897768" "7200", { 0 }),
	X86_CMP("two constants", "488b47688378100374" "0583781004c3c3", { 0 }),
	X86_CMP("two members", "488b47688378100374" "0583781403c3c3", { 0 }),
	X86_CMP("a member of the object itself", "837f68037401c3c3", { 0 }),
	X86_CMP("a pointer with NULL", "488b47684885c07401c3c3", { 0 }),
	X86_CMP("an accessor", "488b4768c3", { 0 }),
	ARM_SET("clobbered by a call", "00000094" "013400f9" RET, { 0 }),
	ARM_SET("two members on two sides", "620000b5" "013400f9" RET "013800f9" RET, { 0 }),
	ARM("nothing", "", { 0 }),
	ARM("a call", "00a00191" "00000094" RET, { 0 }),
	ARM("sp", "e00740f9" RET, { 0 }),
	ARM("32 bits of an address", "00a00111" RET, { 0 }),
	ARM("vector register", "000c40fd" RET, { 0 }),
	ARM("writeback", "00840" "0f8" RET, { 0 }),
	ARM("branch on a bit", "00000037" "000440f9" RET, { 0 }),
	ARM("three pointers", "008071f9" "008041f9" "003440f9" RET, { 0 }),
	ARM("thd_start_utime", "030454f9024888d2000854f9e201a0f26000029b" RET, { 0 }),
	ARM_SET("an accessor", "00a00191" RET, { 0 }),
	{ "another architecture", "488d4768c3", EM_MIPS, accessor_body, { 0 } },
	{ "32-bit x86", "488d4768c3", EM_386, accessor_body, { 0 } },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static size_t unhex(const char *hex, unsigned char *bytes)
{
	size_t n = 0;

	for (; *hex; hex += 2, n++) {
		char pair[3] = { hex[0], hex[1], '\0' }, *end;

		if (n == BODY_MAX)
			abort();
		bytes[n] = (unsigned char)strtoul(pair, &end, 16);
		if (*end)
			abort();
	}
	return n;
}

/* Read from a copy of exactly @size bytes, so that a sanitizer detects an overread. */
static int read_exactly(const struct body *body, const unsigned char *bytes, size_t size,
			struct accessor *out)
{
	unsigned char *copy = malloc(size ? size : 1);
	int err;

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	err = body->read(body->machine, copy, size, out);
	free(copy);
	return err;
}

static void check_bodies(const struct body *bodies, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct accessor *want = &bodies[i].want;
		unsigned char bytes[BODY_MAX];
		struct accessor got = { 0 };
		size_t size = unhex(bodies[i].hex, bytes);
		int err = read_exactly(&bodies[i], bytes, size, &got);

		if (!want->size) {
			CHECK(err == -EINVAL, "%s: %d, %#lx", bodies[i].name, err,
			      (long)got.offset);
			continue;
		}
		CHECK(!err, "%s: %d", bodies[i].name, err);
		CHECK(got.kind == want->kind && got.offset == want->offset &&
		      got.inner == want->inner && got.expected == want->expected &&
		      got.second == want->second && got.size == want->size,
		      "%s: kind %d, offset %#lx, inner %#lx, expected %ld, second %#lx, size %u",
		      bodies[i].name, got.kind, (long)got.offset, (long)got.inner,
		      (long)got.expected, (long)got.second, got.size);
	}
}

static void test_server_bodies(void)
{
	check_bodies(server_bodies, COUNT(server_bodies));
	check_bodies(flag_bodies, COUNT(flag_bodies));
}

static void test_variants(void)
{
	check_bodies(variant_bodies, COUNT(variant_bodies));
}

static void test_refused(void)
{
	check_bodies(refused_bodies, COUNT(refused_bodies));
}

/* Every truncation of a body is refused. */
static void test_truncated(void)
{
	for (size_t i = 0; i < COUNT(server_bodies); i++) {
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(server_bodies[i].hex, bytes);
		struct accessor got;

		for (size_t cut = 0; cut < size; cut++)
			CHECK(read_exactly(&server_bodies[i], bytes, cut, &got) == -EINVAL,
			      "%s at %zu", server_bodies[i].name, cut);
	}
}

/* Read arbitrary bytes: the result is valid or an error, never a crash or a hang. */
static void touch(const struct body *body, const unsigned char *bytes, size_t size)
{
	struct accessor got = { 0 };
	int err = read_exactly(body, bytes, size, &got);

	CHECK(err == 0 || err == -EINVAL, "%d", err);
	if (!err)
		CHECK(got.offset >= 0 && got.inner >= 0 && got.second >= -1 &&
		      (got.size == 1 || got.size == 2 || got.size == 4 || got.size == 8),
		      "%s: offset %#lx", body->name, (long)got.offset);
}

static void test_mutated(void)
{
	for (size_t i = 0; i < COUNT(server_bodies); i++) {
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(server_bodies[i].hex, bytes);

		for (size_t at = 0; at < size; at++) {
			unsigned char old = bytes[at];

			for (unsigned int v = 0; v < 256; v++) {
				bytes[at] = (unsigned char)v;
				touch(&server_bodies[i], bytes, size);
			}
			bytes[at] = old;
		}
	}
}

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void test_random(void)
{
	static const read_body reads[] = { accessor_body, accessor_body_setter,
					   accessor_body_compared, accessor_body_flag,
					   accessor_body_passed, accessor_body_third,
					   accessor_body_given, body_copied };
	uint32_t seed = 1;

	for (unsigned int round = 0; round < 300000; round++) {
		struct body body = { .name = "random",
				     .machine = round & 1 ? EM_X86_64 : EM_AARCH64,
				     .read = reads[round / 2 % COUNT(reads)] };
		unsigned char bytes[BODY_MAX];
		size_t size = random_next(&seed) % (BODY_MAX + 1);

		for (size_t i = 0; i < size; i++)
			bytes[i] = (unsigned char)(random_next(&seed) >> 8);
		touch(&body, bytes, size);
	}
}

/* Fragments of valid bodies in random order reach deeper than random bytes. */
static void test_fragments(void)
{
	uint32_t seed = 2;

	for (unsigned int round = 0; round < 300000; round++) {
		unsigned char from[BODY_MAX], bytes[BODY_MAX];
		struct body body = server_bodies[random_next(&seed) % COUNT(server_bodies)];
		size_t size = 0;

		while (size < BODY_MAX - 8 && random_next(&seed) % 12) {
			const struct body *other = &server_bodies[random_next(&seed) %
								COUNT(server_bodies)];
			size_t have = unhex(other->hex, from), at = random_next(&seed) % have;
			size_t n = 1 + random_next(&seed) % 8;

			if (body.machine == EM_AARCH64) {
				at &= ~(size_t)3;
				n = 4;
			}
			if (n > have - at)
				n = have - at;
			memcpy(bytes + size, from + at, n);
			size += n;
		}
		touch(&body, bytes, size);
	}
}

/* Functions of this program, read from its own file */

#define SAMPLE(name, bytes)                                                      \
	".globl " name "\n.type " name ", %function\n" name ":\n" bytes                \
	".size " name ", . - " name "\n"

__asm__(".pushsection .text\n.balign 16\n"
	SAMPLE("sample_value", SAMPLE_VALUE)
	SAMPLE("sample_setter", SAMPLE_SETTER)
	SAMPLE("sample_compared", SAMPLE_COMPARED)
	SAMPLE("sample_global", SAMPLE_GLOBAL)
	".globl sample_empty\n.type sample_empty, %object\nsample_empty:\n"
	".popsection\n");

extern const char sample_value[], sample_setter[], sample_compared[];
uint64_t sample_global(void);
extern uint64_t sample_variable;
uint64_t sample_variable = 0x5a5a;

static void test_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct accessor got = { 0 };
	struct stat st = { 0 };
	struct elf_symbol symbol = { 0 };
	uint64_t vaddr = 0;
	struct elf elf;
	void *data;

	/* Keep the linker from dropping them. */
	CHECK(sample_value[1] && sample_setter[1] && sample_compared[1]);
	CHECK(fd >= 0 && !fstat(fd, &st));
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	CHECK(data != MAP_FAILED);
	if (data == MAP_FAILED || elf_open(&elf, data, (size_t)st.st_size))
		return;
	CHECK(!accessor_read(&elf, "sample_value", &got));
	CHECK(got.kind == ACCESSOR_VALUE && got.offset == SAMPLE_OFFSET && got.size == 8);
	CHECK(accessor_read_setter(&elf, "sample_value", &got) == -EINVAL);
	CHECK(!accessor_read_setter(&elf, "sample_setter", &got) && got.offset == 0x68);
	CHECK(accessor_read(&elf, "sample_setter", &got) == -EINVAL);
	CHECK(!accessor_read_compared(&elf, "sample_compared", &got));
	CHECK(got.kind == ACCESSOR_EQUALS && got.offset == 0x68 && got.inner == 8 &&
	      got.expected == 5);
	CHECK(accessor_read_compared(&elf, "sample_value", &got) == -EINVAL);
	CHECK(accessor_read_compared(&elf, "no_such_function", &got) == -ENOENT);
	CHECK(accessor_read_passed(&elf, "sample_value", &got) == -EINVAL);
	CHECK(accessor_read_passed(&elf, "no_such_function", &got) == -ENOENT);
	CHECK(accessor_read_flag(&elf, "sample_value", &got) == -EINVAL);
	CHECK(accessor_read_flag(&elf, "no_such_function", &got) == -ENOENT);
	CHECK(accessor_read(&elf, "sample_empty", &got) == -ENOENT);
	CHECK(accessor_read(&elf, "no_such_function", &got) == -ENOENT);
	CHECK(accessor_read_setter(&elf, "no_such_function", &got) == -ENOENT);
	CHECK(sample_global() == 0x5a5a);
	CHECK(!elf_symbol_find(&elf, "sample_variable", &symbol));
	CHECK(!accessor_read_global(&elf, "sample_global", &vaddr) && vaddr == symbol.value);
	CHECK(accessor_read_global(&elf, "sample_value", &vaddr) == -EINVAL);
	CHECK(accessor_read_global(&elf, "sample_setter", &vaddr) == -EINVAL);
	CHECK(accessor_read_global(&elf, "no_such_function", &vaddr) == -ENOENT);
	munmap(data, (size_t)st.st_size);
}

int main(void)
{
	alarm(300);	/* a hang is a failure */
	RUN(test_server_bodies);
	RUN(test_variants);
	RUN(test_refused);
	RUN(test_truncated);
	RUN_LONG(test_mutated);
	RUN(test_random);
	RUN_LONG(test_fragments);
	RUN(test_file);
	return check_done();
}
