'use strict';
// The picture of the timeline: ranks downwards, time to the right, each operation joined across its ranks.

const kLeft = 64;   // labels of ranks
const kTop = 36;    // time, and below it steps
const kLeastWidth = 4;    // of an operation with bars among others without them
const kMostDrawn = 4000;  // operations in one picture; more are shown as heat

class TimelineView {
  constructor(canvas, timeline, steps, onSelect) {
    this.canvas = canvas;
    this.timeline = timeline;
    this.steps = steps;
    this.onSelect = onSelect;
    this.selected = null;
    this.matches = null;
    this.kinds = [...new Set(timeline.operations.map((one) => timeline.kindOf(one)))];
    this.heatPicture = null;
    this.pending = false;
    this.colourOf = timeline.signatures.map((signature) => this.kinds.indexOf(signature.split(' ', 1)[0]));
    this.measure();
    this.showBusy();
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  showAll() {
    const margin = this.timeline.span * 0.01;
    this.t0 = -margin;
    this.t1 = this.timeline.span + margin;
    this.showAllRanks();
  }
  // All without the long end of a job that hangs or leaves late.
  showBusy() {
    this.showAll();
    const {operations, span} = this.timeline;
    const busy = operations.reduce((most, one) => Math.max(most, one.flags & kOpen ? one.begin : one.end), 0) * 1.25;
    if (busy > 0 && busy < 0.7 * span) [this.t0, this.t1] = [-busy * 0.01, busy];
  }
  showAllRanks() {
    this.r0 = 0;
    this.r1 = this.timeline.ranks.length;
    this.redraw();
  }

  // ---- places

  // Asked for once a picture: the browser may lay out the page for an answer.
  measure() {
    this.width = Math.max(50, this.canvas.clientWidth - kLeft);
    this.height = Math.max(50, this.canvas.clientHeight - kTop);
  }
  x(time) { return kLeft + (time - this.t0) / (this.t1 - this.t0) * this.width; }
  y(row) { return kTop + (row - this.r0) / (this.r1 - this.r0) * this.height; }
  timeAt(x) { return this.t0 + (x - kLeft) / this.width * (this.t1 - this.t0); }
  rowAt(y) { return this.r0 + (y - kTop) / this.height * (this.r1 - this.r0); }

  zoomTime(factor, around = (this.t0 + this.t1) / 2) {
    const span = Math.min(Math.max((this.t1 - this.t0) * factor, 5), this.timeline.span * 1.5);
    const part = (around - this.t0) / (this.t1 - this.t0);
    this.t0 = around - span * part;
    this.t1 = this.t0 + span;
    this.redraw();
  }
  zoomRanks(factor, around = (this.r0 + this.r1) / 2) {
    const all = this.timeline.ranks.length;
    const span = Math.min(Math.max((this.r1 - this.r0) * factor, Math.min(2, all)), all);
    const part = (around - this.r0) / (this.r1 - this.r0);
    this.moveRanksTo(around - span * part, span);
  }
  moveTime(part) {
    const by = (this.t1 - this.t0) * part;
    const least = -(this.t1 - this.t0) * 0.8;
    const most = this.timeline.span + (this.t1 - this.t0) * 0.8;
    if (this.t0 + by < least || this.t1 + by > most) return;
    this.t0 += by;
    this.t1 += by;
    this.redraw();
  }
  moveRanks(part) {
    this.moveRanksTo(this.r0 + (this.r1 - this.r0) * part, this.r1 - this.r0);
  }
  moveRanksTo(first, span) {
    this.r0 = Math.min(Math.max(0, first), this.timeline.ranks.length - span);
    this.r1 = this.r0 + span;
    this.redraw();
  }
  zoomTo(one) {
    const length = Math.max(one.end - one.begin, 20);
    this.t0 = one.begin - length * 0.4;
    this.t1 = one.end + length * 0.4;
    this.redraw();
  }
  // Moves as little as it needs to see the operation.
  reveal(one) {
    if (one.end >= this.t0 && one.begin <= this.t1) return;
    const span = this.t1 - this.t0;
    this.t0 = (one.begin + one.end) / 2 - span / 2;
    this.t1 = this.t0 + span;
  }

  select(one) {
    this.selected = one;
    if (one) this.reveal(one);
    this.redraw();
    this.onSelect(one);
  }

  // Operation and part at a place of the canvas; null: none.
  find(x, y) {
    const row = Math.floor(this.rowAt(y));
    const slack = 3 * (this.t1 - this.t0) / this.width;
    const time = this.timeAt(x);
    if (x < kLeft || y < kTop || row < 0 || row >= this.timeline.ranks.length) return null;
    let found = null;
    this.timeline.each(time - slack, time + slack, (one) => {
      const part = one.parts && one.parts.find((each) => each.rank === row);
      if (one.parts && !(part && part.begin - slack <= time && part.end + slack >= time)) return;
      const size = one.end - one.begin;
      if (!one.parts && !this.isMember(one, row)) return;
      if (!found || size < found.one.end - found.one.begin) found = {one, part: part || null};
    });
    return found;
  }
  isMember(one, row) {
    const comm = this.timeline.comms[one.comm];
    return row >= comm.first && row <= comm.last;
  }

  // ---- the picture

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ['back', 'card', 'text', 'soft', 'line', 'alarm', 'wait', 'pick', 'heat'];
    this.colour = Object.fromEntries(names.map((name) => [name, colour(name)]));
    this.colour.kinds = this.kinds.map((_, i) => colour(`c${i % 8}`));
    if (this.colour.heat !== this.heatColour) this.heatPicture = null;
    this.heatColour = this.colour.heat;
  }

  draw() {
    const began = performance.now();
    const scale = window.devicePixelRatio || 1;
    const {canvas} = this;
    this.measure();
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const to = this.to = canvas.getContext('2d');
    to.setTransform(scale, 0, 0, scale, 0, 0);
    this.colours();
    to.fillStyle = this.colour.back;
    to.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    const drawn = [];
    let all = 0;
    this.timeline.each(this.t0, this.t1, (one) => {
      ++all;
      if (drawn.length < kMostDrawn) drawn.push(one);
    });
    to.save();
    to.beginPath();
    to.rect(kLeft, kTop, this.width, this.height);
    to.clip();
    this.drawSteps();
    const isCrowded = all > kMostDrawn;
    const isPartial = this.timeline.listed < this.timeline.total;
    if (isCrowded || isPartial) this.drawHeat(isCrowded ? 1 : 0.45);
    const shown = isCrowded ? this.troubles() : drawn;
    const isDense = this.height / (this.r1 - this.r0) < 3;
    // Bars beside operations without bars would look like another load; narrow ones tell nothing else.
    const isNarrow = !isCrowded && drawn.length * kLeastWidth > this.width && drawn.some((one) => !one.parts);
    for (const one of shown) if (!one.parts || isNarrow || !isDense) this.drawOperation(one, isNarrow);
    if (isDense) this.drawDense(shown.filter((one) => one.parts), scale, isNarrow);
    if (this.selected) this.drawFrame(this.selected);
    to.restore();
    this.drawAxes();
    this.visible = isCrowded ? null : drawn;
    this.took = performance.now() - began;
  }

  drawSteps() {
    const {to} = this;
    to.fillStyle = this.colour.card;
    this.steps.forEach((step, i) => {
      const end = i + 1 < this.steps.length ? this.steps[i + 1][1] : this.timeline.span;
      if (i % 2 === 0 && end > this.t0 && step[1] < this.t1)
        to.fillRect(this.x(step[1]), kTop, this.x(end) - this.x(step[1]), this.height);
    });
  }

  // All operations, listed or not, as parts of time.
  drawHeat(alpha) {
    const {heat, ranks, span} = this.timeline;
    if (!this.heatPicture) {
      this.heatPicture = document.createElement('canvas');
      this.heatPicture.width = heat.columns;
      this.heatPicture.height = heat.rows;
      const pen = this.heatPicture.getContext('2d');
      const image = pen.createImageData(heat.columns, heat.rows);
      const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
      const inside = rgb(this.colour.heat);
      const waiting = rgb(this.colour.kinds[2] || '#8a5a00');
      heat.cells.forEach((cell, i) => {
        const part = (cell >> 4) / 15;
        const waited = Math.min(part, (cell & 15) / 15);
        const share = part > 0 ? waited / part : 0;
        for (let k = 0; k < 3; ++k) image.data[4 * i + k] = inside[k] * (1 - share) + waiting[k] * share;
        image.data[4 * i + 3] = 255 * (part > 0 ? 0.15 + 0.85 * part : 0);
      });
      pen.putImageData(image, 0, 0);
    }
    const {to} = this;
    to.globalAlpha = alpha;
    to.imageSmoothingEnabled = false;
    to.drawImage(this.heatPicture, this.x(0), this.y(0), this.x(span) - this.x(0), this.y(ranks.length) - this.y(0));
    to.globalAlpha = 1;
  }

  // What must be seen among too many operations to draw.
  troubles() {
    const found = [];
    this.timeline.each(this.t0, this.t1, (one) => {
      if ((one.flags & (kTrouble | kOfFinding)) || (this.matches && this.matches(one))) found.push(one);
    });
    return found;
  }

  drawOperation(one, isOutline) {
    const {to} = this;
    const isDim = this.matches !== null && !this.matches(one);
    const colour = this.colour.kinds[this.colourOf[one.signature]];
    to.globalAlpha = isDim ? 0.15 : 1;
    if (one.parts && !isOutline) this.drawParts(one, colour, isDim);
    else this.drawOutline(one, colour);
    to.globalAlpha = 1;
  }

  drawParts(one, colour, isDim) {
    const {to} = this;
    const height = this.height / (this.r1 - this.r0);
    const bar = height > 4 ? height * 0.72 : height;
    const met = this.x(one.met);
    let before = null;
    for (const part of one.parts) {
      if (part.rank < this.r0 - 1 || part.rank > this.r1) {
        before = null;
        continue;
      }
      const top = this.y(part.rank) + (height - bar) / 2;
      const isBad = part.flags & kPartBad;
      const left = this.x(part.begin);
      const right = Math.max(left + 1, this.x(part.end));
      if (before && height > 4) this.drawJoint(before, {left, right, top}, colour, isDim);
      const middle = one.flags & kTransfer ? left : Math.min(Math.max(met, left), right);
      to.fillStyle = this.colour.wait;
      if (middle - left > 0.3) to.fillRect(left, top, middle - left, bar);
      to.fillStyle = isBad ? this.colour.alarm : colour;
      to.fillRect(middle, top, Math.max(right - middle, 0.8), bar);
      if (isBad && middle > left) to.fillRect(left, top, Math.min(3, middle - left), bar);
      if (part.flags & kPartMisfits) this.drawMisfit(left, right, top + bar, bar);
      if (bar >= 12 && right - left > 60) this.drawLabel(one, part, left, right, top, bar);
      before = {left, right, bottom: top + bar};
    }
  }
  drawMisfit(left, right, bottom, bar) {
    const size = Math.max(2, bar * 0.2);
    this.to.fillStyle = this.colour.alarm;
    this.to.fillRect(left, bottom - size, right - left, size);
  }
  // The bars of these operations where a rank has less than a few pixels; or only those with trouble.
  drawDense(operations, scale, isTroubleOnly) {
    const pixels = new Pixels(this.width * scale, this.height * scale);
    const words = new Map();
    const wordOf = (hex, alpha) => {
      const key = hex + alpha;
      if (!words.has(key)) words.set(key, Pixels.word(hex, alpha));
      return words.get(key);
    };
    const X = (time) => (this.x(time) - kLeft) * scale;
    const Y = (row) => (this.y(row) - kTop) * scale;
    const trouble = [];
    for (const one of operations) {
      const alpha = this.matches !== null && !this.matches(one) ? 0.15 : 1;
      const body = wordOf(this.colour.kinds[this.colourOf[one.signature]], alpha);
      const wait = wordOf(this.colour.wait, alpha);
      const met = X(one.met);
      for (const part of one.parts) {
        const top = Y(part.rank);
        const bottom = Y(part.rank + 1);
        if (bottom < 0 || top > pixels.height) continue;
        const left = X(part.begin);
        const right = X(part.end);
        if (right < 0 || left > pixels.width) continue;
        if (part.flags & (kPartBad | kPartMisfits)) trouble.push([left, right, top, bottom]);
        const middle = one.flags & kTransfer ? left : Math.min(Math.max(met, left), right);
        if (isTroubleOnly) continue;
        if (middle > left) pixels.fill(left, middle, top, bottom, wait);
        pixels.fill(middle, right, top, bottom, body);
      }
    }
    // Last, so that no other rank of the same pixels hides them.
    for (const box of trouble) pixels.fill(...box, wordOf(this.colour.alarm, 1));
    this.to.drawImage(pixels.done(), kLeft, kTop, this.width, this.height);
  }
  drawJoint(above, below, colour, isDim) {
    const {to} = this;
    to.globalAlpha = isDim ? 0.04 : 0.22;
    to.fillStyle = colour;
    to.beginPath();
    to.moveTo(above.left, above.bottom);
    to.lineTo(above.right, above.bottom);
    to.lineTo(below.right, below.top);
    to.lineTo(below.left, below.top);
    to.fill();
    to.globalAlpha = isDim ? 0.15 : 1;
  }
  drawLabel(one, part, left, right, top, bar) {
    const {to} = this;
    const from = Math.max(left, kLeft);
    to.save();
    to.beginPath();
    to.rect(from, top, right - from, bar);
    to.clip();
    to.font = '11px system-ui, "DejaVu Sans", sans-serif';
    to.textBaseline = 'middle';
    const text = `${this.timeline.signatures[part.signature].split(' ', 1)[0]} #${one.number}`;
    to.lineWidth = 3;
    to.strokeStyle = this.colour.back;
    to.strokeText(text, from + 5, top + bar / 2);
    to.fillStyle = this.colour.text;
    to.fillText(text, from + 5, top + bar / 2);
    to.restore();
  }

  // An operation whose bars are not in the report.
  drawOutline(one, colour) {
    const {to} = this;
    const comm = this.timeline.comms[one.comm];
    const top = this.y(comm.first);
    const bottom = this.y(comm.last + 1);
    const left = this.x(one.begin);
    const width = Math.max(1, this.x(one.end) - left);
    const alpha = to.globalAlpha;
    to.globalAlpha = alpha * 0.3;
    to.fillStyle = colour;
    to.fillRect(left, top, width, bottom - top);
    to.globalAlpha = alpha;
    if (one.flags & kTrouble) {
      to.fillStyle = this.colour.alarm;
      to.fillRect(left, top, width, 3);
      to.fillStyle = colour;
    }
    if (width < 6) return;
    to.fillRect(this.x(one.met) - 1, this.y(one.last), 3, Math.max(3, this.y(one.last + 1) - this.y(one.last)));
  }

  drawFrame(one) {
    const {to} = this;
    const rows = one.parts ? one.parts.map((part) => part.rank) : null;
    const comm = this.timeline.comms[one.comm];
    const first = rows ? Math.min(...rows) : comm.first;
    const last = rows ? Math.max(...rows) : comm.last;
    to.strokeStyle = this.colour.pick;
    to.lineWidth = 1.5;
    to.strokeRect(this.x(one.begin) - 2, this.y(first), Math.max(4, this.x(one.end) - this.x(one.begin) + 4),
                  this.y(last + 1) - this.y(first));
    to.lineWidth = 1;
  }

  drawAxes() {
    const {to} = this;
    to.font = '11px system-ui, "DejaVu Sans", sans-serif';
    to.fillStyle = this.colour.soft;
    to.strokeStyle = this.colour.line;
    to.textBaseline = 'middle';
    to.textAlign = 'center';
    const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10((this.t1 - this.t0) / 1e7))));
    for (const time of roundNumbers(this.t0, this.t1, this.width / 110)) {
      const x = this.x(time);
      if (x > kLeft + 20 && x < kLeft + this.width - 20) to.fillText(`${(time / 1e6).toFixed(digits)} s`, x, 9);
      to.beginPath();
      to.moveTo(x, kTop - 4);
      to.lineTo(x, kTop);
      to.stroke();
    }
    this.drawStepLabels();
    to.textAlign = 'right';
    const height = this.height / (this.r1 - this.r0);
    const every = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((step) => step * height >= 14) || 2048;
    for (let row = Math.ceil(this.r0 / every) * every; row < this.r1; row += every) {
      const y = this.y(row) + Math.min(height, 16) / 2;
      if (y < kTop || y > kTop + this.height) continue;
      to.fillText(`${row === 0 || height > 24 ? 'rank ' : ''}${this.timeline.ranks[row]}`, kLeft - 8, height > 16 ? this.y(row) + height / 2 : y);
    }
    to.beginPath();
    to.moveTo(kLeft + 0.5, kTop);
    to.lineTo(kLeft + 0.5, kTop + this.height);
    to.moveTo(kLeft, kTop + 0.5);
    to.lineTo(kLeft + this.width, kTop + 0.5);
    to.stroke();
  }
  drawStepLabels() {
    const {to} = this;
    let end = kLeft;
    for (const [number, time] of this.steps) {
      const x = this.x(time);
      if (x < end || x > kLeft + this.width - 20) continue;
      const text = `step ${number}`;
      const width = to.measureText(text).width;
      if (x + width + 4 > kLeft + this.width) break;
      to.textAlign = 'left';
      to.fillText(text, x + 2, 25);
      end = x + width + 14;
    }
  }
}
