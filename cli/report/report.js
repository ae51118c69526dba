// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Embedded by the Makefile without comment lines and indentation. Texts of the page are only read as text.
'use strict';
(() => {
	const $ = id => document.getElementById(id);
	const all = (selector, from = document) => [...from.querySelectorAll(selector)];
	const controls = $('controls'), find = $('find'), from = $('from'), to = $('to');
	const last = Number(from.max), columns = last + 1;
	// The columns that are selected, and whether these are all.
	let a, b, whole;

	// Rows with what decides whether they are shown, and the numbers of their cells, see cells.h.
	const rows = all('#groups, #statements, #waits, #intervals').flatMap(table =>
		[...table.tBodies[0].rows].map(tr => ({
			tr, table: tr.id === 'rest' ? 'rest' : table.id, text: tr.textContent.toLowerCase(),
			begin: Number(tr.dataset.b ?? -1), end: Number(tr.dataset.e ?? -1),
			cells: (tr.dataset.c ?? '').split(',').filter(Boolean).map(cell => cell.split(';').map(list =>
				list.split(' ').filter(Boolean).map(number => parseInt(number, 36)))),
			own: [...tr.cells].map(td => [[...td.childNodes], td.dataset.v]),
		})));
	const of_table = (...names) => rows.filter(row => names.includes(row.table));
	const groups = of_table('groups', 'rest'), intervals = of_table('intervals');
	const own = new Map(all('[data-f], [data-part] > *').map(element => [element, element.textContent]));
	const parts = controls.dataset.parts.split(' ');

	// Three digits, not rounded but cut; all of what has no larger unit.
	function scaled(value, units) {
		const [size, unit] = units.find(([size]) => value >= size) ?? [1, ''];
		const digits = size === 1 || value >= size * 100 ? 0 : value >= size * 10 ? 1 : 2, power = 10 ** digits;
		return (Math.floor(value * power / size) / power).toFixed(digits) + unit;
	}

	const duration = ns => scaled(ns, [[3.6e12, 'h'], [1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']]);
	const count = number => scaled(number, [[1e9, 'G'], [1e6, 'M']]);

	function clock(column) {
		const ms = Number(controls.dataset.from) + column * Number(controls.dataset.width);
		return new Date(ms).toISOString().slice(11, 23);
	}

	const total_of = numbers => numbers.reduce((x, y) => x + y, 0);

	// Sums of calls.
	const nothing = () => ({ calls: 0, errors: 0, rows: 0, ns: 0, max: 0, min: Infinity, parts: [], buckets: [] });

	function add_pairs(to, pairs) {
		for (let i = 0; i < pairs.length; i += 2)
			to[pairs[i]] = (to[pairs[i]] ?? 0) + pairs[i + 1];
	}

	function add_cells(sum, cells) {
		for (const [[at, calls, errors, count_of_rows, ns, max, min], parts, buckets] of cells) {
			if (at < a || at > b)
				continue;
			sum.calls += calls;
			sum.errors += errors;
			sum.rows += count_of_rows;
			sum.ns += ns;
			sum.max = Math.max(sum.max, max);
			sum.min = Math.min(sum.min, min);
			add_pairs(sum.parts, parts);
			add_pairs(sum.buckets, buckets);
		}
		return sum;
	}

	// The least duration of a bucket.
	function least(bucket) {
		return bucket < 16 ? bucket : (16 + bucket % 16) * 2 ** (Math.floor(bucket / 16) - 1);
	}

	// As top_percentile() has it.
	function percentile(sum, permille) {
		const shift = Number(controls.dataset.shift);
		let rank = Math.max(1, Math.ceil(sum.calls * permille / 1000)), ns = 0;
		if (rank >= sum.calls)
			return sum.max;
		for (const bucket of Object.keys(sum.buckets).map(Number)) {
			ns = Math.floor((least(bucket << shift) + least(bucket + 1 << shift)) / 2);
			rank -= sum.buckets[bucket];
			if (rank <= 0)
				break;
		}
		return Math.max(sum.min, Math.min(sum.max, ns));
	}

	// A bar of parts, as report_bar() draws it.
	function draw_bar(us) {
		const said = [], holder = document.createElement('p');
		draw('svg', { class: 'bar', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img' }, '', null, holder);
		const svg = holder.firstChild;
		const total_us = total_of(us), permille = n => Math.floor(n * 1000 / total_us);
		const share = (part, n) => `${parts[part]} ${Math.floor((n + 5) / 10)}%`;
		let before = 0, x = 0;
		us.forEach((n, part) => {
			const end = permille(before += n);
			if (permille(n) >= 5)
				said.push(share(part, permille(n)));
			if (end > x)
				draw('rect', { class: 'p-' + parts[part], x, width: end - x, height: 10 }, share(part, end - x), null, svg);
			x = Math.max(x, end);
		});
		svg.setAttribute('aria-label', said.join(', ') || 'nothing');
		return svg;
	}

	function put(td, content, value) {
		td.replaceChildren(...content);
		if (value !== undefined)
			td.dataset.v = value;
	}

	// Show the calls of a group within the time; of the whole time, the numbers of the page.
	function show_group(row) {
		const cells = row.tr.cells;
		if (whole) {
			for (let i = 2; i < 12; i++)
				put(cells[i], ...row.own[i]);
			return true;
		}
		const sum = add_cells(nothing(), row.cells);
		if (!sum.calls)
			return false;
		put(cells[2], [count(sum.calls)], sum.calls);
		[sum.ns, sum.ns / sum.calls, ...[500, 950, 990, 1000].map(permille => percentile(sum, permille))].forEach(
			(ns, i) => put(cells[i + 3], [duration(ns)], Math.floor(ns)));
		put(cells[9], [count(sum.rows)], sum.rows);
		put(cells[10], [count(sum.errors)], sum.errors);
		put(cells[11], sum.parts.length ? [draw_bar(sum.parts)] : []);
		return true;
	}

	function show_facts() {
		const sum = add_cells(nothing(), groups.flatMap(row => row.cells)), waits = [0, 0, 0, 0], load = [];
		for (const { cells: [[pairs, numbers]] } of intervals.filter(is_then)) {
			numbers.forEach((number, i) => { waits[i] += number; });
			add_pairs(load, pairs);
		}
		const say = (element, text) => { element.textContent = whole ? own.get(element) : text ?? own.get(element); };
		const values = {
			statements: count(sum.calls), 'total time': duration(sum.ns), longest: duration(sum.max), errors: count(sum.errors),
			'lock waits': count(waits[0]), 'waited for locks': duration(waits[1]), deadlocks: count(waits[2]),
			'failed waits': count(waits[3]),
		};
		for (const percent of [50, 95, 99])
			values['p' + percent] = duration(percentile(sum, percent * 10));
		for (const dd of all('[data-f]'))
			say(dd, values[dd.dataset.f]);
		for (const li of all('[data-part]')) {
			const us = load[li.dataset.part] ?? 0, [, time, share] = li.children;
			li.hidden = !us && !whole;
			say(time, duration(us * 1000));
			say(share, (Math.floor(us * 1000 / (total_of(load) || 1)) / 10).toFixed(1) + '%');
		}
	}

	const is_then = row => whole || row.begin >= 0 && row.begin <= b && row.end >= a;

	function mark() {
		for (const rect of all('.sel')) {
			const small = rect.ownerSVGElement.classList.contains('spark');
			const [left, width] = small ? [0, 240] : [64, 960];
			rect.setAttribute('x', left + a * width / columns);
			rect.setAttribute('width', whole ? 0 : (b - a + 1) * width / columns);
		}
	}

	function show() {
		[a, b] = [from, to].map(input => Number(input.value)).sort((x, y) => x - y);
		whole = a === 0 && b === last;
		const word = find.value.trim().toLowerCase();
		for (const row of rows) {
			const visible = groups.includes(row) ? show_group(row) : is_then(row);
			row.tr.hidden = !visible || row.table !== 'intervals' && !row.text.includes(word);
		}
		show_facts();
		show_graph();
		order_rows($('groups'));
		mark();
		from.setAttribute('aria-valuetext', clock(Number(from.value)));
		to.setAttribute('aria-valuetext', clock(Number(to.value) + 1));
		$('status').textContent = `${clock(a)} to ${clock(b + 1)}: ` +
			[['groups', 'fingerprints'], ['statements', 'statements'], ['waits', 'lock waits']]
				.map(([table, name]) => [of_table(table), name]).filter(([list]) => list.length)
				.map(([list, name]) => `${list.filter(row => !row.tr.hidden).length} of ${list.length} ${name}`).join(', ');
	}

	// The arrows of the graph, each with the rows of its waits and the time of these.
	const waits_of = of_table('waits'), labels = all('.graph .el'), nodes = all('.graph [data-i]');
	const edges = all('.graph .ar').map((path, i) => ({
		path, label: labels[i], ends: path.dataset.n.split(' '),
		waits: path.dataset.w.split(',').filter(Boolean).map(wait => wait.split(' ').map(Number)),
	}));

	// Those of waits in a time; of arrows that begin as one line, the longest has its time beside it.
	function show_graph() {
		const drawn = new Set(), places = {};
		for (const edge of edges) {
			const waits = edge.waits.filter(([row]) => is_then(waits_of[row]));
			const place = edge.label.getAttribute('x') + ' ' + edge.label.getAttribute('y');
			edge.path.parentNode.classList.toggle('off', !waits.length);
			edge.label.classList.add('off');
			edge.ns = waits.reduce((sum, [, ns]) => sum + ns, 0);
			if (!waits.length)
				continue;
			edge.ends.forEach(node => drawn.add(node));
			edge.label.textContent = duration(edge.ns);
			edge.path.querySelector('title').textContent = waits_of[waits[0][0]].tr.cells[3].textContent +
				(waits.length > 1 ? `, ${waits.length} waits` : '') +
				(edge.path.classList.contains('q') ? ', ahead in the queue' : '');
			if (!(edge.ns <= places[place]?.ns))
				places[place] = edge;
		}
		for (const edge of Object.values(places))
			edge.label.classList.remove('off');
		for (const node of nodes)
			node.classList.toggle('off', !drawn.has(node.dataset.i));
		if ($('none'))
			$('none').hidden = drawn.size;
	}

	function select(first, end) {
		from.value = first;
		to.value = end;
		show();
		follow();
	}

	// The sessions of a time: marks as report_moment.c writes them. Times are in us since the charts begin.
	const width = Number(controls.dataset.width) * 1000, total = columns * width;
	const trs = { s: [], w: [], g: [null], i: [] }, cells = { s: 2, w: 5, g: 1 };
	for (const row of rows)
		trs[row.table[0]]?.push(row.tr);
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
			`${holder.queued ? 'ahead in the queue of' : 'blocks'} ${name(mark.session)}, ${duration(holder.us * 1000)}`, mark.tr);
		const at = Math.min(end, begin + 4 + from_y / 26 % 8 * 4), y = to_y + (up ? 24 : 4);
		draw('path', { class: holder.queued ? 'ar q' : 'ar', d: `M${at} ${from_y + 16}V${y}` }, '');
		draw('path', { class: 'ah', d: `M${at} ${y}l-4 ${up ? 7 : -7}h8z` }, '');
	}

	function list_waits(waits) {
		const known = waits.filter(mark => mark.holders.length && mark.us >= waits[0].us / 100);
		const items = known.slice(0, 20).map(mark => {
			const item = document.createElement('li'), whom = mark.holders.map(holder =>
				name(holder.session) + (holder.idle ? ', idle in transaction' : holder.queued ? ', ahead in the queue' : ''));
			const text = `${name(mark.session)} waited ${duration(mark.us * 1000)} for ${whom.join('; ')}`;
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
			}, `${mark.wait ? 'waits for a lock, ' : ''}${duration(mark.us * 1000)}: ${text_of(mark)}`, mark.tr);
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
		const columns_shown = b + 1 - a;
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

	const place = new Map(rows.map((row, i) => [row.tr, i]));

	// Put the rows of a table into the order of the column that was chosen; the page's has none.
	function order_rows(table) {
		if (!table)
			return;
		const th = table.querySelector('[aria-sort]') ?? table.tHead.rows[0].cells[3], body = table.tBodies[0];
		const at = th.cellIndex, number = th.classList.contains('n'), down = th.ariaSort !== 'ascending';
		const key = tr => number ? Number(tr.cells[at].dataset.v ?? -1) : tr.cells[at].textContent;
		const order = number ? (x, y) => x - y : (x, y) => x.localeCompare(y);
		const sorted = [...body.rows].filter(tr => tr.id !== 'rest').map(tr => [key(tr), tr])
			.sort((x, y) => (down ? -1 : 1) * order(x[0], y[0]) || place.get(x[1]) - place.get(y[1]));
		body.append(...sorted.map(pair => pair[1]), ...all('#rest', body));
	}

	// Columns that begin with a larger number are sorted downwards first.
	function sort(th) {
		const down = th.ariaSort ? th.ariaSort === 'ascending' : th.classList.contains('n');
		const table = th.closest('table');
		all('th', table).forEach(other => other.removeAttribute('aria-sort'));
		th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
		order_rows(table);
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
