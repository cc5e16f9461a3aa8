// The level of detail for many bars: by row and bucket of time, which part of the GPUs was in which state. Each level has half as many
// buckets as the one before, so that a pixel is always about one bucket, however far one zooms out.

const CELLS_MAX = 1 << 20;
const BUCKETS_MAX = 8192;

function carpetOf(bars, from, to, marked) {
  const rows = bars.nodes.length;
  let buckets = BUCKETS_MAX;
  while (buckets > 512 && buckets * rows > CELLS_MAX) buckets /= 2;
  const seconds = (to - from) / buckets;
  const cells = new Uint8Array(rows * buckets * STATES.length);
  const sums = new Float32Array(buckets * STATES.length);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let i = bars.first[row]; i < bars.first[row + 1]; i++) {
      const lease = bars.lease[i];
      const part = (bars.high[i] - bars.low[i]) / bars.nodes[row].gpus;
      const other = marked && !marked[lease];
      statesOf(bars, lease, (state, start, end) => spread(sums, other ? OTHER : state, (start - from) / seconds, (end - from) / seconds, part, buckets));
    }
    const first = row * buckets * STATES.length;
    for (let i = 0; i < sums.length; i++) cells[first + i] = Math.min(255, sums[i] * 255 + 0.5);
  }
  const levels = [{ buckets, seconds, cells }];
  while (levels.at(-1).buckets > 256) levels.push(coarser(levels.at(-1), rows));
  return { from, levels };
}

// Adds `part` of each bucket from `start` to `end`, both in buckets.
function spread(sums, state, start, end, part, buckets) {
  const low = Math.max(start, 0), high = Math.min(end, buckets);
  if (low >= high) return;
  const last = Math.ceil(high) - 1;
  for (let bucket = Math.floor(low); bucket <= last; bucket++) {
    const covered = Math.min(bucket + 1, high) - Math.max(bucket, low);
    sums[bucket * STATES.length + state] += covered * part;
  }
}

function coarser({ buckets, seconds, cells }, rows) {
  const half = buckets / 2, states = STATES.length;
  const sums = new Uint8Array(rows * half * states);
  for (let i = 0; i < rows * half; i++) {
    for (let state = 0; state < states; state++) {
      sums[i * states + state] = (cells[2 * i * states + state] + cells[(2 * i + 1) * states + state] + 1) >> 1;
    }
  }
  return { buckets: half, seconds: seconds * 2, cells: sums };
}

// The coarsest level whose buckets are no longer than a pixel, or the finest.
function levelFor(carpet, secondsPerPixel) {
  return carpet.levels.findLast((level) => level.seconds <= secondsPerPixel * 1.01) ?? carpet.levels[0];
}

const BARS_MAX = 3000;

// Whether so many bars are in view that the carpet says more, and is fine enough for it.
function needsCarpet({ bars, carpet }, view, secondsPerPixel) {
  const inView = bars.pieces * ((view.to - view.from) / (bars.policy.end - facts.from)) * ((view.bottom - view.top) / bars.nodes.length);
  return BARS_MAX < inView && carpet.levels[0].seconds <= secondsPerPixel;
}

// Writes the carpet into an image: each pixel of a row is given to the states by their parts, from the top.
function weave(image, carpet, view, colours, rowTop) {
  const { width, height } = image;
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(colours.idle);
  const secondsPerPixel = (view.to - view.from) / width;
  const level = levelFor(carpet, secondsPerPixel);
  const states = STATES.length;
  for (let row = Math.floor(view.top); row < Math.ceil(view.bottom); row++) {
    const top = Math.max(0, Math.round(rowTop(row))), end = Math.min(height, Math.round(rowTop(row + 1)) - (rowTop(1) - rowTop(0) >= 4 ? 1 : 0));
    const lines = Math.max(end - top, 1);
    for (let x = 0; x < width; x++) {
      const bucket = Math.floor((view.from + (x + 0.5) * secondsPerPixel - carpet.from) / level.seconds);
      if (bucket < 0 || bucket >= level.buckets) continue;
      const cell = (row * level.buckets + bucket) * states;
      let sum = 0, y = 0;
      for (let state = 0; state < states; state++) {
        sum += level.cells[cell + state];
        const until = Math.min(lines, Math.round((sum * lines) / 255));
        for (; y < until; y++) {
          const line = top + y;
          const hatched = state === PAST && (x + line) % 6 === 0;
          if (line < height) pixels[line * width + x] = hatched ? colours.hatch : colours.states[state];
        }
      }
    }
  }
}
