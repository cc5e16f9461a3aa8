// Two policies beside each other, with one view: the same time, the same rows.

const ROW_MIN = 4.5, ROWS_AT_FIRST = 160, LEAST_SECONDS = 120;

class Gantt {
  constructor() {
    this.loaded = new Map();
    this.team = '';
    this.selected = null;
    this.pictures = [];
    this.view = null;
  }

  async start() {
    const names = facts.policies.map(({ policy }) => policy);
    this.chosen = names.slice(0, 2).map((_, index) => index);
    this.controls(names);
    await this.show();
    addEventListener('recolour', () => this.recolour());
    addEventListener('resize', () => this.resize());
  }

  controls(names) {
    const options = names.map((name, index) => [String(index), name]);
    const pick = (side) => (value) => {
      this.chosen[side] = Number(value);
      this.show();
    };
    const teams = [['', 'nobody'], ...facts.budgets.slice().sort().map((path) => [path, path])];
    const button = (text, label, act) => make('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, text);
    this.teamChoice = choice('Highlight', teams, '', (team) => this.highlight(team));
    byId('gantt-controls').append(
      ...this.chosen.map((index, side) => choice(side ? 'beside' : 'Policy', options, String(index), pick(side))),
      this.teamChoice,
      make('span', { class: 'buttons', role: 'group', 'aria-label': 'Zoom' },
        button('+', 'Zoom in', () => this.zoom(0.5)), button('−', 'Zoom out', () => this.zoom(2)),
        button('Taller', 'Zoom in on rows', () => this.zoomRows(0.5)), button('Flatter', 'Zoom out of rows', () => this.zoomRows(2)),
        button('All', 'Show all', () => this.all())));
  }

  // Loads what is missing and builds the pictures.
  async show() {
    const sides = [];
    for (const index of this.chosen) {
      if (!this.loaded.has(index)) this.loaded.set(index, ganttOf(index));
      sides.push(await this.loaded.get(index));
    }
    this.rows = Math.max(...sides.map((bars) => bars.nodes.length));
    this.end = Math.max(...sides.map((bars) => bars.policy.end));
    this.view ??= { from: facts.from, to: Math.min(this.end, facts.from + 3 * 86400), top: 0, bottom: Math.min(this.rows, ROWS_AT_FIRST) };
    this.pictures = sides.map((bars) => this.picture(bars));
    byId('gantt-pair').replaceChildren(...this.pictures.map(({ root }) => root));
    byId('gantt-legend').replaceChildren(...this.legend());
    this.resize();
    document.documentElement.dataset.ready = 'gantt';
  }

  picture(bars) {
    const canvas = make('canvas', { tabindex: 0, role: 'application', 'aria-roledescription': 'Gantt chart', 'aria-describedby': 'gantt-help',
      'aria-label': `${bars.policy.policy}: which workload held which GPUs when` });
    const tip = make('div', { class: 'tip', hidden: true });
    const marked = highlighted(bars, this.team);
    const carpet = carpetOf(bars, facts.from, bars.policy.end, marked);
    const above = overview(bars, carpet, this.view, (from, to) => this.look({ from, to }));
    const list = asTable(`${bars.policy.policy}: what is in view, as a table`, () => this.inView(bars));
    const holder = make('div', { class: 'canvas' }, canvas, tip);
    const root = make('figure', { class: 'gantt' }, make('figcaption', {}, make('b', {}, bars.policy.policy),
      ` ${figure(bars.count)} runs, ${figure(bars.pieces)} bars`), above.root, holder, list);
    const picture = { root, canvas, tip, bars, marked, carpet, above, colours: paintColours(canvas.getContext('2d', { alpha: false })) };
    gestures(this, picture);
    return picture;
  }

  legend() {
    const states = STATES.filter((_, state) => state !== OTHER || this.team);
    return [...states.map(({ name, text }) => key(name, text)), key('idle', 'idle, or held for a start'), key('draining', 'draining'), key('down', 'out of service'), key('preempted', 'preempted')];
  }

  recolour() {
    for (const picture of this.pictures) picture.colours = paintColours(picture.canvas.getContext('2d', { alpha: false }));
    this.paint();
  }

  resize() {
    const scale = devicePixelRatio || 1;
    const height = Math.min(Math.max(this.rows * ROW_MIN, 180), 620) + GUTTER.bottom;
    for (const { canvas } of this.pictures) {
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(canvas.clientWidth * scale);
      canvas.height = Math.round(height * scale);
    }
    this.draw();
  }

  highlight(team) {
    this.team = team;
    this.teamChoice.querySelector('select').value = team;
    for (const picture of this.pictures) {
      picture.marked = highlighted(picture.bars, team);
      picture.carpet = carpetOf(picture.bars, facts.from, picture.bars.policy.end, picture.marked);
      picture.above.redraw(picture.carpet);
    }
    byId('gantt-legend').replaceChildren(...this.legend());
    this.draw();
  }

  // Once a frame, however much happened.
  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
    });
  }

  paint() {
    for (const picture of this.pictures) {
      paint(picture, this.view, this.selected);
      picture.above.placeFrame();
      picture.canvas.dataset.view = [this.view.from, this.view.to, this.view.top, this.view.bottom].join(' ');
    }
  }

  // Moves the view, inside what there is.
  look({ from = this.view.from, to = this.view.to, top = this.view.top, bottom = this.view.bottom }) {
    const time = Math.min(Math.max(to - from, LEAST_SECONDS), this.end - facts.from);
    const rows = Math.min(Math.max(bottom - top, 1), this.rows);
    from = Math.min(Math.max(from, facts.from), this.end - time);
    top = Math.min(Math.max(top, 0), this.rows - rows);
    Object.assign(this.view, { from, to: from + time, top, bottom: top + rows });
    this.draw();
  }

  zoom(factor, at = (this.view.from + this.view.to) / 2) {
    this.look({ from: at - (at - this.view.from) * factor, to: at + (this.view.to - at) * factor });
  }

  zoomRows(factor, at = (this.view.top + this.view.bottom) / 2) {
    this.look({ top: at - (at - this.view.top) * factor, bottom: at + (this.view.bottom - at) * factor });
  }

  all() {
    this.look({ from: facts.from, to: this.end, top: 0, bottom: this.rows });
  }

  move(times, rows) {
    const time = (this.view.to - this.view.from) * times, up = (this.view.bottom - this.view.top) * rows;
    this.look({ from: this.view.from + time, to: this.view.to + time, top: this.view.top + up, bottom: this.view.bottom + up });
  }

  // Shows all about a lease below the pictures, and frames its workload's attempts in both.
  select(picture, lease) {
    const { bars } = picture;
    picture.lease = lease;
    this.selected = bars.workload[lease];
    const team = facts.budgets[bars.workloads.budget[place(bars, lease)]];
    const clear = () => {
      this.selected = null;
      byId('lease').replaceChildren();
      this.draw();
    };
    byId('lease').replaceChildren(...leaseCard(aboutLease(bars, lease),
      make('button', { type: 'button', onclick: () => this.highlight(team) }, `Highlight ${team}`), ' ',
      make('button', { type: 'button', onclick: clear }, 'Close')));
    this.draw();
  }

  // The leases in view, at most 200.
  inView(bars) {
    const { from, to, top, bottom } = this.view;
    const seen = new Set();
    for (let row = Math.floor(top); row < Math.min(Math.ceil(bottom), bars.nodes.length); row++) {
      for (let i = firstPiece(bars, row, from); i < bars.first[row + 1] && bars.start[bars.lease[i]] < to && seen.size < 200; i++) {
        if (bars.end[bars.lease[i]] > from) seen.add(bars.lease[i]);
      }
    }
    const rows = [...seen].sort((a, b) => a - b).map((lease) => {
      const { head, pairs } = aboutLease(bars, lease);
      const text = Object.fromEntries(pairs.slice().reverse());
      return [head, text.budget, text['asks for'], text.started, sentence(bars.policy, bars.whyStart, lease), text.ended, sentence(bars.policy, bars.whyEnd, lease)];
    });
    return [['workload', 'budget', 'asks for', 'started', 'because', 'ended', 'because'], ...rows];
  }
}
