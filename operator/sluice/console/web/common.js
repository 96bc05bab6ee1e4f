// What the pages of `sluice ui` and `sluice serve` share: texts, links, the token, and questions to the server.

const PATIENCE = 60;
const NO_TOKEN = "This page needs the address that sluice ui has printed in its terminal.";
const REFUSED = "The server refused this token. It may have expired.";
const HELP = "The token that your administrator gave you, or a Kubernetes token: ";

export const of = (selector, parent = document) => parent.querySelector(selector);

let token = sessionStorage.getItem("token");
let server = "sluice ui";
let entrance = null; // the promise of a sign-in that goes on

/** A refusal for want of a token. With `person`, the server takes tokens of persons. */
class Refusal extends Error {
  constructor(person) {
    super(person ? REFUSED : NO_TOKEN);
    this.person = person;
  }
}

/** Name the server for messages. */
export function nameServer(name) {
  server = name;
}

/** Change a text only if it differs, so that a reader's selection stays. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Make an element with a class and a text. */
export function make(tag, style = "", text = "") {
  const node = document.createElement(tag);
  if (style) node.className = style;
  node.textContent = text;
  return node;
}

/** Give a node so many children, made by a function. Those that are there stay. */
export function count(node, number, maker) {
  while (node.children.length > number) node.lastElementChild.remove();
  while (node.children.length < number) node.append(maker());
  return [...node.children];
}

/** Show a text, as a link if there is an address for it. Only addresses of the web become links. */
export function putLink(node, text, address) {
  const link = of("a", node);
  const href = webAddress(address);
  if (href === null) return link ? node.replaceChildren(text) : put(node, text);
  if (link?.href === href) return put(link, text);
  node.replaceChildren(Object.assign(make("a", "", text), { href, target: "_blank", rel: "noreferrer" }));
}

function webAddress(address) {
  if (!address || !URL.canParse(address, location.href)) return null;
  const url = new URL(address, location.href);
  return /^https?:$/.test(url.protocol) ? url.href : null;
}

/** Call the server, and give its answer if that is a good one. */
export async function call(path, signal, credential = token) {
  let response;
  try {
    const headers = credential === null ? {} : { Authorization: `Bearer ${credential}` };
    response = await fetch(`/api/${path}`, { headers, signal, cache: "no-store" });
  } catch {
    throw new Error(
      server === "sluice ui"
        ? "sluice ui does not answer. If it has ended, start it again, and open the address that it prints."
        : `${server} does not answer. This page asks again by itself.`,
    );
  }
  if (response.status === 401) {
    throw new Refusal(/^bearer\b/i.test(response.headers.get("WWW-Authenticate") ?? ""));
  }
  if (response.ok) return response;
  const text = isJson(response) ? explain(await response.json()) : broken(response);
  throw Object.assign(new Error(text), { status: response.status });
}

const isJson = (response) => /^application\/json\b/.test(response.headers.get("Content-Type") ?? "");

function broken(response) {
  const place = server === "sluice ui" ? "terminal" : "log";
  return `${server} has failed (HTTP ${response.status}): see its ${place}.`;
}

/** Write an error with its remedy. */
export function explain({ error, remedy }) {
  return [error && `${error}.`, remedy].filter(Boolean).join(" ");
}

/** Call the server, and give its JSON. */
export async function ask(path, credential) {
  const response = await call(path, AbortSignal.timeout(PATIENCE * 1000), credential);
  if (!isJson(response)) throw new Error(broken(response));
  return response.json();
}

/** Take the token of the address into this tab's session, and out of the address. */
export async function enter() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("token") && !given.has("once")) return;
  history.replaceState(null, "", location.pathname);
  keep(given.get("token") ?? (await ask("session", given.get("once"))).token);
}

function keep(given) {
  token = given;
  sessionStorage.setItem("token", given);
}

/** Take a new token from the person if this error asks for one. Tell whether it did. */
export async function signIn(error) {
  if (!error.person) return false;
  entrance ??= takeToken(token === null ? "" : error.message).finally(() => { entrance = null; });
  await entrance;
  return true;
}

/** Offer to take another token if the server knows this one's owner, who lacks a right. */
export function offerToken(error) {
  const offer = of("#other");
  offer.hidden = error?.status !== 403;
  of("button", offer).onclick = async () => {
    await signIn({ person: true, message: "" });
    location.reload();
  };
}

/** Show the form in place of the page until a token is given. */
function takeToken(trouble) {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close(); // else the form is inert
  const form = make("form");
  const field = Object.assign(make("input"), { type: "password", id: "token", required: true, autocomplete: "off" });
  const label = Object.assign(make("label", "", "Token"), { htmlFor: "token" });
  const help = Object.assign(make("p", "faint", HELP), { id: "help" });
  const problem = make("p", "bad", trouble);
  form.id = "entry";
  form.setAttribute("aria-label", "Sign in");
  field.setAttribute("aria-describedby", "help");
  problem.setAttribute("role", "alert");
  help.append(make("code", "", "kubectl create token ACCOUNT"));
  form.append(make("h1", "", "Sluice"), label, field, help, problem, make("button", "main", "Sign in"));
  document.body.append(form);
  document.body.classList.add("closed");
  field.focus();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = field.value.trim();
      if (!/^[\x21-\x7e]+$/.test(given)) { // a header takes no other characters
        put(problem, "A token has letters, digits and signs of ASCII only, and no blanks.");
        return;
      }
      keep(given);
      form.remove();
      document.body.classList.remove("closed");
      resolve();
    });
  });
}
