// What the page knows: the overview as it comes, rates from differences of counters, words for numbers.

const HISTORY_MS = 60000;
const byId = id => document.getElementById(id);

// Elements are made, never parsed: no text from a node can become markup.
function make(tag, names = "", ...children) {
  const element = document.createElement(tag);
  if (names) element.className = names;
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Keeps one child per item, made once and updated in place, so that an open select stays open.
function keep(parent, items, keyOf, makeOne, update) {
  parent.kept ??= new Map();
  const keys = new Set(items.map(keyOf));
  for (const [key, one] of parent.kept) if (!keys.has(key)) { one.root.remove(); parent.kept.delete(key); }
  for (const item of items) {
    const key = keyOf(item);
    if (!parent.kept.has(key)) {
      const one = makeOne(item);
      parent.kept.set(key, one);
      parent.append(one.root);
    }
    update(parent.kept.get(key), item);
  }
}

// The colour of a suite is that of its cipher.
function colour(suite, hazmat) {
  if (!suite) return "c-none";
  if (hazmat || hazmatNames.has(suite)) return "c-hazmat";
  for (const family of ["aes", "camellia", "serpent", "chacha"]) if (suite.startsWith(family)) return `c-${family}`;
  return "c-hazmat";
}

// A name alone tells hazmat only for these; the library tells it for all (learnHazmat).
const hazmatNames = new Set(["xor", "plain"]);
function learnHazmat(library) {
  for (const suite of library) if (suite.hazmat) hazmatNames.add(suite.name);
}
const isHazmat = suite => Boolean(suite) && colour(suite) === "c-hazmat";

function rateWords(bps) {
  if (bps === null || bps === undefined) return ["–", "Gb/s"];
  if (bps >= 99.5e6) return [(bps / 1e9).toFixed(bps >= 9.995e9 ? 1 : 2), "Gb/s"];
  if (bps >= 99.5e3) return [(bps / 1e6).toFixed(bps >= 9.995e6 ? 1 : 2), "Mb/s"];
  return [(bps / 1e3).toFixed(1), "kb/s"];
}
const rateText = bps => rateWords(bps).join(" ");
const grouped = new Intl.NumberFormat("en", { useGrouping: true });
function count(number) {
  if (number < 1e6) return grouped.format(number).replaceAll(",", "\u202f");
  const [size, name] = number < 1e9 ? [1e6, "M"] : number < 1e12 ? [1e9, "G"] : [1e12, "T"];
  return `${(number / size).toFixed(2)} ${name}`;
}
function span(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

// One direction of a channel: what leaves one node. Rates come from two answers of that node.
class Flow {
  constructor() { this.last = null; this.bps = null; this.fps = null; this.history = []; }
  // What a silent node sends is not known; an old rate would pass for a new one.
  forget() { this.last = this.bps = this.fps = null; }
  feed(at, channel) {
    const counters = channel.outbound.counters;
    const now = { at, octets: counters.client_octets, frames: counters.client_frames };
    const seconds = this.last ? (at - this.last.at) / 1000 : 0;
    // A second at least: a node counts in steps, and shorter spans would show the steps.
    if (this.last && seconds < 0.9) return;
    if (this.last && now.octets >= this.last.octets && seconds < 30) {
      this.bps = (now.octets - this.last.octets) * 8 / seconds;
      this.fps = (now.frames - this.last.frames) / seconds;
      const suite = channel.outbound.encoding?.suite ?? null;
      this.history.push({ from: this.last.at, to: at, bps: this.bps, family: colour(suite) });
      while (this.history.length && this.history[0].to < at - HISTORY_MS) this.history.shift();
    }
    this.last = now;
  }
}

const flows = new Map();
function flow(node, channel) {
  const key = `${node}\n${channel}`;
  if (!flows.has(key)) flows.set(key, new Flow());
  return flows.get(key);
}

function feed(overview) {
  const now = performance.now();
  for (const node of overview.nodes) {
    for (const channel of node.state?.channels ?? []) {
      const stream = flow(node.record.name, channel.number);
      // The same answer shown twice has the same moment on our clock, give or take the way here.
      if (node.reachable) stream.feed(now - node.age_ms, channel);
      else stream.forget();
    }
  }
}

// The worst that inbound counters tell, in words; empty when nothing was discarded.
function discards(inbound) {
  const words = [["not_valid", "not valid"], ["replayed", "replayed"], ["late", "late"], ["no_sa", "no SA"],
    ["mux_errors", "mux errors"], ["fragments_lost", "fragments lost"]];
  return words.filter(([name]) => inbound[name] > 0).map(([name, word]) => `${count(inbound[name])} ${word}`).join(", ");
}

// The share of the limit that an SA has used up: the limit reached first counts.
function used(sa, counters, limits) {
  if (!sa) return 0;
  return Math.min(1, Math.max(sa.age_s / limits.seconds, sa.pn / limits.frames));
}
