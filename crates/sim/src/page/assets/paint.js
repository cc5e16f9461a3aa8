// Paints one Gantt on its canvas.

const GUTTER = { left: 46, bottom: 20 };

// The colours of the style sheet, as a canvas and as an image want them.
function paintColours(context) {
  const names = ['surface', 'idle', 'text', 'soft', 'rule', 'down', 'mark', 'past-line', 'on-protected', 'on-unallocated', 'on-other', ...STATES.map(({ name }) => name)];
  const css = Object.fromEntries(names.map((name) => [name, colour(name)]));
  const number = (value) => {
    context.fillStyle = value;
    const hex = parseInt(context.fillStyle.slice(1), 16);
    return (0xff000000 | ((hex & 255) << 16) | (hex & 0xff00) | (hex >> 16)) >>> 0;
  };
  return { css, woven: { idle: number(css.idle), hatch: number(css['past-line']), states: STATES.map(({ name }) => number(css[name])) }, hatch: hatch(context, css['past-line']) };
}

function hatch(context, line) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const pen = tile.getContext('2d');
  pen.strokeStyle = line;
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift - 1, 7);
    pen.lineTo(shift + 7, -1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat');
}

// `picture` is { canvas, bars, carpet, marked, colours }; `view` is shared by the pair.
function paint(picture, view, selected) {
  const { canvas, bars, colours } = picture;
  const context = canvas.getContext('2d', { alpha: false });
  const scale = devicePixelRatio || 1;
  const width = Math.max(canvas.clientWidth - GUTTER.left, 10), height = canvas.clientHeight - GUTTER.bottom;
  const X = linear(view.from, view.to, 0, width), Y = linear(view.top, view.bottom, 0, height);
  const geometry = { width, height, scale, X, Y, rowHeight: height / (view.bottom - view.top) };
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.css.surface;
  context.fillRect(0, 0, canvas.width, canvas.height);
  if (needsCarpet(picture, view, (view.to - view.from) / (width * scale))) paintCarpet(context, picture, view, geometry);
  else {
    context.setTransform(scale, 0, 0, scale, GUTTER.left * scale, 0);
    context.save();
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    paintBars(context, picture, view, geometry);
    context.restore();
  }
  context.setTransform(scale, 0, 0, scale, GUTTER.left * scale, 0);
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  paintOutages(context, picture, view, geometry);
  if (selected !== null) paintSelected(context, picture, view, geometry, selected);
  context.restore();
  paintAxes(context, bars, view, geometry, colours.css);
}

function paintCarpet(context, picture, view, { width, height, scale, rowHeight }) {
  const image = picture.image?.width === Math.round(width * scale) && picture.image.height === Math.round(height * scale)
    ? picture.image : (picture.image = context.createImageData(Math.round(width * scale), Math.round(height * scale)));
  weave(image, picture.carpet, view, picture.colours.woven, (row) => (row - view.top) * rowHeight * scale);
  context.putImageData(image, Math.round(GUTTER.left * scale), 0);
}

// Rectangles by state, so that a colour is set once; then the hatching, the marks of preemptions, and names where there is room.
function paintBars(context, picture, view, geometry) {
  const { bars, marked, colours } = picture;
  const { X, Y, rowHeight, width, height } = geometry;
  context.fillStyle = colours.css.idle;
  context.fillRect(0, 0, width, height);
  const boxes = STATES.map(() => []), starts = [], ends = [], names = [];
  for (let row = Math.floor(view.top); row < Math.min(Math.ceil(view.bottom), bars.nodes.length); row++) {
    const top = Y(row), gpu = (rowHeight - (rowHeight >= 4 ? 1 : 0)) / bars.nodes[row].gpus;
    const gap = gpu >= 6 ? 1 : 0;
    for (let i = firstPiece(bars, row, view.from); i < bars.first[row + 1]; i++) {
      const lease = bars.lease[i];
      if (bars.start[lease] >= view.to) break;
      if (bars.end[lease] <= view.from) continue;
      const y = top + bars.low[i] * gpu, tall = Math.max((bars.high[i] - bars.low[i]) * gpu - gap, 0.6);
      const other = marked && !marked[lease];
      statesOf(bars, lease, (state, from, to) => {
        if (to <= view.from || from >= view.to) return;
        const left = Math.max(X(from), -2), right = Math.min(X(to), width + 2);
        boxes[other ? OTHER : state].push(left, y, Math.max(right - left, 0.7), tall);
      });
      const left = Math.max(X(bars.start[lease]), 0), room = Math.min(X(bars.end[lease]), width) - left;
      if (room > 3 && bars.outcome[lease] === PREEMPTED && !other) ends.push(X(bars.end[lease]), y, tall);
      if (room > 4 && bars.start[lease] > view.from) starts.push(left, y, tall);
      if (tall >= 11 && room > 50) names.push([lease, left, y, tall, room]);
    }
  }
  fillBoxes(context, boxes, colours, X);
  // A thin gap parts a bar from the one before it.
  context.fillStyle = colours.css.surface;
  for (let i = 0; i < starts.length; i += 3) context.fillRect(starts[i] - 0.5, starts[i + 1], 1, starts[i + 2]);
  paintEnds(context, ends, colours.css.mark);
  paintNames(context, bars, names, colours.css, marked);
  if (rowHeight / 8 >= 6) paintGpuLines(context, bars, view, geometry, colours.css.rule);
}

function fillBoxes(context, boxes, colours, X) {
  boxes.forEach((list, state) => {
    context.fillStyle = colours.css[STATES[state].name];
    for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
  });
  // The hatching moves with the bars.
  colours.hatch.setTransform(new DOMMatrix([1, 0, 0, 1, X(0) % 6, 0]));
  context.fillStyle = colours.hatch;
  const past = boxes[PAST];
  for (let i = 0; i < past.length; i += 4) if (past[i + 2] >= 4 && past[i + 3] >= 3) context.fillRect(past[i], past[i + 1], past[i + 2], past[i + 3]);
}

// A preemption is a dark line at the bar's end with a triangle that points back at it.
function paintEnds(context, ends, mark) {
  context.fillStyle = mark;
  context.beginPath();
  for (let i = 0; i < ends.length; i += 3) {
    const [x, y, tall] = [ends[i], ends[i + 1], ends[i + 2]];
    const size = Math.min(7, tall);
    context.rect(x - 1.5, y, 1.5, tall);
    context.moveTo(x, y);
    context.lineTo(x - size, y);
    context.lineTo(x, y + size);
  }
  context.fill();
}

function paintNames(context, bars, names, css, marked) {
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const [lease, x, y, tall, room] of names) {
    const at = place(bars, lease);
    const text = `${workloadName(bars.workload[lease])} · ${lastPart(facts.budgets[bars.workloads.budget[at]])}`;
    const width = context.measureText(text).width;
    if (width + 8 > room) continue;
    const state = marked && !marked[lease] ? 'other' : bars.unallocated[lease] ? 'unallocated' : 'protected';
    context.fillStyle = css[state];
    context.fillRect(x + 2, y + tall / 2 - 6.5, width + 6, 13);
    context.fillStyle = css[`on-${state}`];
    context.fillText(text, x + 5, y + tall / 2 + 0.5);
  }
}

function paintGpuLines(context, bars, view, { Y, rowHeight, width }, rule) {
  context.fillStyle = rule;
  for (let row = Math.floor(view.top); row < Math.min(Math.ceil(view.bottom), bars.nodes.length); row++) {
    for (let gpu = 0; gpu < bars.nodes[row].gpus; gpu++) {
      context.fillRect(0, Y(row) + (gpu * (rowHeight - 1)) / bars.nodes[row].gpus - 0.5, width, 0.5);
    }
  }
}

// Draining nodes are framed, for their occupants go on; nodes out of service are dark.
function paintOutages(context, { bars, colours }, view, { X, Y, rowHeight }) {
  for (const { row, from, to, state } of bars.outages) {
    if (to <= view.from || from >= view.to || row + 1 < view.top || row > view.bottom) continue;
    const tall = Math.max(rowHeight - (rowHeight >= 4 ? 1 : 0), 1), wide = Math.max(X(to) - X(from), 1);
    context.fillStyle = colours.css.down;
    if (state > 1) context.fillRect(X(from), Y(row), wide, tall);
    else {
      const edge = Math.min(2, tall / 2);
      context.fillRect(X(from), Y(row), wide, edge);
      context.fillRect(X(from), Y(row) + tall - edge, wide, edge);
    }
  }
}

// All attempts of the selected workload.
function paintSelected(context, { bars, colours }, view, { X, Y, rowHeight }, workload) {
  context.strokeStyle = colours.css.text;
  context.lineWidth = 2;
  for (let row = Math.floor(view.top); row < Math.min(Math.ceil(view.bottom), bars.nodes.length); row++) {
    const gpu = (rowHeight - (rowHeight >= 4 ? 1 : 0)) / bars.nodes[row].gpus;
    for (let i = firstPiece(bars, row, view.from); i < bars.first[row + 1] && bars.start[bars.lease[i]] < view.to; i++) {
      const lease = bars.lease[i];
      if (bars.workload[lease] !== workload || bars.end[lease] <= view.from) continue;
      const left = X(bars.start[lease]);
      context.strokeRect(left, Y(row) + bars.low[i] * gpu, Math.max(X(bars.end[lease]) - left, 2), Math.max((bars.high[i] - bars.low[i]) * gpu, 2));
    }
  }
}

function paintAxes(context, bars, view, { width, height, X, Y, rowHeight }, css) {
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = css.soft;
  context.textAlign = 'right';
  const every = Math.max(1, Math.ceil(17 / rowHeight));
  for (let row = Math.ceil(view.top / every - 1e-6) * every; row < Math.min(view.bottom, bars.nodes.length); row += every) {
    context.fillText(bars.nodes[row].name, -6, Math.min(Math.max(Y(row) + Math.min(rowHeight, 26) / 2, 7), height - 7), GUTTER.left - 8);
  }
  paintPools(context, bars, view, { width, Y }, css);
  context.textAlign = 'center';
  for (const [at, text] of timeTicks(view.from, view.to, width)) {
    const x = X(at), half = context.measureText(text).width / 2;
    context.fillStyle = css.rule;
    context.fillRect(x, 0, 0.5, height);
    context.fillStyle = css.soft;
    context.fillText(text, Math.min(Math.max(x, half - GUTTER.left / 2), width - half), height + 11);
  }
  context.textAlign = 'left';
}

// A line between pools, and between a pool's nodes and its express nodes.
function paintPools(context, { nodes }, view, { width, Y }, css) {
  context.fillStyle = css.text;
  for (let row = Math.max(1, Math.ceil(view.top)); row < Math.min(view.bottom, nodes.length); row++) {
    const [above, below] = [nodes[row - 1], nodes[row]];
    if (above.pool !== below.pool || above.express !== below.express) context.fillRect(-GUTTER.left, Y(row) - 1, width + GUTTER.left, 1);
  }
}
