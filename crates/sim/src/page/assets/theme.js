// Light or dark: as the system says, unless somebody chooses.

function theme() {
  const known = ['light', 'dark'];
  const set = (value) => {
    if (known.includes(value)) document.documentElement.dataset.theme = value;
    else delete document.documentElement.dataset.theme;
    dispatchEvent(new Event('recolour'));
  };
  segments(byId('theme'), 'theme', [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']], 'system', set);
  for (const event of ['beforeprint', 'afterprint']) addEventListener(event, () => dispatchEvent(new Event('recolour')));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => dispatchEvent(new Event('recolour')));
}

// The value of a colour of the style sheet, now.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
