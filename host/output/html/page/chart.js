(() => {
  // What a chart shows at a place: a curve has the texts of its points, and its line where they are.
  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  };
  const load = each => ({
    name: each.dataset.name + (each.classList.contains('dashed') ? ' (baseline)' : ''),
    style: ([...each.classList].find(name => name.startsWith('hue-')) ?? 'limit') + (each.classList.contains('dashed') ? ' before' : ''),
    level: 'level' in each.dataset,
    places: each.querySelector('polyline').getAttribute('points').split(' ').map(pair => +pair.split(',')[0]),
    at: each.dataset.x.split('|'), value: each.dataset.y.split('|'),
  });
  // The point of a curve for a place: the last before it where a value holds, else the nearest; -1 beyond its ends.
  const find = (curve, x) => {
    const {places} = curve;
    if (x < places[0] - 6 || x > places[places.length - 1] + 6) return -1;
    let best = 0;
    places.forEach((place, i) => {
      if (curve.level ? place <= x : Math.abs(place - x) < Math.abs(places[best] - x)) best = i;
    });
    return best;
  };

  for (const figure of document.querySelectorAll('figure')) {
    const picture = figure.querySelector('.picture');
    const svg = picture.querySelector('svg');
    const width = svg.viewBox.baseVal.width;
    let curves, mark, tip, at = -1;
    const hide = () => { mark?.remove(); tip?.remove(); at = -1; };
    const show = x => {
      curves ??= [...svg.querySelectorAll('.curve')].map(load);
      const found = curves.map(curve => [curve, find(curve, x)]).filter(([, i]) => i >= 0);
      hide();
      if (!found.length) return;
      const far = ([curve, i]) => Math.abs(curve.places[i] - x);
      const [near, point] = found.reduce((a, b) => far(b) < far(a) ? b : a);
      at = near.level ? Math.min(Math.max(x, near.places[0]), near.places[near.places.length - 1]) : near.places[point];
      mark = document.createElementNS(svg.namespaceURI, 'path');
      mark.setAttribute('class', 'mark');
      mark.setAttribute('d', `M${at} ${svg.dataset.from}V${svg.dataset.to}`);
      svg.append(mark);
      tip = element('div', at > width / 2 ? 'tip left' : 'tip', '');
      tip.setAttribute('role', 'status');
      tip.style.top = picture.offsetTop + 'px';
      tip.append(element('b', '', near.at[point]));
      const list = element('ul', 'legend', '');
      for (const [curve, i] of found) {
        const item = element('li', curve.style, '');
        const elsewhere = curve.at[i] === near.at[point] ? '' : `, ${curve.at[i]}`;
        item.append(element('b', '', curve.value[i]), ` ${curve.name}${elsewhere}`);
        list.append(item);
      }
      tip.append(list);
      figure.append(tip);
    };
    svg.addEventListener('pointermove', event => {
      const box = svg.getBoundingClientRect();
      show((event.clientX - box.left) * width / box.width);
    });
    svg.addEventListener('pointerleave', hide);
    picture.addEventListener('blur', hide);
    picture.addEventListener('keydown', event => {
      const way = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (event.key === 'Escape') hide();
      if (!way) return;
      event.preventDefault();
      curves ??= [...svg.querySelectorAll('.curve')].map(load);
      const places = [...new Set(curves.flatMap(curve => curve.places))].sort((a, b) => a - b);
      const next = way > 0 ? places.find(place => place > at + 0.05) : places.findLast(place => at < 0 || place < at - 0.05);
      if (next !== undefined) show(next);
    });
  }
})();
