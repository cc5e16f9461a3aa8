// The table's rows explain themselves when their name is pressed.

function table() {
  for (const button of document.querySelectorAll('button.row')) {
    button.addEventListener('click', () => {
      const about = byId(button.getAttribute('aria-controls'));
      about.hidden = !about.hidden;
      button.setAttribute('aria-expanded', String(!about.hidden));
    });
  }
}
