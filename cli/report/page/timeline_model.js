'use strict';
// The operations of the report, unpacked, and questions about them. Times are microseconds.

// cli/report/timeline_data.cc has the same numbers.
const kTransfer = 1, kDisagrees = 2, kOpen = 4, kFailed = 8, kNan = 16, kHasParts = 32, kOfFinding = 64;
const kPartOpen = 1, kPartFailed = 2, kPartNan = 4, kPartDiffers = 8, kPartMisfits = 16;
const kPartBad = kPartOpen | kPartFailed | kPartNan;
const kTrouble = kDisagrees | kOpen | kFailed | kNan;

class Timeline {
  constructor(source) {
    this.ranks = source.ranks;
    this.comms = source.comms;
    this.signatures = source.signatures;
    this.sites = source.sites;
    this.span = Math.max(1, source.span);
    this.total = source.total;
    this.listed = source.listed;
    this.detailed = source.detailed;
    this.operations = [];
    this.heat = {rows: source.heat.rows, columns: source.heat.columns, cells: bytesOf(source.heat.cells)};
    this.unpack(new Packed(source.operations));
  }

  unpack(packed) {
    let before = 0;
    let latest = 0;
    // No operation at or before an index ends later than this.
    this.latest = new Float64Array(this.listed);
    for (let i = 0; i < this.listed; ++i) {
      const one = {index: i, flags: packed.next(), comm: packed.next(), number: packed.next(), signature: packed.next(),
                   site: packed.next(), step: packed.next() - 1, seq: packed.next()};
      one.begin = before += packed.signed();
      one.met = one.begin + packed.next();
      one.end = one.begin + packed.next();
      one.last = packed.next();
      one.count = packed.next();
      one.parts = one.flags & kHasParts ? this.unpackParts(packed, one) : null;
      this.operations.push(one);
      latest = Math.max(latest, one.end);
      this.latest[i] = latest;
    }
  }

  unpackParts(packed, one) {
    const parts = [];
    let next = 0;
    for (let i = 0; i < one.count; ++i) {
      const flags = packed.next();
      const rank = next + packed.signed();
      next = rank + 1;
      const begin = one.begin + packed.next();
      const end = begin + packed.next();
      const differs = flags & kPartDiffers;
      parts.push({flags, rank, begin, end, signature: differs ? packed.next() : one.signature,
                  site: differs ? packed.next() : one.site});
    }
    return parts;
  }

  // Calls `act` for the operations that are not wholly outside of [from, to].
  each(from, to, act) {
    let low = 0;
    let high = this.listed;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.latest[middle] < from) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < this.listed && this.operations[i].begin <= to; ++i)
      if (this.operations[i].end >= from) act(this.operations[i]);
  }

  kindOf(one) {
    return this.signatures[one.signature].split(' ', 1)[0];
  }

  commName(one) {
    const comm = this.comms[one.comm];
    return comm.given ? `${comm.name} (${comm.given})` : comm.name;
  }

  title(one) {
    return `${this.signatures[one.signature]} #${one.number}`;
  }

  place(one) {
    return this.sites[one.site];
  }

  // A function of operations: does one have all words of the query?
  matcher(query) {
    const words = query.toLowerCase();
    const step = /\bstep (\d+)\b/.exec(words);
    const rank = /\brank (\d+)\b/.exec(words);
    const number = /#(\d+)/.exec(words);
    const rest = words.replace(/\bstep \d+\b|\brank \d+\b|#\d+/g, ' ').split(/\s+/).filter(Boolean);
    const row = rank ? this.ranks.indexOf(+rank[1]) : -1;
    const known = new Map();
    const hasWords = (one) => {
      const key = `${one.signature} ${one.site} ${one.comm}`;
      if (!known.has(key)) {
        const text = `${this.signatures[one.signature]} ${this.place(one)} ${this.commName(one)}`.toLowerCase();
        known.set(key, rest.every((word) => text.includes(word)));
      }
      return known.get(key);
    };
    return (one) => (!step || one.step === +step[1]) && (!number || one.number === +number[1]) &&
        (!rank || one.last === row || (one.parts !== null && one.parts.some((part) => part.rank === row))) && hasWords(one);
  }
}
