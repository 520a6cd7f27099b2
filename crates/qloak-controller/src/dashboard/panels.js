// Below the picture: each channel with its history, alarms, the audit log; and the wiring of it all.

const plots = new Set();
let library = [], caller = { may_change: false, name: "" };
const anchor = view => `channel-${view.link}-${view.channel}`;

// One minute of a channel: up what node a sends, down what node b sends, in the colour of the suite
// that carried it. A change of suite without loss is a change of colour without a dent.
class Plot {
  constructor(root) {
    this.canvas = make("canvas");
    root.prepend(this.canvas);
    this.root = root;
    this.painted = 0;
    plots.add(this);
  }
  paint(now) {
    // Fifteen pictures a second scroll smoothly enough.
    if (!this.flows || now - this.painted < 66 || !this.root.isConnected) return;
    this.painted = now;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const density = devicePixelRatio || 1;
    if (this.canvas.width !== width * density || this.canvas.height !== height * density) {
      this.canvas.width = width * density; this.canvas.height = height * density;
    }
    const ink = this.canvas.getContext("2d");
    ink.setTransform(density, 0, 0, density, 0, 0);
    ink.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    const middle = height / 2;
    const most = Math.max(1, ...this.flows.flatMap(flow => flow.history.map(bar => bar.bps))) * 1.06;
    // The newest answer is up to a second old; the right edge is where answers arrive.
    const place = at => width - (now - 700 - at) / HISTORY_MS * width;
    this.flows.forEach((flow, end) => {
      for (const bar of flow.history) {
        // On whole pixels, so that neighbours meet without a seam.
        const whole = at => Math.round(Math.min(width, Math.max(0, place(at))) * density) / density;
        const from = whole(bar.from), to = whole(bar.to);
        const tall = bar.bps / most * (middle - 2);
        if (to <= from || tall <= 0) continue;
        ink.fillStyle = style.getPropertyValue(`--${bar.family.slice(2)}`);
        ink.globalAlpha = end === 0 ? .92 : .6;
        ink.fillRect(from, end === 0 ? middle - 1 - tall : middle + 1, to - from, tall);
      }
    });
    ink.globalAlpha = 1;
    ink.fillStyle = style.getPropertyValue("--rule");
    ink.fillRect(0, middle - .5, width, 1);
  }
}

function makeChannel(view) {
  const one = { name: make("span", "name"), how: make("div", "how"), chip: make("span", "chip"), says: make("div", "says"),
    up: make("span", "up"), down: make("span", "down"), facts: make("dl", "facts"), view };
  one.control = make("select");
  one.control.setAttribute("aria-label", `cipher suite of channel ${view.channel}`);
  one.control.addEventListener("change", () => choose(one));
  one.told = make("div", "told");
  one.plotRoot = make("div", "plot", one.up, one.down);
  one.plot = new Plot(one.plotRoot);
  const head = make("div", "", one.name, " ", one.chip);
  one.root = make("section", "channel", make("div", "what", head, one.how, one.control, one.told), one.plotRoot, one.facts, one.says);
  one.root.id = anchor(view);
  return one;
}

function updateChannel(one, view, link, nodes) {
  one.view = view;
  const names = [link.a, link.b];
  const ends = names.map(name => nodes.get(name)?.state?.channels.find(channel => channel.number === view.channel));
  const encoding = ends.map(end => end?.outbound.encoding ?? null);
  const suites = encoding.map(sa => sa?.suite ?? null);
  const wanted = view.intent?.suite ?? ends.find(Boolean)?.suite_intended ?? suites[0];
  const hazmat = suites.some(isHazmat);
  one.root.className = `channel ${colour(wanted)}${hazmat ? " hazmat" : ""}`;
  say(one.name, view.name || `channel ${view.channel}`);
  const [chip, words] = status(view, ends, names.find(name => !nodes.get(name)?.reachable));
  one.chip.className = `chip ${chip}`;
  say(one.chip, words);
  const entry = library.find(suite => suite.name === wanted);
  const carriage = ends.find(Boolean)?.carriage ?? "";
  say(one.how, [`channel ${view.channel}`, carriage, entry ? `ICV ${entry.icv_octets} octets` : ""].filter(Boolean).join(", "));
  one.control.hidden = !caller.may_change;
  one.told.hidden = caller.may_change;
  say(one.told, hazmat ? `HAZMAT ${wanted}` : wanted ?? "no suite");
  fillChoice(one, view, wanted);

  const streams = names.map(name => flow(name, view.channel));
  one.plot.flows = streams;
  [one.up, one.down].forEach((label, end) => label.replaceChildren(`from ${names[end]} `, ...streams[end].bps === null ? ["not known"] :
    [make("b", "", rateText(streams[end].bps)), ` ${count(Math.round(streams[end].fps))} frames/s`]));
  const rows = [];
  names.forEach((name, end) => {
    const sa = encoding[end];
    const share = sa ? used(sa, ends[end].outbound.counters, ends[end].limits) : 0;
    const bar = make("u"); bar.style.width = `${Math.round(share * 100)}%`;
    rows.push([`key of ${name}`, sa ? [make("span", "mono", sa.key_id.slice(0, 8)), ` AN ${sa.an}, ${span(sa.age_s)}`, make("span", `age ${colour(sa.suite)}`, bar)] : "none", !sa]);
  });
  const sum = pick => ends.reduce((total, end) => total + (end ? pick(end) : 0), 0);
  rows.push(["frames protected", count(sum(end => end.outbound.counters.client_frames))]);
  rows.push(["rekeys", count(sum(end => end.rekeys))]);
  const lost = ends.map((end, place) => end && discards(end.inbound.counters) && `${names[place]}: ${discards(end.inbound.counters)}`).filter(Boolean).join("; ");
  rows.push(["discarded", lost || "none", Boolean(lost)]);
  if (view.converged_after_ms !== null) rows.push(["last change took", view.converged_after_ms < 10000 ? `${Math.round(view.converged_after_ms)} ms` : span(view.converged_after_ms / 1000)]);
  one.facts.replaceChildren(...rows.flatMap(([term, value, bad]) => [make("dt", "", term), make("dd", bad ? "bad" : "", ...[value].flat())]));
  say(one.says, one.answer ?? view.trouble ?? "");
  one.says.hidden = !one.says.textContent;
}

function status(view, ends, silent) {
  if (silent) return ["warn", `${silent} is silent`];
  if (ends.some(end => end?.status === "closed")) return ["bad", "closed: nothing leaves"];
  if (ends.some(end => !end)) return ["warn", "seen at one end"];
  if (ends.some(end => end.status === "starting")) return ["warn", "waiting for a key"];
  if (view.intent && !view.converged) return ["warn", "changing"];
  return ["good", "open"];
}

function fillChoice(one, view, wanted) {
  const offered = library.filter(suite => suite.links.includes(view.link));
  const shape = offered.map(suite => suite.name + suite.seal_gbps).join() + wanted;
  if (one.shape === shape || document.activeElement === one.control && one.shape) return;
  one.shape = shape;
  const option = suite => new Option(suite.seal_gbps > 0 ? `${suite.name} · ${suite.seal_gbps.toFixed(1)} Gb/s` : suite.name, suite.name, false, suite.name === wanted);
  const groups = [["authenticated", offered.filter(suite => !suite.hazmat)], ["HAZMAT: frames can be forged", offered.filter(suite => suite.hazmat)]];
  one.control.replaceChildren(...groups.filter(([, suites]) => suites.length).map(([label, suites]) => {
    const group = make("optgroup", "", ...suites.map(option));
    group.label = label;
    return group;
  }));
  if (wanted && !offered.some(suite => suite.name === wanted)) one.control.prepend(new Option(wanted, wanted, true, true));
}

async function choose(one) {
  const suite = one.control.value, view = one.view;
  one.control.blur();
  one.shape = null;
  if (isHazmat(suite) && !confirm(`${suite} does not authenticate: anyone on the line can change frames unseen. Set it all the same?`)) return;
  const limits = view.intent?.limits ?? view.observed[0]?.limits;
  const path = `/v1/links/${encodeURIComponent(view.link)}/channels/${view.channel}/intent`;
  try {
    const reply = await fetch(path, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ suite, limits }) });
    one.answer = reply.ok ? null : (await reply.json()).detail;
  } catch { one.answer = "The controller did not answer; whether the change stands is not known."; }
  if (one.answer) setTimeout(() => { one.answer = null; }, 20000);
  refreshLog();
}

function makeLink() {
  const figure = label => { const b = make("b"); const word = make("span", "", label); return { root: make("div", "figure", b, word), b, word }; };
  const one = { name: make("div", "name"), up: figure(""), down: figure(""), frames: figure("client frames carried"), bad: figure("frames discarded on arrival"), picture: new Picture(), channels: make("div", "channels") };
  one.root = make("article", "link", make("div", "title", one.name, one.up.root, one.down.root, one.frames.root, one.bad.root), one.picture.root, one.channels);
  return one;
}

function updateLink(one, link, overview, nodes) {
  const views = overview.channels.filter(view => view.link === link.name);
  say(one.name, link.name);
  const names = [link.a, link.b];
  [one.up, one.down].forEach((figure, end) => {
    const sums = views.map(view => flow(names[end], view.channel).bps).filter(bps => bps !== null);
    const [number, unit] = rateWords(sums.length ? sums.reduce((sum, bps) => sum + bps, 0) : null);
    figure.b.replaceChildren(number, make("small", "", unit));
    say(figure.word, `${names[end]} to ${names[1 - end]}`);
  });
  const channels = names.flatMap(name => nodes.get(name)?.state?.channels ?? []);
  say(one.frames.b, count(channels.reduce((sum, channel) => sum + channel.outbound.counters.client_frames, 0)));
  const bad = channels.reduce((sum, { inbound: { counters: c } }) => sum + c.late + c.replayed + c.not_valid + c.no_sa + c.mux_errors, 0);
  say(one.bad.b, count(bad));
  one.bad.root.classList.toggle("bad", bad > 0);
  one.picture.update(link, nodes.get(link.a), nodes.get(link.b), overview.kms, views);
  keep(one.channels, views, anchor, makeChannel, (channel, view) => updateChannel(channel, view, link, nodes));
}

function alarms(overview) {
  const list = [];
  for (const node of overview.nodes) {
    if (!node.reachable) list.push({ text: node.error ?? "does not answer", from: node.record.name });
    for (const port of node.state ? [node.state.line, ...node.state.clients.map(client => client.port)] : []) {
      if (port.impairments) list.push({ text: `port ${port.name} harms frames on purpose`, from: node.record.name, loud: true });
    }
    for (const alarm of node.state?.alarms ?? []) {
      const where = alarm.channel ? `, channel ${alarm.channel}` : "";
      list.push({ text: alarm.text, from: `${node.record.name}${where}, since ${span(alarm.age_s)}`, loud: alarm.kind === "hazmat" });
    }
  }
  for (const kms of overview.kms) {
    if (!kms.reachable) list.push({ text: kms.error ?? "does not answer", from: kms.record.kme_id });
    for (const text of kms.state?.alarms ?? []) list.push({ text, from: kms.record.kme_id });
  }
  for (const view of overview.channels) if (view.trouble) list.push({ text: view.trouble, from: `link ${view.link}, channel ${view.channel}` });
  return list;
}

function show(overview) {
  feed(overview);
  const nodes = new Map(overview.nodes.map(node => [node.record.name, node]));
  byId("nothing").hidden = overview.links.length > 0;
  keep(byId("links"), overview.links, link => link.name, makeLink, (one, link) => updateLink(one, link, overview, nodes));

  const list = alarms(overview);
  const health = byId("health");
  health.className = list.length ? "health bad" : "health good";
  say(health, list.length ? `${list.length} ${list.length === 1 ? "alarm" : "alarms"}` : "all is well");
  const items = list.length ? list.map(alarm => make("li", alarm.loud ? "loud" : "", alarm.text, make("small", "", alarm.from))) : [make("li", "calm", "Nothing. Both ends are as they should be.")];
  byId("alarms").replaceChildren(...items);

  const exposed = overview.nodes.flatMap(node => (node.state?.channels ?? []).filter(channel => isHazmat(channel.outbound.encoding?.suite))
    .map(channel => `${node.record.name} sends channel ${channel.number} under ${channel.outbound.encoding.suite}`));
  const banner = byId("hazmat");
  banner.hidden = exposed.length === 0;
  if (exposed.length) banner.replaceChildren(make("span", "", `HAZMAT. Frames are not authenticated: ${exposed.join("; ")}.`));
}

async function refreshLibrary() {
  try {
    library = await (await fetch("/v1/suites")).json();
    learnHazmat(library);
  } catch { /* The stream says it when the controller is away. */ }
}

async function refreshLog() {
  try {
    const lines = await (await fetch("/v1/audit?limit=7")).json();
    byId("log").replaceChildren(...lines.reverse().map(line => {
      const when = new Date(line.time).toLocaleTimeString([], { hour12: false });
      return make("li", "", make("span", /^refused|could not|not known/.test(line.outcome) ? "no" : "", line.outcome), make("small", "", `${line.number}. ${when} ${line.caller}: ${line.action}`));
    }));
  } catch { /* As above. */ }
}

async function start() {
  try { caller = await (await fetch("/v1/caller")).json(); } catch { /* Then it reads only. */ }
  say(byId("caller"), caller.may_change ? `${caller.name}, operator` : `${caller.name ? `${caller.name}, ` : ""}reading only`);
  await Promise.all([refreshLibrary(), refreshLog()]);
  setInterval(refreshLibrary, 15000);
  setInterval(refreshLog, 5000);
  const stream = new EventSource("/v1/events");
  stream.addEventListener("overview", event => show(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    byId("health").className = "health bad";
    say(byId("health"), "the controller does not answer; this picture is old");
  });
}

requestAnimationFrame(move);
start();
