'use strict';
// Pointer, keyboard, search and the texts beside the timeline's picture.

function partText(timeline, one, part) {
  const lines = [timeline.title(one), `${timeline.commName(one)}${one.step >= 0 ? `, step ${one.step}` : ''}`];
  if (part) {
    lines.push(`rank ${timeline.ranks[part.rank]}: ${timeText(part.end - part.begin)}` +
               (one.met > part.begin && !(one.flags & kTransfer)
                 ? `, waited ${timeText(Math.min(one.met, part.end) - part.begin)} for rank ${timeline.ranks[one.last]}` : ''));
    if (part.flags & kPartOpen) lines.push('was never done');
    if (part.flags & kPartFailed) lines.push('failed');
    if (part.flags & kPartNan) lines.push('has NaNs');
    if (part.flags & kPartMisfits) lines.push('another call than that of most ranks:');
    if (part.flags & kPartDiffers) lines.push(`${timeline.signatures[part.signature]} at ${timeline.sites[part.site]}`);
    else if (timeline.place(one)) lines.push(timeline.place(one));
  } else {
    lines.push(`${timeText(one.end - one.begin)} of ${counted(one.count, 'rank')}; bars of ranks are not in the report`);
  }
  return lines;
}

function describe(timeline, one) {
  if (!one) return [];
  const trouble = [[kDisagrees, 'ranks called different things'], [kOpen, 'was never done on some rank'],
                   [kFailed, 'failed'], [kNan, 'has NaNs']].filter(([flag]) => one.flags & flag).map(([, text]) => text);
  const wait = one.met - one.begin;
  const last = timeline.ranks[one.last];
  const size = timeline.comms[one.comm].size;
  const lines = [
    make('h3', {}, timeline.title(one)),
    make('p', {}, `${timeline.commName(one)}${one.step >= 0 ? `, step ${one.step}` : ''}${timeline.place(one) ? `, at ${timeline.place(one)}` : ''}`),
    make('p', {}, `From ${(one.begin / 1e6).toFixed(6)} s for ${timeText(one.end - one.begin)}. ` +
         (one.flags & kTransfer ? '' : `${count(one.count)} of ${counted(size, 'rank')} entered it` +
         (one.count > 1 ? `, rank ${last} last, ${timeText(wait)} after the first.` : '.'))),
  ];
  if (trouble.length) lines.push(make('p', {class: 'alarm'}, trouble.join(', ')));
  if (one.parts) {
    lines.push(later(`Its ${counted(one.parts.length, 'rank')}`, () => table(
      [['Rank', 'number'], ['Entered after', 'number'], ['Lasted', 'number'], ['Called'], ['At']],
      one.parts.map((part) => [String(timeline.ranks[part.rank]), timeText(part.begin - one.begin),
                               part.flags & kPartOpen ? 'never done' : timeText(part.end - part.begin),
                               timeline.signatures[part.signature], timeline.sites[part.site]]), timeline.title(one))));
    lines.push(make('p', {}, make('code', {}, `deja show RUN --rank ${timeline.ranks[one.parts[0].rank]} --comm ` +
         `${(/\d+/.exec(timeline.comms[one.comm].name) || ['0'])[0]} --seq ${one.seq} --stacks`)));
  }
  return lines;
}

function connectPointer(view, timeline, hint) {
  const {canvas} = view;
  let grabbed = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const hover = (x, y) => {
    const found = view.find(x, y);
    hint.hidden = !found;
    if (!found) return;
    hint.replaceChildren(...partText(timeline, found.one, found.part).map((line) => make('div', {}, line)));
    hint.style.left = `${Math.max(4, Math.min(x + 14, canvas.clientWidth - hint.offsetWidth - 8))}px`;
    hint.style.top = `${Math.max(4, Math.min(y + 14, canvas.clientHeight - hint.offsetHeight - 8))}px`;
  };
  canvas.addEventListener('pointerdown', (event) => {
    grabbed = {at: place(event), start: place(event), moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (!grabbed) return hover(x, y);
    grabbed.moved = grabbed.moved || Math.hypot(x - grabbed.start[0], y - grabbed.start[1]) > 4;
    if (!grabbed.moved) return;
    hint.hidden = true;
    view.moveTime(-(x - grabbed.at[0]) / view.width);
    view.moveRanks(-(y - grabbed.at[1]) / view.height);
    grabbed.at = [x, y];
  });
  canvas.addEventListener('pointerup', (event) => {
    const found = grabbed && !grabbed.moved ? view.find(...place(event)) : undefined;
    grabbed = null;
    if (found !== undefined) view.select(found ? found.one : null);
  });
  canvas.addEventListener('pointerleave', () => { hint.hidden = true; });
  canvas.addEventListener('dblclick', (event) => {
    const found = view.find(...place(event));
    if (found) view.zoomTo(found.one);
  });
  // Without a key the page scrolls.
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    const [x, y] = place(event);
    const by = Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.25);
    if (event.shiftKey) view.zoomRanks(by, view.rowAt(y));
    else view.zoomTime(by, view.timeAt(x));
  }, {passive: false});
}

function connectKeys(view, step) {
  const keys = {
    ArrowLeft: () => view.moveTime(-0.15), ArrowRight: () => view.moveTime(0.15),
    ArrowUp: () => view.moveRanks(-0.2), ArrowDown: () => view.moveRanks(0.2),
    '+': () => view.zoomTime(0.6), '=': () => view.zoomTime(0.6), '-': () => view.zoomTime(1 / 0.6),
    '[': () => view.zoomRanks(1 / 0.6), ']': () => view.zoomRanks(0.6),
    Home: () => view.showAll(), n: () => step(1), p: () => step(-1),
    Enter: () => view.selected && view.zoomTo(view.selected), Escape: () => view.select(null),
  };
  view.canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function startTimeline() {
  const timeline = new Timeline(data.timeline);
  const selected = byId('selected');
  const view = new TimelineView(byId('canvas'), timeline, data.steps.rows, (one) =>
    selected.replaceChildren(...describe(timeline, one)));
  // The next operation in this direction that the search does not leave out.
  const step = (by) => {
    const all = timeline.operations;
    let at = view.selected ? view.selected.index + by : by > 0 ? 0 : all.length - 1;
    if (!view.selected && by > 0) while (at < all.length && all[at].begin < view.t0) ++at;
    while (at >= 0 && at < all.length && view.matches && !view.matches(all[at])) at += by;
    if (at >= 0 && at < all.length) view.select(all[at]);
  };
  connectPointer(view, timeline, byId('hint'));
  connectKeys(view, step);
  const search = byId('search');
  search.addEventListener('input', () => {
    view.matches = search.value.trim() ? timeline.matcher(search.value) : null;
    byId('matches').textContent = view.matches ? `${count(timeline.operations.filter(view.matches).length)} found` : '';
    view.redraw();
  });
  search.addEventListener('keydown', (event) => { if (event.key === 'Enter') step(1); });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    search.focus();
  });
  const buttons = {previous: () => step(-1), next: () => step(1), 'zoom-in': () => view.zoomTime(0.5),
                   'zoom-out': () => view.zoomTime(2), 'all-time': () => view.showAll(), 'all-ranks': () => view.showAllRanks()};
  for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener('click', act);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => view.redraw());
  window.addEventListener('beforeprint', () => { document.documentElement.dataset.print = '1'; view.draw(); });
  window.addEventListener('afterprint', () => { delete document.documentElement.dataset.print; view.draw(); });
  showLegend(view, timeline);
  showTable(view, timeline);
  return {timeline, view};
}

function showLegend(view, timeline) {
  const swatch = (colour, text) => {
    const box = make('span', {class: 'swatch'});
    box.style.background = `var(--${colour})`;
    return make('span', {}, box, text);
  };
  byId('legend').replaceChildren(...view.kinds.slice(0, 8).map((kind, i) => swatch(`c${i % 8}`, kind)),
                                 swatch('wait', 'waits for other ranks'), swatch('alarm', 'failed, never done or NaN; at an edge: another call than that of most ranks'));
  let text = `${counted(timeline.total, 'operation')} of ${counted(timeline.ranks.length, 'rank')} in ${timeText(timeline.span)}, ` +
      `from ${data.origin}. Times are those of each machine's clock.`;
  if (timeline.detailed < timeline.total)
    text += ` ${count(timeline.listed)} operations are in this file, ${count(timeline.detailed)} of them with a bar for each rank: ` +
        'those with a problem, those with the longest waits and an even sample. Where too many are in view, shades show the part of time in operations and, browner, in waits.';
  if (view.t1 < timeline.span) text += ` The picture begins with the first ${timeText(view.t1)}; All shows the rest.`;
  byId('timeline-summary').textContent = text;
}

function showTable(view, timeline) {
  const details = byId('operations-details');
  details.addEventListener('toggle', () => {
    if (!details.open) return;
    const rows = [];
    timeline.each(view.t0, view.t1, (one) => {
      if (rows.length >= 500 || (view.matches && !view.matches(one))) return;
      rows.push([(one.begin / 1e6).toFixed(6), timeline.title(one), timeline.commName(one), one.step >= 0 ? count(one.step) : '',
                 timeText(one.end - one.begin), timeText(one.met - one.begin), String(timeline.ranks[one.last]), timeline.place(one)]);
    });
    byId('operations').replaceChildren(table(
      [['Begin, s', 'number'], ['Operation'], ['Communicator'], ['Step', 'number'], ['Lasted', 'number'],
       ['First to last', 'number'], ['Last rank', 'number'], ['At']], rows, 'Operations in view', 50));
  });
}
