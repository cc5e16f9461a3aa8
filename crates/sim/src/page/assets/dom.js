// Small helpers to make elements.

// A name, not an address: nothing is fetched from it.
const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

// A set of options of which one is chosen; few options stand side by side, many in a list.
function choice(label, options, chosen, onchange) {
  const select = make('select', { onchange: () => onchange(select.value) },
    options.map(([value, text]) => make('option', { value, selected: value === chosen }, text)));
  return make('label', { class: 'choice' }, make('span', {}, label), select);
}

function segments(fieldset, name, options, chosen, onchange) {
  for (const [value, text] of options) {
    const input = make('input', { type: 'radio', name, value, checked: value === chosen, onchange: () => onchange(value) });
    fieldset.append(make('label', {}, input, make('span', {}, text)));
  }
  return fieldset;
}

// What a picture shows, as a table that is made when it is asked for.
function asTable(summary, rows) {
  const details = make('details', { class: 'as-table' }, make('summary', {}, summary));
  details.addEventListener('toggle', () => {
    if (!details.open) return;
    const [head, ...body] = rows();
    const table = make('table', {},
      make('thead', {}, make('tr', {}, head.map((cell) => make('th', { scope: 'col' }, cell)))),
      make('tbody', {}, body.map(([first, ...cells]) =>
        make('tr', {}, make('th', { scope: 'row' }, first), cells.map((cell) => make('td', {}, cell))))));
    details.querySelector('.wide')?.remove();
    details.append(make('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': summary }, table));
  });
  return details;
}

// Calls `redraw` when the element's width changes.
function onWidth(element, redraw) {
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(element.clientWidth - width) < 1) return;
    width = element.clientWidth;
    redraw();
  }).observe(element);
}
