'use strict';
// Curves as SVG, with the same numbers as a table.

function svg(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function rangeOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  if (low === 0 && high === 0) return [0, 1];
  if (low === high) return [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  return [low, high];
}

// One or two curves over the same x. A value of null is a NaN.
// chart: {title, x, text, curves: [{name, points: [[x, value]]}]}; text: a value in words
function figure(chart) {
  const width = 460;
  const height = 192;
  const box = {left: 58, right: width - 10, top: 10, bottom: height - 38};
  const all = chart.curves.flatMap((curve) => curve.points);
  const [x0, x1] = rangeOf(all.map((point) => point[0]));
  let [y0, y1] = rangeOf(all.map((point) => point[1]));
  if (y0 > 0 && y0 < y1 / 2) y0 = 0;
  const X = (x) => box.left + (x - x0) / (x1 - x0) * (box.right - box.left);
  const Y = (y) => box.bottom - (y - y0) / (y1 - y0) * (box.bottom - box.top);
  const text = chart.text || numberText;
  const values = all.map((point) => point[1]).filter((value) => value !== null);
  const nans = all.length - values.length;
  const summary = `${counted(all.length, 'value')}` +
      (values.length ? `, least ${text(Math.min(...values))}, greatest ${text(Math.max(...values))}, last ${text(all[all.length - 1][1])}` : '') +
      (nans ? `, NaN in ${count(nans)}` : '');
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${chart.title}: ${summary}`});
  let label = '';
  for (const y of roundNumbers(y0, y1, 4)) {
    if (text(y, 1) === label) continue;
    label = text(y, 1);
    picture.append(svg('line', {class: 'axis', x1: box.left, x2: box.right, y1: Y(y), y2: Y(y)}));
    picture.append(svg('text', {x: box.left - 6, y: Y(y) + 4, 'text-anchor': 'end'}, label));
  }
  for (const x of roundNumbers(x0, x1, 6).filter(Number.isInteger))
    picture.append(svg('text', {x: X(x), y: box.bottom + 15, 'text-anchor': 'middle'}, count(x)));
  picture.append(svg('text', {x: box.right, y: height - 6, 'text-anchor': 'end'}, chart.x));
  chart.curves.forEach((curve, index) => {
    let path = '';
    let before = null;
    curve.points.forEach(([x, y], i) => {
      if (y === null) {
        picture.append(svg('line', {class: 'bad', x1: X(x), x2: X(x), y1: box.top, y2: box.bottom}));
      } else {
        path += `${before === null ? 'M' : 'L'}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
        const alone = before === null && (i + 1 === curve.points.length || curve.points[i + 1][1] === null);
        if (alone) picture.append(svg('circle', {class: 'point', cx: X(x), cy: Y(y), r: 2.5}));
      }
      before = y;
    });
    if (path) picture.append(svg('path', {class: index ? 'curve second' : 'curve', d: path}));
  });
  const columns = [[chart.x, 'number'], ...chart.curves.map((curve) => [curve.name, 'number'])];
  const rows = () => chart.curves[0].points.map((point, i) =>
    [count(point[0]), ...chart.curves.map((curve) => (curve.points[i] ? text(curve.points[i][1]) : ''))]);
  const names = chart.curves.length > 1 ? ` (${chart.curves.map((curve) => curve.name).join(', ')})` : '';
  return make('figure', {}, make('figcaption', {}, chart.title + names), picture, make('p', {class: 'small'}, summary),
              later('Values', () => table(columns, rows(), chart.title)));
}
