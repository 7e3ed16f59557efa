'use strict';
(() => {
  const root = document.documentElement;
  root.classList.add('js');
  const input = document.getElementById('filter');
  const cases = [...document.querySelectorAll('.case')];
  const buttons = [...document.querySelectorAll('button[data-group]')];
  const groups = new Set();

  // The address keeps the filter, so that a link shows what its sender saw.
  const read = () => {
    if (location.hash && !location.hash.includes('=')) return; // it leads to a place on the page
    const wanted = new URLSearchParams(location.hash.slice(1));
    input.value = wanted.get('filter') || '';
    groups.clear();
    (wanted.get('status') || '').split(',').filter(Boolean).forEach(name => groups.add(name));
  };
  const write = () => {
    const wanted = new URLSearchParams();
    if (input.value) wanted.set('filter', input.value);
    if (groups.size) wanted.set('status', [...groups].join(','));
    history.replaceState(null, '', wanted.size ? '#' + wanted : location.pathname + location.search);
  };
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const each of cases) {
      const fits = (!groups.size || groups.has(each.dataset.group)) &&
        words.every(word => each.dataset.text.includes(word));
      each.hidden = !fits;
      if (fits) shown++;
    }
    for (const button of buttons) button.setAttribute('aria-pressed', groups.has(button.dataset.group));
    document.getElementById('shown').value = shown === cases.length ? '' : `${shown} of ${cases.length}`;
    document.getElementById('none').hidden = shown > 0 || cases.length === 0;
  };

  input.addEventListener('input', () => { write(); apply(); });
  for (const button of buttons) {
    button.addEventListener('click', () => {
      const name = button.dataset.group;
      if (!groups.delete(name)) groups.add(name);
      write();
      apply();
    });
  }
  document.getElementById('unfold').addEventListener('click', event => {
    const open = cases.some(each => !each.hidden && !each.open);
    for (const each of cases) if (!each.hidden) each.open = open;
    event.target.textContent = open ? 'Close all' : 'Open all';
  });
  window.addEventListener('hashchange', () => { read(); apply(); });
  read();
  apply();
})();
