// The picture of a link: two nodes, a strand for each channel with a lane each way, and below them the
// quantum link. A lane has the colour of the suite that its sender encodes with now, so a change of
// suite is seen to arrive, first in one direction, then in the other.

const still = matchMedia("(prefers-reduced-motion: reduce)");
const narrow = matchMedia("(max-width: 900px)");
const STRANDS_MAX = 8;
const moving = new Set();

class Picture {
  constructor() {
    this.a = new NodeBox();
    this.b = new NodeBox();
    this.svg = draw("svg", { "aria-hidden": "true" });
    this.pills = make("div");
    this.line = make("div", "line", this.svg, this.pills);
    this.root = make("div", "picture", this.a.root, this.line, this.b.root);
    this.strands = [];
    this.shape = "";
    new ResizeObserver(() => this.refresh()).observe(this.line);
  }

  update(link, a, b, kms, views) {
    this.a.update(link.a, a, kms);
    this.b.update(link.b, b, kms);
    this.ends = [[link.a, a], [link.b, b]];
    this.shown = views.slice(0, STRANDS_MAX);
    this.more = views.length - this.shown.length;
    this.quantum = quantumLink(link, kms);
    this.refresh();
  }

  refresh() {
    if (!this.shown) return;
    this.lay();
    this.shown.forEach((view, place) => this.paint(this.strands[place], view));
    this.paintQuantum();
  }

  // Draws anew only when the number of strands or the size has changed.
  lay() {
    const count = this.shown.length;
    // Below the strands: how many are not drawn, and the quantum link.
    const upright = narrow.matches;
    this.foot = (this.quantum && !upright ? 56 : 16) + (this.more > 0 ? 30 : 0);
    const along = upright ? 46 * count + 84 : 0;
    this.line.style.minHeight = `${upright ? along + this.foot - 16 : Math.max(210, 58 * count + this.foot + 8)}px`;
    const { width, height } = this.line.getBoundingClientRect();
    const shape = `${count} ${this.more} ${upright} ${Math.round(width)} ${Math.round(height)} ${Boolean(this.quantum)}`;
    if (shape === this.shape || width === 0) return;
    this.shape = shape;
    for (const strand of this.strands) strand.lanes.forEach(lane => moving.delete(lane));
    this.svg.replaceChildren();
    this.pills.replaceChildren();
    this.strands = this.shown.map((_, place) => this.strand(place, count, width, height, upright));
    this.layQuantum(width, height, upright);
    if (this.more > 0) {
      const more = make("span", "pill bare", `and ${this.more} more below`);
      more.style.left = "50%"; more.style.top = `${height - this.foot + 22}px`;
      this.pills.append(more);
    }
  }

  strand(place, count, width, height, upright) {
    const room = upright ? width * .8 : height - this.foot;
    const offset = upright ? width * .1 : 0;
    const gap = upright ? room / count : Math.min(58, room / count);
    const at = offset + room / 2 + (place - (count - 1) / 2) * gap;
    const path = side => {
      const to = at + side * 4.5, mid = offset + room / 2 + side * 4.5;
      if (upright) return `M${mid} -2 C${mid} 34 ${to} 8 ${to} 42 L${to} ${height - 42} C${to} ${height - 8} ${mid} ${height - 34} ${mid} ${height + 2}`;
      const bend = Math.min(110, width / 5);
      return `M-2 ${mid} C${bend * .7} ${mid} ${bend * .3} ${to} ${bend} ${to} L${width - bend} ${to} C${width - bend * .3} ${to} ${width - bend * .7} ${mid} ${width + 2} ${mid}`;
    };
    this.svg.append(draw("path", { class: "sheath", d: path(0) }));
    const lanes = [-1, 1].map((side, end) => {
      const under = draw("path", { class: "under", d: path(side) });
      const lane = draw("path", { class: "lane", d: path(side) });
      this.svg.append(under, lane);
      const moved = { lane, under, forward: end === 0, speed: 0, at: 0 };
      moving.add(moved);
      return moved;
    });
    const suite = make("span", "suite"), of = make("span", "of"), rate = make("span", "rate");
    const pill = make("a", "pill", of, suite, rate);
    pill.style.left = upright ? "50%" : `${width / 2}px`;
    pill.style.top = upright ? `${62 + place * 46}px` : `${at}px`;
    this.pills.append(pill);
    return { lanes, pill, suite, of, rate };
  }

  paint(strand, view) {
    if (!strand) return;
    const suites = this.ends.map(([name, node], end) => {
      const channel = node?.state?.channels.find(channel => channel.number === view.channel);
      const suite = channel?.outbound.encoding?.suite ?? null;
      const stream = flow(name, view.channel);
      const lane = strand.lanes[end];
      const family = colour(suite);
      const shut = channel?.status === "closed" || !node?.reachable;
      const idle = !(stream.bps > 0);
      lane.lane.setAttribute("class", `lane ${family}${idle ? " idle" : ""}${shut ? " shut" : ""}`);
      lane.under.setAttribute("class", `under ${family}`);
      lane.lane.setAttribute("stroke-dasharray", family === "c-hazmat" ? "9 9" : channel?.carriage === "aggregated" ? "30 6" : "11 7");
      lane.speed = idle || shut ? 0 : 26 + 34 * Math.log10(1 + stream.bps / 1e5);
      return suite;
    });
    const bps = this.ends.reduce((sum, [name]) => sum + (flow(name, view.channel).bps ?? 0), 0);
    const same = suites[0] === suites[1];
    const wanted = view.intent && view.intent.suite !== suites[0] ? view.intent.suite : suites[1];
    strand.pill.className = `pill ${colour(suites.find(isHazmat) ?? suites[0])}`;
    strand.pill.href = `#${anchor(view)}`;
    say(strand.of, view.name || `channel ${view.channel}`);
    const text = suites[0] && same && wanted === suites[0] ? suites[0] : [...new Set([suites[0] ?? "no SA", wanted ?? "no SA"])].join(" → ");
    say(strand.suite, isHazmat(suites[0]) || isHazmat(suites[1]) ? `HAZMAT ${text}` : text);
    const shut = view.observed.some(end => end.status === "closed");
    say(strand.rate, shut ? "closed" : rateText(bps));
  }

  layQuantum(width, height, upright) {
    this.photon = this.quantumPill = null;
    if (!this.quantum || upright) return;
    const y = height - 20;
    const line = draw("path", { class: "photon", d: `M0 ${y} L${width} ${y}` });
    this.svg.append(line);
    moving.delete(this.photons);
    this.photons = { lane: line, forward: true, speed: 40, at: 0 };
    moving.add(this.photons);
    this.photon = line;
    this.quantumPill = make("span", "pill bare");
    this.quantumPill.style.left = `${width / 2}px`; this.quantumPill.style.top = `${y}px`;
    this.pills.append(this.quantumPill);
  }

  paintQuantum() {
    if (!this.quantumPill || !this.quantum) return;
    const { up, skr_bps: skr, qber_ratio: qber, emulated } = this.quantum;
    this.photon.setAttribute("class", up ? "photon" : "photon down");
    this.photons.speed = up ? 40 : 0;
    const words = up ? `secret key rate ${rateText(skr)}, QBER ${(qber * 100).toFixed(1)} %` : "no key material arrives";
    say(this.quantumPill, emulated ? `emulated QKD link: ${words}` : `QKD link: ${words}`);
  }
}

class NodeBox {
  constructor() {
    this.name = make("div", "name");
    this.state = make("div", "state");
    this.out = make("u"); this.in = make("u");
    this.words = make("div");
    this.ram = make("div", "ram", make("div", "bar", make("i", "", this.out), make("i", "", this.in)), this.words);
    this.kme = make("div", "kme");
    this.root = make("div", "node", this.name, this.state, this.ram, this.kme);
  }

  update(name, node, kms) {
    say(this.name, name);
    const lost = !node?.reachable;
    this.root.classList.toggle("lost", lost);
    this.root.title = node?.error ?? "";
    const state = node?.state;
    say(this.state, lost ? "does not answer" : `up ${span(state.uptime_s)}, version ${state.version}`);
    if (!state) return;
    const handler = state.key_handler;
    const half = Math.max(1, handler.ram_slots / 2);
    this.out.style.width = `${Math.min(100, handler.outbound_keys / half * 100)}%`;
    this.in.style.width = `${Math.min(100, handler.inbound_keys / half * 100)}%`;
    this.ram.classList.toggle("low", handler.outbound_keys === 0);
    say(this.words, `${handler.outbound_keys} + ${handler.inbound_keys} keys waiting in ${handler.ram_slots} slots`);
    const own = kms.find(one => one.state?.saes.includes(name));
    const stored = own?.state.links.reduce((sum, link) => sum + link.stored_key_count, 0);
    const head = own ? `${own.record.kme_id} ` : "KME ";
    const text = !handler.kme_reachable ? "does not answer the node" : own ? `holds ${count(stored)} keys` : "answers";
    this.kme.replaceChildren(make("b", "", head), text);
    if (own?.state.links.some(link => link.emulated)) this.kme.append(make("div", "emulated", "emulated keys"));
  }
}

function quantumLink(link, kms) {
  const serving = kms.filter(one => one.state?.saes.some(sae => sae === link.a || sae === link.b));
  return serving.flatMap(one => one.state.links)[0] ?? null;
}

let before = performance.now();
function move(now) {
  const seconds = Math.min(.1, (now - before) / 1000);
  before = now;
  if (!still.matches) for (const one of moving) {
    if (!one.speed) continue;
    one.at = (one.at + one.speed * seconds) % 3600;
    one.lane.setAttribute("stroke-dashoffset", (one.forward ? -one.at : one.at).toFixed(1));
  }
  for (const plot of plots) plot.paint(now);
  requestAnimationFrame(move);
}
