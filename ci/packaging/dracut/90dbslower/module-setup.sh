#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Add dbslower to the initramfs. Install the directory as /usr/lib/dracut/modules.d/90dbslower and
# enable it: dracut --add dbslower, or add_dracutmodules+=" dbslower " in /etc/dracut.conf.d/.

dbslower_path() {
	local path

	for path in /usr/sbin/dbslower /usr/local/sbin/dbslower; do
		if [[ -x $path ]]; then
			echo "$path"
			return
		fi
	done
	derror "dbslower is not installed in /usr/sbin or /usr/local/sbin"
	return 1
}

check() {
	dbslower_path >/dev/null || return 1
	# Only on request.
	return 255
}

depends() {
	return 0
}

install() {
	local path

	path=$(dbslower_path) || return 1
	inst_binary "$path" /usr/sbin/dbslower || return 1
	ln -sf dbslower "${initdir:?}/usr/sbin/dbstat"
	ln -sf dbslower "$initdir/usr/sbin/tplist"
}
