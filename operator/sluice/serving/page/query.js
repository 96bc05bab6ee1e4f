// Shows one query of `sluice serve` as it goes on. Every text goes to the page as text (textContent), never as markup.

import { call, count, enter, explain, make, nameServer, of, offerToken, put, putLink, signIn } from "./common.js";
import { Choice, group, Lines, moment, showBars, withoutStrays, written } from "./chart.js";
import { follow } from "./stream.js";

const KEPT = 5000; // rows, as many as the server keeps
const LISTED = 100; // rows of the table
const WIDTH = 60; // columns of the table
const LENGTH = 200; // characters of a cell
const HINT = 2000; // characters of the text that shows when the pointer rests on a cell
const REDRAW = 250; // milliseconds from one drawing to the next
const SOON = 3000; // milliseconds in which the first rows come if there are any
const PATIENCE = 600; // seconds for a download
const STATES = { ready: "Ready", stalled: "Stalled", pending: "Pending", suspended: "Suspended" };
const NUMERIC = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)\b/;
const TEXT = /^(STRING|CHAR|VARCHAR)\b/;
const TIMED = /^(TIMESTAMP|DATE)/;
const LARGE = 1e100; // a chart does not draw larger numbers
const NO_ROW =
  "No row yet. A window's row comes once the window is closed: when an event comes that is newer than the window's " +
  "end and the permitted lateness. Other queries write rows with the next batch.";
const NOTHING = { columns: [], keys: [], time: null };
const NO_CHART = "This installation lacks what draws charts. The image of queries has it.";
const NO_NUMBER = "No column of this query is a number to draw.";
const DASH = "\u2013";

const [namespace, name] = location.pathname.split("/").slice(2); // still encoded, as addresses need it
const base = `queries/${namespace}/${name}`;
const choice = new Choice();
const lines = new Lines(of("#plot"), of("#legend"), of("#span"));

let state = null; // the last event of this name
let shape = { known: "", columns: [], time: null, keys: [], values: [] }; // what charts and tables need of it
let entries = null; // the rows, in order of arrival; null before the server told of any
let frozen = null; // the entries at the time of the pause, and the number of the next one
let number = 0; // of the next entry
let skipped = 0;
let live = false;
let lost = null; // why the connection ended
let byte = null; // when the last byte came
let since = null; // when this connection began
let arrival = null; // when the last row came in this connection
let ahead = 0; // milliseconds that the server's clock is ahead
let dirty = true; // the results differ from those on the screen

const HEARD = {
  live() {
    live = true;
    since = byte = Date.now();
    arrival = null;
    put(of("#problem"), "");
    offerToken(null);
  },
  byte() {
    byte = Date.now();
  },
  lost(error) {
    live = false;
    lost = error;
    if (error.status !== undefined) put(of("#problem"), error.message);
    offerToken(error);
  },
  beat({ now }) {
    setClock(now);
  },
  state(found) {
    // of a query that cannot be read only some fields come, and the last ones of the others stay
    state = { ...(state ?? NOTHING), documentation: null, ...found };
    setClock(found.now);
    takeShape();
    showState();
  },
  rows(found) {
    const given = found.rows.map(makeEntry);
    if (!found.reset && given.length) arrival = Date.now(); // the first rows of a connection may be old
    entries = (found.reset ? [] : entries ?? []).concat(given).slice(-KEPT);
    skipped = (found.reset ? 0 : skipped) + (found.skipped ?? 0);
    dirty = true;
  },
  problem(found) {
    put(of("#problem"), explain(found));
  },
};

function setClock(now) {
  if (Number.isFinite(Date.parse(now))) ahead = Date.parse(now) - Date.now();
}

/** Give the columns, or as long as the operator does not know them, those of the last row. */
function columnsOf() {
  const row = entries?.at(-1)?.row ?? {};
  if (state.columns.length) return state.columns;
  const typed = ([column, value]) => ({ name: column, type: typeof value === "number" ? "DOUBLE" : "" });
  return Object.entries(row).map(typed);
}

/** Learn the columns. The rows that are there are read anew if they have changed. */
function takeShape() {
  const { keys, time } = state;
  const columns = columnsOf();
  const known = JSON.stringify([columns, keys, time]);
  if (known === shape.known) return;
  const timed = new Set(columns.filter(({ type }) => TIMED.test(type)).map((column) => column.name));
  const texts = columns.filter(({ type }) => TEXT.test(type)).map((column) => column.name);
  const values = columns.filter((column) => NUMERIC.test(column.type) && !keys.includes(column.name));
  shape = {
    known,
    columns,
    time,
    keys: keys.length ? keys.filter((key) => !timed.has(key)) : texts,
    values: values.map((column) => column.name),
  };
  entries &&= entries.map(({ row }) => makeEntry(row));
  frozen &&= { ...frozen, entries, number };
  dirty = true;
  of("#rows tbody").replaceChildren();
  showHeads();
}

/** Give a value of a row, also if its column is called `__proto__`. */
function cell(row, column) {
  return Object.hasOwn(row, column) ? row[column] : null;
}

/** Give a value as a number, or null. Large and exact numbers come as texts. */
function numberOf(value) {
  if (value === null || value === "" || (typeof value !== "number" && typeof value !== "string")) return null;
  return Math.abs(Number(value)) < LARGE ? Number(value) : null;
}

function makeEntry(row) {
  const values = shape.keys.map((key) => cell(row, key));
  const place = number++;
  const time = shape.time === null ? place : Date.parse(cell(row, shape.time));
  return {
    row,
    number: place,
    key: JSON.stringify(values),
    label: values.map((value) => textOf(value, "") || '""').join(", ").slice(0, LENGTH),
    time: Number.isFinite(time) ? time : null,
  };
}

/** Write a value for a table. Times become those of this person's clock. */
function textOf(value, type) {
  if (value === null) return "null";
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(7)));
  const time = type === "TIMESTAMP" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.exec(value);
  return time ? moment(Date.parse(value)) + (time[1] ?? "").replace(/\.?0+$/, "") : String(value);
}

function showState() {
  document.title = `${live ? STATES[state.state] : "Reconnecting"}: ${state.name} - Sluice`;
  const badge = of("#state");
  badge.hidden = false;
  badge.dataset.state = state.state;
  badge.title = `Ready is ${state.ready}`;
  put(of(".badge", badge), STATES[state.state] ?? state.state);
  putLink(of(".reason", badge), state.reason ?? "", state.documentation);
  of("#trouble").hidden = state.state === "ready";
  put(of("#message"), state.message ?? "");
  put(of("#next"), state.next ? `Next step: ${state.next}` : "");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const keys = state.keys.length ? `keys: ${state.keys.join(", ")}` : "no keys";
  const facts = state.sink ? [`Writes to ${state.sink}`, keys, `times of ${zone}`] : [];
  count(of("#facts"), facts.length, () => make("span")).forEach((part, place) => put(part, facts[place]));
  put(of("#sql"), state.sql ?? "");
  of("main").hidden = false;
}

/** Show what changes by the second: the connection, and ages. */
function showNow() {
  const link = of("#link");
  link.dataset.live = live;
  put(link, live ? "Live" : byte !== null ? "Reconnecting ..." : lost ? "Not connected" : "Connecting ...");
  document.body.classList.toggle("stale", !live);
  const data = byte === null ? "" : `The data are of ${moment(byte).slice(11)}, ${age(Date.now() - byte)} ago.`;
  const why = lost && lost.status === undefined ? lost.message : "";
  put(of("#old"), live ? "" : `${why} ${data}`.trim());
  if (state) {
    showState();
    showTiles();
  }
  put(of("#empty"), emptiness());
  const waiting = frozen ? number - frozen.number : 0;
  put(of("#paused"), frozen ? `Paused at ${moment(frozen.time).slice(11)}. New rows since: ${written(waiting)}.` : "");
}

function showTiles() {
  const now = Date.now() + ahead;
  const watermark = Date.parse(state.watermark);
  const read = Date.parse(state.readTime);
  const [day, hour] = moment(watermark).split(" ");
  const late = state.lateEvents ? `; ${whole(state.lateEvents)} events were late` : "";
  const malformed = state.malformedEvents ? `; ${whole(state.malformedEvents)} events did not fit` : "";
  const kept = state.stateRows ? `${whole(state.stateRows)} rows in open windows` : "";
  const tiles = [
    ["Rows", whole(state.rows), `of all versions${malformed}`],
    ["Lag", state.lag ?? DASH, typeof state.lagBytes === "number" ? `${whole(state.lagBytes)} B to read` : ""],
    Number.isFinite(watermark)
      ? ["Watermark", hour, `${day}, ${lateness(now - watermark)}${late}`]
      : ["Watermark", DASH, ""],
    ["Version / batch", `${whole(state.version)} / ${whole(state.batch)}`, kept],
    ["Time of a batch", state.latency ?? DASH, ""],
    arrival !== null
      ? ["Last row", `${age(Date.now() - arrival)} ago`, `came at ${moment(arrival).slice(11)}`]
      : ["Last row", DASH, since === null ? "" : `none came since ${moment(since).slice(11)}`],
    ["Numbers read", Number.isFinite(read) ? `${age(now - read)} ago` : DASH, "by the operator"],
  ];
  count(of("#tiles"), tiles.length, () => {
    const tile = make("div");
    tile.append(make("dt"), make("dd", "figure"), make("dd", "faint"));
    return tile;
  }).forEach((tile, place) => [...tile.children].forEach((part, index) => put(part, tiles[place][index])));
}

const whole = (value) => (typeof value === "number" ? value.toLocaleString() : DASH);
const lateness = (time) => (time >= 0 ? `${age(time)} ago` : `${age(-time)} ahead`);

/** Write a time in milliseconds with its two largest units. */
function age(time) {
  const seconds = Math.max(0, Math.round(time / 1000));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = Math.max(0, units.findIndex(([size]) => seconds >= size));
  if (seconds === 0) return "0 s";
  return units
    .slice(first, first + 2)
    .map(([size, unit], place) => `${Math.floor((place ? seconds % units[first][0] : seconds) / size)} ${unit}`)
    .filter((part, place) => place === 0 || !part.startsWith("0 "))
    .join(" ");
}

/** Tell why there is nothing to see. */
function emptiness() {
  if (entries?.length && !lines.works && shape.time !== null) return NO_CHART;
  if (entries?.length) return shape.values.length ? "" : NO_NUMBER;
  if (of("#problem").textContent !== "") return "";
  const sure = entries !== null || (live && Date.now() - since > SOON);
  return sure ? NO_ROW : "";
}

/** Show rows, if they have changed and the page is seen. */
function draw() {
  if (!dirty || !state || document.hidden) return;
  dirty = false;
  const shown = (frozen ? frozen.entries : entries) ?? [];
  put(of("#empty"), emptiness());
  showChart(shown);
  showRows(shown);
}

function showChart(shown) {
  const select = of("#value");
  const options = count(select, shape.values.length, () => make("option"));
  options.forEach((option, place) => put(option, shape.values[place]));
  const column = select.value;
  const drawn = column !== "" && shown.length > 0;
  const filter = of("#filter").value.trim().toLowerCase();
  const { near, strays } = withoutStrays(shown);
  const series = group(near, (row) => numberOf(cell(row, column)));
  if (shape.keys.length === 0) for (const one of series) one.label = column;
  const { chosen, fitting } = choice.take(series, filter, JSON.stringify([shape.known, column, filter]));
  for (const node of document.querySelectorAll(".drawn")) node.hidden = !drawn;
  of("#lines").hidden = !drawn || shape.time === null || chosen.length === 0 || !lines.works;
  of("#bars").hidden = !drawn || shape.time !== null;
  put(of("#count"), fitting ? `${chosen.length} of ${whole(fitting)} series` : "No series has this text.");
  of("#plot").setAttribute("aria-label", `Chart of ${column} over ${shape.time}, ${chosen.length} series`);
  if (of("#lines").hidden) lines.clear();
  else lines.show(chosen, strays ? `. Rows left out, for their times are far from the others: ${whole(strays)}` : "");
  if (!of("#bars").hidden) showBars(of("#bars"), chosen, `The last ${column} of each key`);
}

const listedColumns = () => shape.columns.slice(0, WIDTH);
const align = (type) => (NUMERIC.test(type) ? "number" : "");

function showHeads() {
  const heads = listedColumns().map(({ name: column, type }) => {
    const head = Object.assign(make("th", align(type), column), { scope: "col", title: type });
    head.append(make("span", "spoken", ` ${type}`));
    return head;
  });
  of("#rows thead tr").replaceChildren(...heads);
}

/** Show the last rows, the newest one first. Lines that are there stay, so that a selection stays. */
function showRows(shown) {
  const body = of("#rows tbody");
  const listed = shown.slice(-LISTED);
  const newest = Number(body.firstElementChild?.dataset.number ?? -1);
  const known = listed.findIndex((entry) => entry.number === newest);
  if (known < 0) body.replaceChildren();
  for (const entry of listed.slice(known + 1)) {
    const line = make("tr", known < 0 ? "" : "new");
    line.dataset.number = entry.number;
    line.append(...listedColumns().map(({ name: column, type }) => showCell(cell(entry.row, column), type)));
    body.prepend(line);
  }
  while (body.children.length > LISTED) body.lastElementChild.remove();
  const [all, wide] = [shown.length, shape.columns.length];
  const cut = wide > WIDTH ? `; ${WIDTH} of ${wide} columns` : "";
  put(of("#size"), all > LISTED ? `${LISTED} of the ${whole(all)} rows that this page has${cut}` : cut.slice(2));
  const why = "Rows that are not shown (too many at once, too long, or damaged)";
  put(of("#skipped"), skipped ? `${why}: ${whole(skipped)}` : "");
}

function showCell(value, type) {
  const text = textOf(value, type);
  const node = make("td", align(type), text.length > LENGTH ? `${text.slice(0, LENGTH)}...` : text);
  node.classList.toggle("faint", value === null);
  const exact = value !== null && typeof value === "object" ? text : String(value);
  if (exact !== node.textContent) node.title = exact.slice(0, HINT);
  return node;
}

async function download(button) {
  const label = button.textContent;
  button.disabled = true;
  put(button, "Downloading ...");
  put(of("#failure"), "");
  try {
    const response = await call(`${base}/rows?format=${button.dataset.format}`, AbortSignal.timeout(PATIENCE * 1000));
    const given = /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
    const file = (given ?? `${namespace}-${name}.${button.dataset.format}`).replace(/[^\w.-]/g, "_");
    const href = URL.createObjectURL(await response.blob());
    Object.assign(make("a"), { href, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(href), PATIENCE * 1000);
  } catch (error) {
    if (await signIn(error)) return;
    put(of("#failure"), error instanceof TypeError ? "The download broke off. Try it again." : error.message);
  } finally {
    button.disabled = false;
    put(button, label);
  }
}

function pause() {
  frozen = frozen ? null : { entries, number, time: Date.now() };
  of("#pause").classList.toggle("wait", frozen !== null);
  put(of("#pause"), frozen ? "Go on" : "Pause");
  dirty = true;
  showNow();
}

nameServer("sluice serve");
put(of("#namespace"), `${namespace}/`);
put(of("#name"), name ?? "");
document.title = `${name} - Sluice`;
of("#pause").addEventListener("click", pause);
for (const control of ["#value", "#filter"]) of(control).addEventListener("input", () => { dirty = true; });
for (const button of document.querySelectorAll(".download")) button.addEventListener("click", () => download(button));
setInterval(draw, REDRAW);
setInterval(showNow, 1000);
try {
  await enter();
  await follow(`${base}/events`, (kind, data) => {
    if (!Object.hasOwn(HEARD, kind)) return; // of a newer server
    HEARD[kind](data);
    if (kind !== "byte" && kind !== "rows") showNow();
  });
} catch (error) {
  put(of("#problem"), error.message);
}
