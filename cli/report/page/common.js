'use strict';
// What the other scripts share: elements, numbers in words, packed numbers. All text goes through textContent.

const data = JSON.parse(document.getElementById('data').textContent);

function byId(id) {
  return document.getElementById(id);
}

// An element with text or elements in it.
function make(name, options, ...inner) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === 'class') element.className = value;
    else if (key === 'on') for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else element.setAttribute(key, value);
  }
  for (const one of inner) if (one !== null && one !== undefined) element.append(one);
  return element;
}

function count(number) {
  return number.toLocaleString('en-US');
}

function counted(number, word) {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

// "rank 2", "ranks 0-1,3"
function ranksText(ranges) {
  return /^\d+$/.test(ranges) ? `rank ${ranges}` : `ranks ${ranges}`;
}

function bytesText(number) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (number >= 1000 && unit < 4) {
    number /= 1000;
    ++unit;
  }
  return `${unit ? number.toFixed(1) : number} ${units[unit]}`;
}

// A length of time in microseconds. `digits`: after the point.
function timeText(us, digits = 2) {
  const size = Math.abs(us);
  if (size >= 60e6) return `${Math.floor(us / 60e6)} min ${((us % 60e6) / 1e6).toFixed(1)} s`;
  if (size >= 1e6) return `${(us / 1e6).toFixed(digits)} s`;
  if (size >= 1e3) return `${(us / 1e3).toFixed(digits)} ms`;
  return `${Math.round(us)} us`;
}

function numberText(value) {
  if (value === null) return 'NaN';
  if (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6)) return String(+value.toPrecision(6));
  return value.toExponential(3);
}

// Steps of an axis: about `wanted` round numbers from `from` to `to`.
function roundNumbers(from, to, wanted) {
  const span = to - from;
  if (!(span > 0)) return [from];
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= raw) || 10);
  const numbers = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9 && numbers.length < 100; at += step) numbers.push(at);
  return numbers;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Reads what cli/report/packed_numbers.h writes.
class Packed {
  constructor(base64) {
    this.bytes = bytesOf(base64);
    this.at = 0;
  }
  next() {
    let number = 0;
    for (let factor = 1; this.at < this.bytes.length; factor *= 128) {
      const byte = this.bytes[this.at++];
      number += (byte & 127) * factor;
      if (byte < 128) break;
    }
    return number;
  }
  signed() {
    const folded = this.next();
    return folded % 2 ? -(folded + 1) / 2 : folded / 2;
  }
}

// A table. `columns`: [title, class]; `rows`: lists of texts or elements. More than `most` rows come on demand.
function table(columns, rows, caption, most = 25) {
  const body = make('tbody');
  const add = (from, to) => {
    for (const row of rows.slice(from, to)) {
      const line = make('tr');
      row.forEach((cell, i) => line.append(make('td', columns[i][1] ? {class: columns[i][1]} : {}, cell)));
      body.append(line);
    }
  };
  add(0, most);
  const head = make('tr');
  for (const [title, kind] of columns) head.append(make('th', kind ? {scope: 'col', class: kind} : {scope: 'col'}, title));
  const box = make('div', {class: 'scroll'},
                   make('table', {'aria-label': caption}, make('thead', {}, head), body));
  if (rows.length > most) {
    const more = make('button', {type: 'button', on: {click: () => {
      add(most, rows.length);
      more.remove();
    }}}, `Show all ${count(rows.length)}`);
    box.append(more);
  }
  return box;
}

// Details whose content is made when they are first opened.
function later(title, content) {
  const details = make('details', {}, make('summary', {}, title));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(content());
  });
  return details;
}
