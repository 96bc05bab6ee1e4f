// Reads the events of a query for as long as the page is open. EventSource cannot send a token, so this does.

import { call, signIn } from "./common.js";

const SILENCE = 15; // seconds without a byte after which a connection is dead; the server sends a beat every 5
const STEADY = 10; // seconds after which a connection counts as a good one
const DELAYS = [0.5, 1, 2, 4, 5];
const SLOW = 15; // seconds between two calls for a query that is missing or forbidden

/**
 * Follow a query, without an end.
 *
 * @param path of the events, below /api/
 * @param heard called with the kind and the data of each event, with "live" once the server answers, and with "lost"
 *   and an error when a connection ends
 */
export async function follow(path, heard) {
  let tries = 0;
  for (;;) {
    const begun = Date.now();
    let trouble;
    try {
      trouble = await connect(path, (kind, data) => {
        if (Date.now() - begun > STEADY * 1000) tries = 0; // not sooner: it may end each connection after one event
        heard(kind, data);
      });
    } catch (error) {
      if (await signIn(error)) continue;
      trouble = error;
    }
    heard("lost", trouble);
    const slow = trouble.status === 403 || trouble.status === 404;
    await pause(slow ? SLOW : DELAYS[Math.min(tries++, DELAYS.length - 1)]);
  }
}

/** Read one connection, and return why it ended. */
async function connect(path, heard) {
  const dead = new AbortController();
  const silent = new Error(`The server was silent for ${SILENCE} s.`);
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => dead.abort(silent), SILENCE * 1000);
  };
  alive();
  try {
    const { body } = await call(path, dead.signal);
    heard("live", null);
    const reader = body.getReader();
    const read = parser(heard);
    for (;;) {
      const { done, value } = await next(reader, dead.signal);
      if (done) return new Error("The server has ended the connection.");
      alive();
      heard("byte", null);
      read(value);
    }
  } finally {
    clearTimeout(timer);
    dead.abort(); // ends a connection whose event made no sense
  }
}

async function next(reader, signal) {
  try {
    return await reader.read();
  } catch {
    throw signal.aborted ? signal.reason : new Error("The connection is broken.");
  }
}

/** Make a reader of bytes that calls `heard` with each event. */
function parser(heard) {
  const decoder = new TextDecoder();
  let rest = ""; // of a line
  let kind = "message";
  let data = [];
  function line(text) {
    if (text === "") {
      if (data.length) heard(kind, JSON.parse(data.join("\n")));
      kind = "message";
      data = [];
    } else if (text.startsWith("event:")) {
      kind = text.slice(6).trim();
    } else if (text.startsWith("data:")) {
      data.push(text.slice(5));
    }
  }
  return (bytes) => {
    const lines = decoder.decode(bytes, { stream: true }).split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop();
    for (const text of lines) line(text.endsWith("\r") ? text.slice(0, -1) : text);
  };
}

/** Wait, but not while the browser can do better: it is online again. */
function pause(seconds) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    addEventListener("online", end);
  });
}
