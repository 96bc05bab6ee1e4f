// Shows what `sluice ui` and `sluice serve` tell. Every text goes to the page as text (textContent), never as markup.

import { ask, count, enter, nameServer, of, offerToken, put, putLink, signIn } from "./common.js";

const SECONDS = 2;

const rows = new Map(); // the table's rows, by the resources' ids
const dialog = of("#details");
let opened = null; // the id of the resource in the dialog
let timer = null;

function makeRow(id) {
  const row = of("#row").content.firstElementChild.cloneNode(true);
  of("button", row).addEventListener("click", () => open(id));
  return row;
}

function showRow(row, found) {
  row.dataset.state = found.state;
  row.dataset.copies = found.copies;
  put(of("button", row), found.name);
  for (const key of ["ready", "done", "rate", "backup", "age"]) put(of(`.${key}`, row), found[key]);
  putLink(of(".reason", row), found.reason, found.documentation);
  const live = of(".live", row);
  live.hidden = !found.page?.startsWith("/q/");
  if (!live.hidden) {
    live.href = found.page;
    live.setAttribute("aria-label", `Live results of ${found.name}`);
  }
  const bar = of("progress", row);
  bar.value = found.percent ?? 0;
  bar.hidden = found.percent === null;
  bar.setAttribute("aria-label", `Progress of ${found.name}`);
  put(of(".percent", row), found.percent === null ? "" : `${found.percent}%`);
}

function showBoard(board) {
  const body = of("#board tbody");
  const ids = new Set(board.rows.map((found) => found.id));
  for (const [id, row] of rows) {
    if (!ids.has(id)) {
      row.remove();
      rows.delete(id);
    }
  }
  board.rows.forEach((found, place) => {
    if (!rows.has(found.id)) rows.set(found.id, makeRow(found.id));
    const row = rows.get(found.id);
    showRow(row, found);
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
  hide();
  nameServer(board.server ?? "sluice ui");
  put(of("#summary"), board.summary);
  showTexts(of("#notes"), board.notes, "li");
  put(of("#time"), `As of ${new Date().toLocaleTimeString()}`);
}

function hide() {
  const without = of("#hide").checked ? "ready" : "";
  for (const row of rows.values()) row.hidden = row.dataset.state === without;
}

function showTexts(node, texts, tag) {
  const children = count(node, texts.length, () => document.createElement(tag));
  children.forEach((child, place) => put(child, texts[place]));
}

function showTable(section, table) {
  put(of("h3", section), table.title);
  of(".scrolls", section).setAttribute("aria-label", table.title);
  showTexts(of("thead tr", section), table.heading, "th");
  for (const cell of of("thead tr", section).children) cell.scope = "col";
  const lines = count(of("tbody", section), table.rows.length, () => document.createElement("tr"));
  lines.forEach((line, place) => showTexts(line, table.rows[place], "td"));
}

function showDetails(found) {
  put(of("#title"), found.title);
  put(of("#message"), found.message);
  put(of("#next"), `Next step: ${found.next}`);
  put(of("#facts"), found.facts.join(" \u00b7 "));
  put(of("#missing"), found.notes.join(" "));
  const tables = found.tables.filter((table) => table.rows.length);
  const sections = count(of("#tables"), tables.length, () => of("#table").content.cloneNode(true));
  sections.forEach((section, place) => showTable(section, tables[place]));
}

/** Show what is wrong, and that the table is not of now; nothing if all is well. */
function tell(trouble) {
  put(of("#trouble"), trouble);
  of("#board").classList.toggle("old", trouble !== "");
}

async function look() {
  try {
    showBoard(await ask("resources"));
    tell("");
    offerToken(null);
  } catch (error) {
    if (await signIn(error)) return look();
    tell(error.message);
    offerToken(error);
  }
  const id = opened;
  if (id === null) return;
  try {
    const found = await ask(`resources/${encodeURIComponent(id)}`);
    if (opened !== id) return;
    showDetails(found);
    put(of("#problem"), "");
  } catch (error) {
    if (opened === id) put(of("#problem"), error.message);
  }
}

async function goOn() {
  clearTimeout(timer);
  timer = null;
  if (!document.hidden) await look();
  timer ??= setTimeout(goOn, SECONDS * 1000);
}

function open(id) {
  opened = id;
  for (const part of ["message", "next", "facts", "missing", "problem"]) put(of(`#${part}`), "");
  put(of("#title"), of("button", rows.get(id)).textContent);
  of("#tables").replaceChildren();
  dialog.showModal();
  goOn();
}

dialog.addEventListener("close", () => { opened = null; });
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.addEventListener("visibilitychange", goOn);
of("#hide").addEventListener("change", hide);
try {
  await enter();
  goOn();
} catch (error) {
  tell(error.message);
}
