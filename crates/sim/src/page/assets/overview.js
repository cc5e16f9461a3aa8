// The whole time above each Gantt: GPUs by state, with the part in view framed. Dragging the frame moves the view.

const OVERVIEW = { height: 64, left: GUTTER.left };

function overview(bars, carpet, view, changed) {
  const root = make('div', { class: 'overview' });
  const frame = svg('rect', { class: 'frame', y: 0.5, height: OVERVIEW.height - 1 });
  const draw = () => {
    const width = Math.max(root.clientWidth - OVERVIEW.left, 10);
    const layers = stacked(bars, carpet);
    const X = linear(0, layers[0].length, 0, width), Y = linear(0, 1, OVERVIEW.height, 0);
    const paths = layers.map((layer, state) => svg('path', { class: STATES[state].name, d: bandPath([...layer.map(([low, high], i) => [i, low, high]), [layer.length, ...layer.at(-1)]], X, Y) }));
    const picture = svg('svg', { width: root.clientWidth, height: OVERVIEW.height, role: 'img', 'aria-label': `${bars.policy.policy}: GPUs by state over the whole time` },
      svg('g', { transform: `translate(${OVERVIEW.left},0)` }, svg('rect', { class: 'idle', width, height: OVERVIEW.height }), paths, frame),
      svg('text', { class: 'axis', x: OVERVIEW.left - 6, y: 11, 'text-anchor': 'end' }, '100%'));
    root.replaceChildren(picture);
    placeFrame();
  };
  const placeFrame = () => {
    const X = linear(facts.from, bars.policy.end, 0, Math.max(root.clientWidth - OVERVIEW.left, 10));
    fill(frame, { x: X(view.from), width: Math.max(X(view.to) - X(view.from), 3) }, []);
  };
  const move = (event) => {
    if (!event.buttons) return;
    const box = root.getBoundingClientRect();
    const at = linear(box.left + OVERVIEW.left, box.right, facts.from, bars.policy.end)(event.clientX);
    const half = (view.to - view.from) / 2;
    changed(at - half, at + half);
  };
  root.addEventListener('pointerdown', (event) => {
    root.setPointerCapture(event.pointerId);
    move(event);
  });
  root.addEventListener('pointermove', move);
  onWidth(root, draw);
  const redraw = (woven) => {
    carpet = woven;
    draw();
  };
  return { root, placeFrame, redraw };
}

// The parts of all GPUs by state, bucket by bucket, each on top of those before.
function stacked(bars, carpet) {
  const { cells, buckets } = carpet.levels.at(-1);
  const all = bars.nodes.reduce((sum, node) => sum + node.gpus, 0);
  const layers = STATES.map(() => Array.from({ length: buckets }, () => [0, 0]));
  for (let bucket = 0; bucket < buckets; bucket++) {
    let low = 0;
    STATES.forEach((_, state) => {
      let gpus = 0;
      for (let row = 0; row < bars.nodes.length; row++) gpus += (cells[(row * buckets + bucket) * STATES.length + state] / 255) * bars.nodes[row].gpus;
      layers[state][bucket] = [low, (low += gpus / all)];
    });
  }
  return layers;
}
