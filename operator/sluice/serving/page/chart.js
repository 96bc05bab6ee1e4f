// Draws the results of a query: lines over time, or bars of the latest values.

/* global uPlot */

import { count, make, of, put } from "./common.js";

const MOST = 12; // series at once
const MEMORY = 500; // series whose colours are known
const COLOURS = 6; // of query.css; the second half of the series has dashes
const FAR = 20; // a time is left out if it is so many times the usual spread away from the others
const STAY = 10; // seconds for which the choice of series stays, so that lines do not come and go
const MINUTE = 60_000;
const DAY = 86_400_000;

const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 });

/** Write a number shortly, or a dash for none. */
export function written(value) {
  if (typeof value !== "number") return "\u2013";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(3);
  return numbers.format(size >= 1000 || Number.isInteger(value) ? value : Number(value.toPrecision(6)));
}

/** Write a time in milliseconds as this person's clock and calendar, to seconds. */
export function moment(time) {
  const two = (number) => String(number).padStart(2, "0");
  const date = new Date(time);
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * Group entries to series. A later row of the same time and key replaces the value.
 *
 * @param entries with `key`, `label`, `time` in milliseconds and `row`
 * @param valueOf gives the number of a row, or null
 */
export function group(entries, valueOf) {
  const found = new Map();
  for (const { key, label, time, row } of entries) {
    if (time === null) continue;
    let series = found.get(key);
    if (!series) found.set(key, (series = { key, label, points: new Map(), time: -Infinity, value: null }));
    const value = valueOf(row);
    series.points.set(time, value);
    if (time >= series.time && value !== null) Object.assign(series, { time, value });
  }
  return [...found.values()];
}

/** Split entries: those to draw, and how many have a time so far from the others that it would hide them. */
export function withoutStrays(entries) {
  const times = Float64Array.from(entries.filter(({ time }) => time !== null), ({ time }) => time).sort();
  const at = (part) => times[Math.floor((times.length - 1) * part)];
  const room = FAR * Math.max(at(0.75) - at(0.25), MINUTE);
  const [first, last] = [at(0.25) - room, at(0.75) + room];
  const near = entries.filter(({ time }) => time >= first && time <= last && time !== null);
  return { near, strays: times.length - near.length };
}

/** Chooses the series to show, and keeps their colours. */
export class Choice {
  #slots = new Map(); // colours of the chosen series, by their keys
  #once = new Map(); // colours that series had before
  #asked = null;
  #until = 0;

  /** Choose by a filter. `asked` is what the person has chosen: with another one, the choice is made anew. */
  take(series, filter, asked) {
    const fits = series.filter(({ label }) => label.toLowerCase().includes(filter));
    const there = new Map(fits.map((one) => [one.key, one]));
    const kept = [...this.#slots.keys()].every((key) => there.has(key));
    const full = this.#slots.size === Math.min(MOST, fits.length);
    if (asked !== this.#asked || !kept || !full || Date.now() > this.#until) {
      this.#asked = asked;
      this.#until = Date.now() + STAY * 1000;
      this.#fill(best(fits));
    }
    const chosen = [...this.#slots].map(([key, slot]) => ({ ...there.get(key), slot }));
    chosen.sort((a, b) => a.label.localeCompare(b.label, undefined, { numeric: true }));
    return { chosen, fitting: fits.length };
  }

  #fill(series) {
    const free = new Set(Array.from({ length: MOST }, (_, slot) => slot));
    this.#slots = new Map(series.map(({ key }) => [key, undefined]));
    for (const key of this.#slots.keys()) {
      const slot = this.#once.get(key);
      if (free.delete(slot)) this.#slots.set(key, slot);
    }
    const [...rest] = free;
    if (this.#once.size > MEMORY) this.#once.clear();
    for (const [key, slot] of this.#slots) {
      this.#slots.set(key, slot ?? rest.shift());
      this.#once.set(key, this.#slots.get(key));
    }
  }
}

/** Give the series that go on, and of these the largest ones. */
function best(series) {
  let first = Infinity;
  let last = -Infinity;
  for (const { time } of series) {
    if (time === -Infinity) continue;
    first = Math.min(first, time);
    last = Math.max(last, time);
  }
  const recent = last - (last - first) / 5;
  const rank = ({ time }) => (time >= recent ? 1 : 0);
  const value = (one) => one.value ?? -Infinity;
  return series.sort((a, b) => rank(b) - rank(a) || value(b) - value(a) || 0).slice(0, MOST);
}

/** A chart with lines, and its legend. */
export class Lines {
  #plot = null;
  #drawn = ""; // what the plot was made for
  #hidden = new Set(); // keys of series that the person has hidden
  #chosen = [];
  #note = ""; // for the caption

  constructor(box, legend, caption) {
    Object.assign(this, { box, legend, caption });
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    box.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Whether the library is there. */
  get works() {
    return typeof uPlot !== "undefined";
  }

  /** Draw series whose points have a time. */
  show(chosen, note = this.#note) {
    this.#chosen = chosen;
    this.#note = note;
    const times = [...new Set(chosen.flatMap(({ points }) => [...points.keys()]))].sort((a, b) => a - b);
    const data = [times, ...chosen.map(({ points }) => times.map((time) => points.get(time)))];
    const drawn = JSON.stringify(chosen.map(({ key, slot }) => [key, slot]));
    if (drawn === this.#drawn) this.#plot.setData(data);
    else this.#make(data, drawn);
    this.#showLegend();
  }

  /** Draw anew, with other colours. */
  redraw() {
    this.#drawn = "";
    if (this.#plot) this.show(this.#chosen);
  }

  clear() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#drawn = "";
    this.legend.replaceChildren();
  }

  #size() {
    return { width: this.box.clientWidth, height: this.box.clientWidth < 600 ? 240 : 340 };
  }

  #make(data, drawn) {
    this.#plot?.destroy();
    this.#drawn = drawn;
    const style = getComputedStyle(this.box);
    const colours = Array.from({ length: COLOURS }, (_, place) => colour(this.box, `--series-${place}`));
    const grid = { stroke: colour(this.box, "--line"), width: 1 };
    const axis = { stroke: colour(this.box, "--faint"), font: `12px ${style.fontFamily}`, grid, ticks: grid };
    const options = {
      ...this.#size(),
      ms: 1,
      legend: { show: false },
      padding: [12, 30, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, hover: { prox: near }, points: { size: 8 } },
      scales: { x: { range: (_, first, last) => spread(first, last) } },
      axes: [
        { ...axis, values: clock, space: 80, size: 36 },
        { ...axis, values: (_, splits) => splits.map(written), size: room },
      ],
      series: [
        {},
        ...this.#chosen.map(({ key, label, slot }) => ({
          label,
          stroke: colours[slot % COLOURS],
          width: 2,
          dash: slot < COLOURS ? [] : [6, 4],
          spanGaps: true,
          points: { size: 5, fill: colours[slot % COLOURS] },
          show: !this.#hidden.has(key),
        })),
      ],
      hooks: { setCursor: [() => this.#showLegend()] },
    };
    this.#plot = new uPlot(options, data, this.box);
  }

  /** Show the series' names, with the values at the cursor, or else the last ones. */
  #showLegend() {
    const plot = this.#plot;
    if (!plot) return; // it tells of its cursor while it is made
    const { idx, idxs } = plot.cursor;
    const times = plot.data[0];
    const span = times.length ? `${moment(times[0])} to ${moment(times.at(-1))}` : "";
    put(this.caption, (idx === null ? span : `At ${moment(times[idx])}`) + this.#note);
    count(this.legend, this.#chosen.length, () => this.#item()).forEach((item, place) => {
      const { key, label, slot, value } = this.#chosen[place];
      const button = of("button", item);
      button.dataset.key = key;
      button.title = label;
      button.setAttribute("aria-pressed", String(!this.#hidden.has(key)));
      of(".swatch", item).className = `swatch series-${slot % COLOURS}${slot < COLOURS ? "" : " dashed"}`;
      put(of(".label", item), label);
      const shown = idx === null ? value : plot.data[place + 1][idxs[place + 1]];
      put(of(".value", item), written(shown));
    });
  }

  #item() {
    const item = make("li");
    const button = Object.assign(make("button"), { type: "button" });
    button.append(make("span", "swatch"), make("span", "label"), make("span", "value"));
    button.addEventListener("click", () => {
      const { key } = button.dataset;
      if (!this.#hidden.delete(key)) this.#hidden.add(key);
      const place = this.#chosen.findIndex((one) => one.key === key);
      this.#plot?.setSeries(place + 1, { show: !this.#hidden.has(key) });
      this.#showLegend();
    });
    item.append(button);
    return item;
  }

  /** Move the cursor by a key. */
  #move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const plot = this.#plot;
    if (!plot?.data[0].length || !(step || event.key === "Escape")) return;
    event.preventDefault();
    if (!step) return plot.setCursor({ left: -10, top: -10 });
    const last = plot.data[0].length - 1;
    const place = Math.max(0, Math.min(last, plot.cursor.idx === null ? last : plot.cursor.idx + step));
    plot.setCursor({ left: plot.valToPos(plot.data[0][place], "x"), top: 10 });
  }
}

/** Show the last values as bars, in a table. */
export function showBars(table, chosen, heading) {
  const most = Math.max(...chosen.map(({ value }) => Math.abs(value ?? 0)), Number.MIN_VALUE);
  put(of("caption", table), heading);
  const lines = count(of("tbody", table), chosen.length, () => {
    const line = make("tr");
    const name = Object.assign(make("th"), { scope: "row" });
    const bar = make("td", "bar");
    bar.append(make("span"));
    line.append(name, bar, make("td", "number"));
    return line;
  });
  lines.forEach((line, place) => {
    const { label, slot, value } = chosen[place];
    put(of("th", line), label);
    const bar = of("span", line);
    bar.className = `series-${slot % COLOURS}${value < 0 ? " minus" : ""}`;
    bar.style.width = `${(100 * Math.abs(value ?? 0)) / most}%`;
    put(of(".number", line), written(value));
  });
}

/** Give a colour of the style sheet as a canvas takes it. */
function colour(node, name) {
  const probe = make("span");
  probe.style.color = `var(${name})`;
  node.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Give how far from the cursor a series' value may be, in pixels: hardly farther than the nearest of all. */
function near(plot, _series, place) {
  return 24 + Math.abs(plot.valToPos(plot.data[0][place], "x") - plot.cursor.left);
}

/** Give the bounds of the time axis; one point stands in the middle of a minute. */
function spread(first, last) {
  if (first === null) return [Date.now() - MINUTE, Date.now()];
  return first < last ? [first, last] : [first - MINUTE / 2, first + MINUTE / 2];
}

/** Write the times of the axis: the date where the steps are days. */
function clock(_, times, _axis, _space, step) {
  const part = step >= DAY ? [0, 10] : step >= MINUTE ? [11, 16] : [11, 19];
  return times.map((time) => moment(time).slice(...part));
}

/** Give the width of the numbers beside the chart. */
function room(plot, values, axis, cycle) {
  if (cycle > 1) return plot.axes[axis]._size; // uPlot asks again until it stays
  return 24 + 7.2 * Math.max(2, ...(values ?? []).map((value) => value.length));
}
