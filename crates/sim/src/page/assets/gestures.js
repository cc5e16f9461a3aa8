// Wheel, drag, touch and keyboard on a Gantt.

const STEP = 0.2;

// Where a pointer is: time, row, and the GPU inside it.
function spot(gantt, picture, event) {
  const box = picture.canvas.getBoundingClientRect();
  const { view } = gantt;
  const width = box.width - GUTTER.left, height = box.height - GUTTER.bottom;
  const x = event.clientX - box.left - GUTTER.left, y = event.clientY - box.top;
  const at = linear(0, width, view.from, view.to)(x), rows = linear(0, height, view.top, view.bottom)(y);
  const row = Math.floor(rows);
  const node = picture.bars.nodes[row];
  return { at, rows, row, gpu: node ? Math.floor((rows - row) * node.gpus) : 0, inside: x >= 0 && y >= 0 && y < height && Boolean(node), x: x + GUTTER.left, y };
}

function gestures(gantt, picture) {
  const { canvas, tip } = picture;
  const pointers = new Map();
  let moved = 0;

  const hover = (event) => {
    const where = spot(gantt, picture, event);
    if (!where.inside) return (tip.hidden = true);
    const lease = leaseAt(picture.bars, where.row, where.gpu, where.at);
    tip.replaceChildren(...leaseCard(lease === null ? aboutNothing(picture.bars, where.row, where.at) : aboutLease(picture.bars, lease)));
    tip.hidden = false;
    // Beside the pointer, inside the page.
    const holder = canvas.getBoundingClientRect();
    const most = document.documentElement.clientWidth - 8 - tip.offsetWidth - holder.left;
    tip.style.left = `${Math.max(8 - holder.left, Math.min(where.x + 14, most))}px`;
    const below = where.y + 18, fits = holder.top + below + tip.offsetHeight < innerHeight;
    tip.style.top = `${fits ? below : Math.max(where.y - 12 - tip.offsetHeight, 8 - holder.top)}px`;
  };

  canvas.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    canvas.focus({ preventScroll: true });
  });

  canvas.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return event.pointerType === 'mouse' ? hover(event) : undefined;
    const { view } = gantt;
    const box = canvas.getBoundingClientRect();
    if (pointers.size === 2) pinch(gantt, picture, pointers, event);
    else {
      moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
      const time = ((before.clientX - event.clientX) / (box.width - GUTTER.left)) * (view.to - view.from);
      const rows = ((before.clientY - event.clientY) / (box.height - GUTTER.bottom)) * (view.bottom - view.top);
      gantt.look({ from: view.from + time, to: view.to + time, top: view.top + rows, bottom: view.bottom + rows });
    }
    if (moved > 4) tip.hidden = true;
    pointers.set(event.pointerId, event);
  });

  const release = (event) => {
    if (!pointers.delete(event.pointerId) || event.type === 'pointercancel' || moved > 4) return;
    const where = spot(gantt, picture, event);
    const lease = where.inside ? leaseAt(picture.bars, where.row, where.gpu, where.at) : null;
    hover(event);
    if (lease !== null) gantt.select(picture, lease);
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  // A finger leaves as soon as it is lifted; what it asked for stays until something else is touched.
  canvas.addEventListener('pointerleave', (event) => (tip.hidden ||= event.pointerType === 'mouse'));
  canvas.addEventListener('blur', () => (tip.hidden = true));

  canvas.addEventListener('wheel', (event) => wheel(gantt, picture, event), { passive: false });
  canvas.addEventListener('dblclick', (event) => gantt.zoom(0.4, spot(gantt, picture, event).at));
  canvas.addEventListener('keydown', (event) => press(gantt, picture, event));
}

// The page goes on scrolling under the wheel until the picture was pressed, or with Ctrl.
function wheel(gantt, picture, event) {
  if (document.activeElement !== picture.canvas && !event.ctrlKey) return;
  event.preventDefault();
  const { at, rows } = spot(gantt, picture, event);
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return gantt.move((event.deltaX || event.deltaY) / 600, 0);
  const factor = 2 ** (Math.max(-300, Math.min(300, event.deltaY)) / 300);
  if (event.altKey) gantt.zoomRows(factor, rows); else gantt.zoom(factor, at);
}

// Two fingers: apart in time, apart in rows, whichever they do more.
function pinch(gantt, picture, pointers, event) {
  const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
  const before = pointers.get(event.pointerId);
  const apart = (one) => ({ x: Math.abs(one.clientX - other.clientX), y: Math.abs(one.clientY - other.clientY) });
  const [from, to] = [apart(before), apart(event)];
  const middle = spot(gantt, picture, { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 });
  const ratio = (a, b) => Math.max(0.5, Math.min(2, (a + 1) / (b + 1)));
  if (from.x > 24) gantt.zoom(ratio(from.x, to.x), middle.at);
  if (from.y > 48) gantt.zoomRows(ratio(from.y, to.y), middle.rows);
}

const KEYS = {
  ArrowLeft: (gantt) => gantt.move(-STEP, 0),
  ArrowRight: (gantt) => gantt.move(STEP, 0),
  ArrowUp: (gantt) => gantt.move(0, -STEP),
  ArrowDown: (gantt) => gantt.move(0, STEP),
  '+': (gantt) => gantt.zoom(0.5),
  '=': (gantt) => gantt.zoom(0.5),
  '-': (gantt) => gantt.zoom(2),
  '−': (gantt) => gantt.zoom(2),
  PageUp: (gantt) => gantt.zoomRows(0.5),
  PageDown: (gantt) => gantt.zoomRows(2),
  Home: (gantt) => gantt.all(),
  Enter: (gantt, picture) => pick(gantt, picture, 0),
  '.': (gantt, picture) => pick(gantt, picture, 1),
  ',': (gantt, picture) => pick(gantt, picture, -1),
};

function press(gantt, picture, event) {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act(gantt, picture);
}

// The bar nearest to the middle, or the one before or after the selected one on its node.
function pick(gantt, picture, step) {
  const { bars } = picture;
  const { from, to, top, bottom } = gantt.view;
  const row = Math.min(Math.floor((top + bottom) / 2), bars.nodes.length - 1);
  const inRow = [...bars.lease.subarray(bars.first[row], bars.first[row + 1])];
  if (!inRow.length) return;
  const selected = inRow.indexOf(picture.lease);
  const middle = (from + to) / 2;
  const distance = (lease) => Math.max(bars.start[lease] - middle, middle - bars.end[lease], 0);
  const nearest = inRow.reduce((best, lease, i) => (distance(lease) < distance(inRow[best]) ? i : best), 0);
  const next = step === 0 || selected < 0 ? nearest : Math.max(0, Math.min(inRow.length - 1, selected + step));
  const lease = inRow[next];
  const centre = (bars.start[lease] + Math.min(bars.end[lease], bars.start[lease] + (to - from) / 2)) / 2;
  if (bars.end[lease] < from || bars.start[lease] > to) gantt.look({ from: centre - (to - from) / 2, to: centre + (to - from) / 2 });
  gantt.select(picture, lease);
}
