'use strict';
// Puts the parts of the report into the page.

function places(side) {
  const frames = side.places.map((place) =>
    make('li', {class: 'mono'}, place.file ? `${place.file}:${place.line}${place.function ? ` in ${place.function}` : ''}` : place.function));
  return frames.length ? make('ol', {'aria-label': 'Stack, innermost frame first'}, ...frames) : null;
}

function list(title, texts) {
  if (!texts.length) return null;
  return make('div', {}, make('div', {class: 'label'}, title), make('ul', {class: 'plain'}, ...texts.map((text) => make('li', {}, text))));
}

function findingCard(finding, index, show) {
  const title = `${index ? `Cause ${index + 1}` : 'First cause'}: ${finding.kind}${finding.step === undefined ? '' : `, step ${finding.step}`}`;
  const facts = [];
  if (finding.ranks) facts.push(`differs: ${ranksText(finding.ranks)}`);
  if (finding.others) facts.push(`others: ${ranksText(finding.others)}`);
  if (finding.comm) facts.push(`${finding.comm}${finding.collective ? `, collective ${finding.collective}` : ''}`);
  const sides = finding.sides.map((side) =>
    make('div', {class: 'side'}, make('div', {class: 'label'}, side.ranks ? ranksText(side.ranks) : ''), make('div', {}, side.what), places(side)));
  const card = make('article', {class: 'card cause'}, make('h3', {}, title), make('p', {class: 'sentence'}, finding.sentence),
                    make('p', {class: 'small'}, facts.join(' · ')), make('div', {class: 'sides'}, ...sides));
  if (finding.agreed)
    card.append(make('div', {class: 'side'}, make('div', {class: 'label'}, 'all agreed last on'), finding.agreed.what, places(finding.agreed) || ''));
  card.append(list('Evidence', finding.evidence) || '',
              list('Follows from it', finding.consequences.map((one) => `${one.kind}: ${one.sentence}`)) || '');
  const button = show(finding);
  if (button) card.append(button);
  for (const next of finding.next) card.append(make('p', {}, make('code', {}, next)));
  return card;
}

function showVerdict({timeline, view}) {
  const {verdict} = data;
  const body = byId('verdict-body');
  const show = (finding) => {
    const found = finding.collective && timeline.operations.find((one) =>
      one.number === finding.collective && !(one.flags & kTransfer) && timeline.comms[one.comm].name === finding.comm);
    if (!found) return null;
    return make('button', {type: 'button', on: {click: () => {
      view.select(found);
      view.zoomTo(found);
      byId('timeline').scrollIntoView({behavior: 'smooth'});
    }}}, 'Show in the timeline');
  };
  if (verdict.damaged) body.append(make('p', {class: 'alarm'}, 'Events of some ranks are missing. What they did is not compared.'));
  verdict.findings.forEach((finding, i) => body.append(findingCard(finding, i, show)));
  if (verdict.total > verdict.findings.length)
    body.append(make('p', {class: 'small'}, `${count(verdict.total - verdict.findings.length)} more findings: deja check RUN`));
  if (!verdict.findings.length)
    body.append(make('p', {class: 'card good'}, `deja check finds nothing in ${counted(verdict.ranks, 'rank')}${verdict.damaged ? ', as far as they are there' : ''}.`));
  const notes = list('Notes', verdict.notes);
  if (notes) body.append(notes);
}

function showWaits() {
  const rows = data.ranks;
  const most = Math.max(1, ...rows.map((row) => row.kept));
  const worst = rows.reduce((a, b) => (b.kept > a.kept ? b : a), rows[0]);
  byId('waits-summary').textContent = worst && worst.kept > 0
    ? `Rank ${worst.rank} kept the others waiting longest: ${timeText(worst.kept)}. It entered last in ${counted(worst.last_times, 'collective')}.`
    : 'No collective that waits for all ranks has been recorded on all of its ranks.';
  const columns = [['Rank', 'rank'], ['Kept others waiting', 'kept'], ['Entered last', 'last_times'], ['Waited', 'waited'],
                   ['In operations', 'inside'], ['Operations', 'operations'], ['On disk', 'bytes'], ['Lost', 'lost']];
  const body = byId('waits-body');
  let sorted = 'kept';
  let most_shown = 16;
  const draw = () => {
    const order = [...rows].sort((a, b) => (sorted === 'rank' ? a.rank - b.rank : b[sorted] - a[sorted] || a.rank - b.rank));
    const head = make('tr');
    for (const [title, key] of columns)
      head.append(make('th', {scope: 'col', class: 'number', 'aria-sort': key === sorted ? (key === 'rank' ? 'ascending' : 'descending') : 'none'},
                       make('button', {type: 'button', on: {click: () => { sorted = key; draw(); }}}, title + (key === sorted ? ' ▾' : ''))));
    head.append(make('th', {scope: 'col'}, 'Host'), make('th', {scope: 'col'}, 'End'), make('th', {scope: 'col'}, 'Last operation'));
    const lines = order.slice(0, most_shown).map((row) => {
      const bar = make('span', {class: 'bar'});
      bar.style.width = `${row.kept / most * 70}px`;
      return make('tr', {}, make('td', {class: 'number'}, String(row.rank)), make('td', {class: 'number'}, bar, timeText(row.kept)),
                  make('td', {class: 'number'}, count(row.last_times)), make('td', {class: 'number'}, timeText(row.waited)),
                  make('td', {class: 'number'}, timeText(row.inside)), make('td', {class: 'number'}, count(row.operations)),
                  make('td', {class: 'number'}, bytesText(row.bytes)), make('td', {class: 'number'}, count(row.lost)),
                  make('td', {class: 'short'}, row.host), make('td', {class: row.partial || row.end.length > 12 ? 'medium' : 'short'}, row.end + (row.partial ? `; ${row.partial}` : '')), make('td', {class: 'wide'}, row.last));
    });
    body.replaceChildren(make('div', {class: 'scroll'}, make('table', {'aria-label': 'Waits of ranks'}, make('thead', {}, head), make('tbody', {}, ...lines))));
    if (rows.length > most_shown)
      body.append(make('button', {type: 'button', on: {click: () => { most_shown = rows.length; draw(); }}}, `Show all ${counted(rows.length, 'rank')}`));
  };
  draw();
}

function showSteps() {
  const {rows, total} = data.steps;
  const body = byId('steps-body');
  if (rows.length < 2) {
    body.append(make('p', {class: 'small'}, rows.length ? 'One step was recorded.' : 'The program marks no steps.'));
    return;
  }
  if (total > rows.length) body.append(make('p', {class: 'small'}, `The last ${count(rows.length)} of ${count(total)} steps.`));
  const lengths = rows.slice(0, -1).map((row, i) => [row[0], rows[i + 1][1] - row[1]]);
  const spreads = rows.map((row) => [row[0], row[2] - row[1]]);
  const rank = (index) => String(data.timeline.ranks[index]);
  body.append(make('div', {class: 'charts'},
    figure({title: 'Time of a step', x: 'step', text: timeText, curves: [{name: 'time', points: lengths}]}),
    figure({title: 'From the first rank that begins a step to the last', x: 'step', text: timeText, curves: [{name: 'spread', points: spreads}]})),
  later('Steps', () => table([['Step', 'number'], ['Begins, s', 'number'], ['Last rank after', 'number'], ['Last rank', 'number'], ['Ranks', 'number']],
    rows.map((row) => [count(row[0]), (row[1] / 1e6).toFixed(6), timeText(row[2] - row[1]), rank(row[3]), count(row[4])]), 'Steps')));
}

function showNumbers() {
  const body = byId('numbers-body');
  const {nans, infinities, steps} = data.bad_numbers;
  const x = steps ? 'step' : 'operation';
  const charts = [];
  if (nans.length) charts.push(figure({title: "Ranks' operations with a NaN", x, curves: [{name: 'operations', points: nans}]}));
  if (infinities.length) charts.push(figure({title: "Ranks' operations with an infinity", x, curves: [{name: 'operations', points: infinities}]}));
  for (const series of data.series)
    charts.push(figure({title: `${series.scalar ? 'Value' : 'Norm'}: ${series.title}`, x: series.steps ? 'step' : 'operation',
                        curves: [{name: series.scalar ? 'value' : 'norm', points: series.points}]}));
  if (!nans.length) body.append(make('p', {}, 'No recorded operation has a NaN.'));
  if (data.series.length) body.append(make('p', {class: 'small'}, `Values and norms are those that rank ${data.series_rank} has. Results where they are recorded, inputs otherwise.`));
  else body.append(make('p', {class: 'small'}, 'The trace has no digests of floating-point tensors.'));
  body.append(make('div', {class: 'charts'}, ...charts));
}

function showVersions() {
  const body = byId('versions-body');
  const facts = make('tbody');
  for (const [name, value] of data.facts) facts.append(make('tr', {}, make('th', {scope: 'row'}, name), make('td', {}, value)));
  body.append(make('div', {class: 'scroll'}, make('table', {'aria-label': 'Facts about the job'}, facts)));
  const {rows, total} = data.differences;
  body.append(make('h3', {}, 'What differs between ranks'));
  if (!rows.length) body.append(make('p', {}, 'Executable, libraries, versions, processor and variables are the same on all ranks.'));
  else body.append(table([['What'], ['Value'], ['Ranks']], rows.flatMap((row) => row.values.map((one, i) =>
    [i ? '' : row.name, one.value || '(not there)', one.ranks])), 'Differences between ranks'));
  if (total > rows.length) body.append(make('p', {class: 'small'}, `${count(total - rows.length)} more differ.`));
  if (data.packages.length)
    body.append(later(`${counted(data.packages.length, 'Python package')}`, () => table([['Package'], ['Version']], data.packages, 'Python packages', 1000)));
}

function showReplay() {
  const rows = data.replay.map(([command, text]) => make('tr', {}, make('td', {}, make('code', {}, command)), make('td', {}, text)));
  byId('replay-body').append(make('p', {}, 'RUN is the trace that this report was made of. Replay it on a machine with the program.'),
    make('div', {class: 'scroll'}, make('table', {'aria-label': 'Commands'}, make('tbody', {}, ...rows))));
}

byId('subtitle').textContent = data.trace;
document.title = `Deja report: ${data.trace}`;
byId('footer').textContent = `Made by ${data.made_by}. This file loads nothing from anywhere.`;
const shown = startTimeline();
showVerdict(shown);
showWaits();
showSteps();
showNumbers();
showVersions();
showReplay();
