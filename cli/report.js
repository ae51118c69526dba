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

	function duration(us) {
		for (const [size, unit] of [[3.6e9, 'h'], [1e6, 's'], [1e3, 'ms']])
			if (us >= size)
				return Number((us / size).toPrecision(3)) + unit;
		return Math.round(us) + 'us';
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

	for (const th of all('thead th')) {
		const button = document.createElement('button');
		button.type = 'button';
		button.append(...th.childNodes);
		button.addEventListener('click', () => sort(th));
		th.append(button);
	}

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
	$('reset').addEventListener('click', reset);
	controls.addEventListener('submit', event => event.preventDefault());
	document.addEventListener('keydown', event => {
		if (event.key === 'Escape')
			reset();
	});
	controls.hidden = false;
	press();
	select(0, last);
})();
