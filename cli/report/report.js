// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Embedded by the Makefile without comment lines and indentation. Texts of the page are only read as text.
'use strict';
(() => {
	const $ = id => document.getElementById(id);
	const all = (selector, from = document) => [...from.querySelectorAll(selector)];
	const controls = $('controls'), find = $('find'), from = $('from'), to = $('to');
	const last = Number(from.max), columns = last + 1;

	// Rows with what decides whether they are shown.
	const rows = all('#groups, #statements, #waits, #intervals').flatMap(table =>
		[...table.tBodies[0].rows].map(tr => {
			const spark = tr.querySelector('.spark');
			return {
				tr, table: table.id, text: tr.textContent.toLowerCase(),
				begin: Number(tr.dataset.b ?? -1), end: Number(tr.dataset.e ?? -1),
				calls: spark?.dataset.c.split(',').filter(Boolean).map(c => c.split(' ').map(Number)),
				own: [2, 3, 4].map(i => [tr.cells[i]?.textContent, tr.cells[i]?.dataset.v]),
			};
		}));

	// Three digits, not rounded but cut.
	function duration(us) {
		for (const [size, unit] of [[3.6e9, 'h'], [1e6, 's'], [1e3, 'ms']])
			if (us >= size) {
				const digits = us < size * 10 ? 2 : us < size * 100 ? 1 : 0, power = 10 ** digits;
				return (Math.floor(us * power / size) / power).toFixed(digits) + unit;
			}
		return Math.floor(us) + 'us';
	}

	function clock(column) {
		const ms = Number(controls.dataset.from) + column * Number(controls.dataset.width);
		return new Date(ms).toISOString().slice(11, 23);
	}

	function put(row, i, text, value) {
		row.tr.cells[i].textContent = text;
		row.tr.cells[i].dataset.v = value;
	}

	// The calls of a group within a time; of the whole time, the numbers of the page.
	function count(row, a, b, whole) {
		if (whole) {
			row.own.forEach(([text, value], i) => put(row, i + 2, text, value));
			return true;
		}
		let calls = 0, us = 0;
		for (const [at, n, time] of row.calls ?? [])
			if (at >= a && at <= b) {
				calls += n;
				us += time;
			}
		put(row, 2, calls, calls);
		put(row, 3, duration(us), us * 1000);
		put(row, 4, calls ? duration(us / calls) : '', calls ? us / calls * 1000 : 0);
		return calls > 0;
	}

	function range() {
		const a = Number(from.value), b = Number(to.value);
		return [Math.min(a, b), Math.max(a, b)];
	}

	function mark(a, b, whole) {
		for (const rect of all('.sel')) {
			const small = rect.ownerSVGElement.classList.contains('spark');
			const [left, width] = small ? [0, 240] : [64, 960];
			rect.setAttribute('x', left + a * width / columns);
			rect.setAttribute('width', whole ? 0 : (b - a + 1) * width / columns);
		}
	}

	function show() {
		const [a, b] = range(), whole = a === 0 && b === last;
		const word = find.value.trim().toLowerCase(), shown = {}, total = {};
		for (const row of rows) {
			let visible = row.table === 'groups' ? count(row, a, b, whole) :
				whole || (row.begin >= 0 && row.begin <= b && row.end >= a);
			if (row.table !== 'intervals')
				visible &&= row.text.includes(word);
			row.tr.hidden = !visible;
			shown[row.table] = (shown[row.table] ?? 0) + visible;
			total[row.table] = (total[row.table] ?? 0) + 1;
		}
		mark(a, b, whole);
		from.setAttribute('aria-valuetext', clock(Number(from.value)));
		to.setAttribute('aria-valuetext', clock(Number(to.value) + 1));
		const names = { groups: 'fingerprints', statements: 'statements', waits: 'lock waits' };
		$('status').textContent = `${clock(a)} to ${clock(b + 1)}: ` + Object.keys(names)
			.filter(name => name in total)
			.map(name => `${shown[name]} of ${total[name]} ${names[name]}`).join(', ');
	}

	function select(a, b) {
		from.value = a;
		to.value = b;
		show();
		follow();
	}

	// The sessions of a time: marks as report_moment.c writes them. Times are in us since the charts begin.
	const width = Number(controls.dataset.width) * 1000, total = columns * width;
	const trs = { s: [], w: [], g: [null], i: [] }, cells = { s: 2, w: 5, g: 1 };
	for (const row of rows)
		trs[row.table[0]].push(row.tr);
	const marks = ($('moment')?.dataset.m ?? '').split(',').filter(Boolean).map(text => {
		const [start, took, session, of, failed, ...rest] = text.split(' '), us = Number(took), all_holders = [];
		for (let i = 0; i < rest.length; i += 3)
			all_holders.push({ session: rest[i], us: Number(rest[i + 1]), queued: rest[i + 2] & 1, idle: rest[i + 2] & 2 });
		// Not those that blocked it for a moment only.
		const long = all_holders.filter(holder => holder.us >= us / 100);
		return {
			start: Number(start), us, end: Number(start) + us, session, holders: long.length ? long : all_holders, of,
			tr: trs[of[0]]?.[of.slice(1)], failed: Number(failed), wait: 'wx'.includes(of[0]),
		};
	});
	const boxes = all('.heat .sel, .load .sel').map(sel => {
		const box = sel.cloneNode();
		box.setAttribute('class', 'now');
		sel.after(box);
		return box;
	});
	let middle, half, chosen;

	function name(session) {
		const [id] = session.slice(1, -1).split('-');
		return session[0] === 'c' ? 'connection ' + id : id === '0' ? 'prepared transaction' : 'pid ' + id;
	}

	function text_of(mark) {
		return mark.tr?.cells[cells[mark.of[0]]].querySelector('code')?.textContent.slice(0, 200) ?? '';
	}

	function jump(tr) {
		if (tr.hidden)
			reset();
		tr.tabIndex = -1;
		tr.focus();
	}

	function draw(tag, attributes, text, tr, parent = $('lanes')) {
		const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
		for (const [key, value] of Object.entries(attributes))
			element.setAttribute(key, value);
		if (tag === 'rect')
			draw('title', {}, text, null, element);
		else
			element.textContent = text;
		if (tr)
			element.addEventListener('click', () => jump(tr));
		parent.append(element);
	}

	function draw_axis(x, bottom) {
		const base = Number(controls.dataset.from), lo = base + (middle - half) / 1000, span = half / 500;
		// 1, 2, 5, 10, .. of the unit.
		let step = span > 36e5 ? 36e5 : span > 6e4 ? 6e4 : 1;
		for (let i = 0; span / step > 8; i++)
			step *= i % 3 === 1 ? 2.5 : 2;
		for (let ms = Math.ceil(lo / step) * step; ms <= lo + span; ms += step) {
			const at = x((ms - base) * 1000);
			draw('path', { class: 'g', d: `M${at} 0V${bottom}` }, '');
			draw('text', { class: 'tm', x: at, y: bottom + 14 },
				new Date(ms).toISOString().slice(...step < 864e5 ? [11, step < 1e3 ? 23 : 19] : [0, 10]));
		}
	}

	// Sessions by lane: those that others waited for come before these, and the longest waits before the rest.
	function lanes_of(inside) {
		const lanes = new Map(), more = new Set();
		const add = (session, idle, active) => {
			const lane = lanes.get(session) ?? { y: lanes.size * 26, idle: 0, active: false };
			if (lane.y === 40 * 26) {
				more.add(session);
				return;
			}
			lane.idle |= idle;
			lane.active ||= active;
			lanes.set(session, lane);
		};
		for (const mark of inside) {
			for (const holder of mark.holders)
				add(holder.session, holder.idle);
			if (mark.wait || mark === chosen)
				add(mark.session);
		}
		for (const mark of inside)
			add(mark.session, 0, mark.us >= half / 50);
		return [lanes, more.size];
	}

	// The time during which a holder blocked a wait, and an arrow to it, as report_sessions.c draws them.
	function draw_block(mark, holder, from_y, to_y, x) {
		const begin = x(mark.start), end = x(mark.end), up = to_y < from_y;
		if (end - begin < 7)
			return;
		draw('rect', { class: 'ho', x: begin, y: to_y + 19, width: x(mark.start + holder.us) - begin, height: 4 },
			`${holder.queued ? 'ahead in the queue of' : 'blocks'} ${name(mark.session)}, ${duration(holder.us)}`, mark.tr);
		const at = Math.min(end, begin + 4 + from_y / 26 % 8 * 4), y = to_y + (up ? 24 : 4);
		draw('path', { class: holder.queued ? 'ar q' : 'ar', d: `M${at} ${from_y + 16}V${y}` }, '');
		draw('path', { class: 'ah', d: `M${at} ${y}l-4 ${up ? 7 : -7}h8z` }, '');
	}

	function list_waits(waits) {
		const known = waits.filter(mark => mark.holders.length && mark.us >= waits[0].us / 100);
		const items = known.slice(0, 20).map(mark => {
			const item = document.createElement('li'), whom = mark.holders.map(holder =>
				name(holder.session) + (holder.idle ? ', idle in transaction' : holder.queued ? ', ahead in the queue' : ''));
			const text = `${name(mark.session)} waited ${duration(mark.us)} for ${whom.join('; ')}`;
			item.append(mark.tr ? make_button(text, () => jump(mark.tr)) : text);
			return item;
		});
		$('who').replaceChildren(...items);
	}

	function look(at, extent) {
		middle = Math.max(0, Math.min(total, at));
		half = Math.max(500, Math.min(total, extent));
		const begin = middle - half, end = middle + half, between = share => Math.max(0, Math.min(1, share));
		const inside = marks.filter(mark => mark.start < end && mark.end >= begin).sort((a, b) => b.us - a.us);
		const waits = inside.filter(mark => mark.wait), [lanes, more] = lanes_of(inside);
		const x = us => 170 + between((us - begin) / half / 2) * 854, height = Math.max(1, lanes.size) * 26;
		$('lanes').replaceChildren();
		$('lanes').setAttribute('viewBox', `0 0 1040 ${height + 24}`);
		draw_axis(x, height);
		for (const [session, lane] of lanes)
			draw('text', { class: 'yl', x: 162, y: lane.y + 17 }, name(session) + (lane.idle && !lane.active ? ', idle' : ''));
		for (const mark of inside.filter(each => lanes.has(each.session))) {
			const [kind, bad, top, tall] = mark.wait ? ['wt', ' dl', 14, 5] : ['st', ' er', 4, 10], left = x(mark.start);
			draw('rect', {
				class: kind + (mark.failed ? bad : '') + (mark === chosen ? ' fo' : ''), x: left,
				y: lanes.get(mark.session).y + top, width: Math.max(1, x(mark.end) - left), height: tall,
			}, `${mark.wait ? 'waits for a lock, ' : ''}${duration(mark.us)}: ${text_of(mark)}`, mark.tr);
		}
		for (const mark of waits)
			for (const holder of mark.holders)
				if (lanes.has(mark.session) && lanes.has(holder.session) && holder.session !== mark.session)
					draw_block(mark, holder, lanes.get(mark.session).y, lanes.get(holder.session).y, x);
		list_waits(waits);
		$('when').textContent = `${clock(begin / width)} to ${clock(end / width)}: ${lanes.size + more} sessions, the longest ` +
			`${inside.length - waits.length} statements and ${waits.length} lock waits` + (more ? `; ${more} sessions are not drawn` : '');
		$('at').value = Math.floor(middle / width * 4);
		$('at').setAttribute('aria-valuetext', clock(middle / width));
		for (const box of boxes) {
			box.setAttribute('x', 64 + between(begin / total) * 960);
			box.setAttribute('width', Math.max(2, (between(end / total) - between(begin / total)) * 960));
		}
	}

	// Show the sessions of the selection and of a margin.
	function follow() {
		const [a, b] = range(), columns_shown = b + 1 - a;
		if (marks.length && columns_shown < columns)
			look((a + columns_shown / 2) * width, (columns_shown / 2 + Math.max(2, columns_shown / 4)) * width);
	}

	function look_around(mark) {
		chosen = mark;
		look(mark.start + mark.us / 2, mark.us * .625 + 1000);
	}

	function start_moment() {
		for (const mark of marks.filter(each => each.tr && each.of[0] !== 'g')) {
			const cell = mark.tr.cells[0];
			cell.replaceChildren(make_button(cell.textContent, () => {
				look_around(mark);
				$('s-sessions').scrollIntoView();
				$('at').focus({ preventScroll: true });
			}));
		}
		$('at').addEventListener('input', () => look((Number($('at').value) + .5) * width / 4, half));
		$('in').addEventListener('click', () => look(middle, half / 2));
		$('out').addEventListener('click', () => look(middle, half * 2));
		$('moment').hidden = false;
		$('still').hidden = true;
		look_around(marks.find(mark => mark.of === 'w0') ?? marks[0]);
	}

	function make_button(text, action) {
		const button = document.createElement('button');
		button.type = 'button';
		button.textContent = text;
		button.addEventListener('click', action);
		return button;
	}

	// Columns that begin with a larger number are sorted downwards first.
	function sort(th) {
		const table = th.closest('table'), body = table.tBodies[0];
		const at = [...th.parentNode.children].indexOf(th), number = th.classList.contains('n');
		const down = th.ariaSort ? th.ariaSort === 'ascending' : number;
		const key = tr => number ? Number(tr.cells[at].dataset.v ?? -1) : tr.cells[at].textContent;
		const order = number ? (x, y) => x - y : (x, y) => x.localeCompare(y);
		const sorted = [...body.rows].map(tr => [key(tr), tr])
			.sort((x, y) => (down ? -1 : 1) * order(x[0], y[0]));
		all('th', table).forEach(other => other.removeAttribute('aria-sort'));
		th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
		body.append(...sorted.map(pair => pair[1]));
	}

	for (const th of all('thead th'))
		th.replaceChildren(make_button(th.textContent, () => sort(th)));

	function column(svg, event) {
		const box = svg.getBoundingClientRect();
		const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
		return Math.max(0, Math.min(last, Math.floor((x - 64) / 960 * columns)));
	}

	for (const svg of all('.heat, .load')) {
		let start = -1;
		svg.addEventListener('pointerdown', event => {
			svg.setPointerCapture(event.pointerId);
			start = column(svg, event);
			select(start, start);
		});
		svg.addEventListener('pointermove', event => {
			const at = column(svg, event);
			if (start >= 0)
				select(Math.min(start, at), Math.max(start, at));
		});
		for (const type of ['pointerup', 'pointercancel'])
			svg.addEventListener(type, () => { start = -1; });
	}

	function reset() {
		find.value = '';
		select(0, last);
	}

	const dark = matchMedia('(prefers-color-scheme: dark)');
	function is_dark() {
		return (document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light')) === 'dark';
	}
	function press() {
		$('theme').setAttribute('aria-pressed', is_dark());
	}
	$('theme').addEventListener('click', () => {
		document.documentElement.dataset.theme = is_dark() ? 'light' : 'dark';
		press();
	});
	dark.addEventListener('change', press);
	for (const input of [find, from, to])
		input.addEventListener('input', show);
	for (const input of [from, to])
		input.addEventListener('input', follow);
	$('reset').addEventListener('click', reset);
	controls.addEventListener('submit', event => event.preventDefault());
	document.addEventListener('keydown', event => {
		if (event.key === 'Escape')
			reset();
	});
	controls.hidden = false;
	if ($('hint'))
		$('hint').hidden = false;
	press();
	if (marks.length)
		start_moment();
	select(0, last);
})();
