// The page of `cockpit web`: a terminal, its keys for touch, and one connection. See docs/reference/web.md.
"use strict";

const PHONE = 700; // pixels: below, the letters are sized so that COLUMNS of them fit
const COLUMNS = 46;
const LETTERS = 14; // pixels
const PIECE = 4000; // characters of one message: the server takes 64 KiB
const WHY = {
  4001: "The screen has ended.",
  4002: "As many screens are open as may be. Close another tab first.",
  4003: "The screen took no keys any more, and was ended.",
  1001: "cockpit web has ended. Start it again, and open its new link.",
};

const element = (id) => document.getElementById(id);
const terminal = new Terminal({
  allowProposedApi: true, // for the widths of Unicode 11
  fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
  fontSize: LETTERS,
  scrollback: 0,
  theme: { background: "#101418" },
});
const fit = new FitAddon.FitAddon();
let socket = null;
const SETTLE = 500; // milliseconds that something must have been drawn before a key decides about it
const ACKNOWLEDGE = 65536; // bytes after which the server is told what is drawn
let seen = 0; // bytes that are drawn
let told = 0; // of those the server knows
let steps = []; // [bytes, moment] of what was drawn in the last SETTLE milliseconds
let settled = 0; // bytes that have been drawn for as long
let pressed = -Infinity; // the moment of the last keys

function resize() {
  const width = document.documentElement.clientWidth;
  // A letter of these fonts is 0.602 times as wide as it is high.
  const size = width < PHONE ? Math.max(8, Math.min(LETTERS, Math.floor(width / COLUMNS / 0.602))) : LETTERS;
  if (terminal.options.fontSize !== size) terminal.options.fontSize = size;
  fit.fit();
}

function send(message) {
  if (message.seen) told = message.seen;
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function settle() {
  while (steps.length && performance.now() - steps[0][1] >= SETTLE) settled = steps.shift()[0];
  return settled;
}

function draw(line, size) {
  if (line !== socket) return;
  seen += size;
  steps.push([seen, performance.now()]);
  settle();
  if (seen - told >= ACKNOWLEDGE) send({ seen, settled });
}

function press(keys) {
  const letters = Array.from(keys); // never half of a pair
  const now = performance.now();
  const gap = Math.floor(Math.min(now - pressed, 10000));
  pressed = now;
  settle();
  for (let at = 0; at < letters.length; at += PIECE) {
    send({ keys: letters.slice(at, at + PIECE).join(""), seen, settled, gap: at ? 0 : gap });
  }
}

function connect() {
  element("ended").hidden = true;
  terminal.reset();
  resize();
  seen = told = settled = 0;
  steps = [];
  const url = new URL("screen", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const line = new WebSocket(url);
  line.binaryType = "arraybuffer";
  socket = line;
  line.onopen = () => {
    send({ size: [terminal.cols, terminal.rows] });
    terminal.focus();
  };
  line.onmessage = (event) => {
    const output = new Uint8Array(event.data);
    terminal.write(output, () => draw(line, output.length));
  };
  line.onclose = (event) => {
    if (line !== socket) return;
    socket = null;
    element("why").textContent = WHY[event.code] || "The connection was lost, and this screen with it.";
    element("ended").hidden = false;
    if (!matchMedia("(pointer: coarse)").matches) element("again").focus();
  };
}

const arrow = (letter) => (terminal.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[") + letter;
const KEYS = {
  enter: () => "\r",
  escape: () => "\x1b",
  tab: () => "\t",
  up: () => arrow("A"),
  down: () => arrow("B"),
  right: () => arrow("C"),
  left: () => arrow("D"),
  next: () => "\x1bn",
  queue: () => "\x1bq",
};

terminal.loadAddon(fit);
terminal.loadAddon(new Unicode11Addon.Unicode11Addon());
terminal.unicode.activeVersion = "11";
terminal.open(element("terminal"));
// A phone whose keyboard is put away takes the focus from the terminal, and goes on with the buttons.
const touch = matchMedia("(pointer: coarse)").matches;
terminal.onData((keys) => { if (!(touch && keys === "\x1b[O")) press(keys); });
terminal.onResize(({ cols, rows }) => send({ size: [cols, rows] }));
terminal.onTitleChange((title) => {
  document.title = title;
  const waiting = /· (\d+) waiting$/.exec(title);
  const list = document.querySelector("#keys [data-key=queue]");
  list.textContent = waiting ? `List ${waiting[1]}` : "List";
  list.classList.toggle("waits", waiting !== null);
});
for (const button of document.querySelectorAll("#keys button")) {
  // The terminal keeps the focus, and a phone's keyboard stays as it is.
  button.addEventListener("pointerdown", (event) => event.preventDefault());
  button.addEventListener("click", () => press(KEYS[button.dataset.key]()));
}
element("again").addEventListener("click", connect);
new ResizeObserver(resize).observe(element("terminal"));
connect();
