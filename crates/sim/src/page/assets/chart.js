// One picture with axes: bands and lines over a common x, a readout under the pointer, and what it shows as a table.
//
// chart({ label, height, x, y, marks, readout, rows })
//   label    what the picture shows, for those who do not see it
//   x        { from, to, log, ticks(pixels) → [[value, text]] }
//   y        { most, ticks: [value], text(value) }
//   marks    [{ band: [[x, low, high]], className }] or [{ line: [[x, y]], className, name }]
//   caption  what stands above it; note: what stands below it
//   readout  (x) → lines of text, the first of them a heading
//   rows     () → rows of the table, the first of them the head

function chart(options) {
  const root = make('figure', { class: 'chart' });
  const draw = () => {
    const picture = drawn(options, root.clientWidth);
    root.querySelector('.picture')?.remove();
    root.prepend(picture);
  };
  if (options.caption) root.append(make('figcaption', {}, ...options.caption));
  if (options.note) root.append(make('p', { class: 'aside' }, options.note));
  if (options.rows) root.append(asTable('As a table', options.rows));
  onWidth(root, draw);
  return root;
}

const MARGIN = { left: 44, right: 10, top: 8, bottom: 22 };

function drawn({ label, height = 150, x, y, marks, readout }, width) {
  const inner = { width: Math.max(width - MARGIN.left - MARGIN.right, 10), height: height - MARGIN.top - MARGIN.bottom };
  const X = (x.log ? logarithmic : linear)(x.from, x.to, 0, inner.width);
  const Y = linear(0, y.most, inner.height, 0);
  const plot = svg('g', { transform: `translate(${MARGIN.left},${MARGIN.top})` });
  const picture = svg('svg', { width, height, role: 'img', 'aria-label': label, viewBox: `0 0 ${width} ${height}` }, plot);
  axes(plot, inner, X, Y, x, y);
  for (const mark of marks) {
    plot.append(svg('path', { class: mark.className, d: mark.band ? bandPath(mark.band, X, Y) : linePath(mark.line, X, Y) }));
  }
  const holder = make('div', { class: 'picture' }, picture);
  if (readout) addReadout(holder, plot, inner, x, readout);
  return holder;
}

function axes(plot, inner, X, Y, x, y) {
  for (const value of y.ticks) {
    plot.append(svg('line', { class: 'rule', x1: 0, x2: inner.width, y1: Y(value), y2: Y(value) }));
    plot.append(svg('text', { class: 'axis', x: -6, y: Y(value) + 4, 'text-anchor': 'end' }, y.text(value)));
  }
  let free = -Infinity;
  for (const [value, text] of x.ticks(inner.width)) {
    const at = X(value);
    if (at < -1 || at > inner.width + 1) continue;
    plot.append(svg('line', { class: 'tick', x1: at, x2: at, y1: inner.height, y2: inner.height + 4 }));
    // The first and the last label stay inside the picture.
    const anchor = at > inner.width - 16 ? 'end' : at < 12 ? 'start' : 'middle';
    const half = text.length * 3.4;
    const left = anchor === 'end' ? at - 2 * half : anchor === 'start' ? at : at - half;
    if (left < free) continue;
    free = left + 2 * half + 4;
    plot.append(svg('text', { class: 'axis', x: at, y: inner.height + 16, 'text-anchor': anchor }, text));
  }
  plot.append(svg('line', { class: 'base', x1: 0, x2: inner.width, y1: inner.height, y2: inner.height }));
}

// Steps: each value holds from its x to the next.
function bandPath(band, X, Y) {
  let upper = '', lower = '';
  for (let i = 0; i < band.length; i++) {
    const [at, low, high] = band[i];
    const end = X(i + 1 < band.length ? band[i + 1][0] : at).toFixed(1);
    const start = X(at).toFixed(1);
    upper += `${i ? 'L' : 'M'}${start} ${Y(high).toFixed(1)}H${end}`;
    lower = `L${end} ${Y(low).toFixed(1)}H${start}` + lower;
  }
  return `${upper}${lower}Z`;
}

function linePath(line, X, Y) {
  return line.map(([x, y], i) => `${i ? 'L' : 'M'}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join('');
}

// A line under the pointer, and what is there, in words.
function addReadout(holder, plot, inner, x, readout) {
  const cursor = svg('line', { class: 'cursor', y1: 0, y2: inner.height, visibility: 'hidden' });
  const box = make('div', { class: 'readout', hidden: true });
  plot.append(cursor);
  holder.append(box);
  const show = (event) => {
    const left = holder.getBoundingClientRect().left;
    const at = Math.min(Math.max(event.clientX - left - MARGIN.left, 0), inner.width);
    const part = at / inner.width;
    const value = x.log ? x.from * (x.to / x.from) ** part : x.from + (x.to - x.from) * part;
    fill(cursor, { x1: at, x2: at, visibility: 'visible' }, []);
    const [head, ...lines] = readout(value);
    box.replaceChildren(make('strong', {}, head), ...lines.map((line) => make('div', {}, line)));
    box.hidden = false;
    const room = holder.clientWidth - box.offsetWidth;
    box.style.left = `${Math.max(0, Math.min(at + MARGIN.left + 10, room))}px`;
  };
  const hide = () => {
    cursor.setAttribute('visibility', 'hidden');
    box.hidden = true;
  };
  holder.addEventListener('pointermove', show);
  holder.addEventListener('pointerdown', show);
  holder.addEventListener('pointerleave', hide);
}

function key(className, text) {
  return make('span', { class: 'key' }, make('i', { class: `swatch ${className}` }), text);
}

// The key of a line: its colour, and its dashes where colours are not told apart.
function lineKey(index, text) {
  const picture = svg('svg', { width: 30, height: 10, 'aria-hidden': true },
    svg('path', { class: `policy policy${index % 6}`, d: 'M1 5H29' }));
  return make('span', { class: 'key' }, picture, text);
}
