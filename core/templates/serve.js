/* The page without loading it anew. What is shown is what the address asks for: whatever is typed or clicked gives a new
   address, and the latest one wins; an older one that is still being answered is given up. */
const $ = (id) => document.getElementById(id);
const form = $("form"), box = $("query"), answer = $("answer"), clear = form.querySelector(".clear");
let running = null, asked = location.search;

const show = (message) => {
  answer.replaceChildren(Object.assign(document.createElement("p"), {className: "error", textContent: message}));
  $("said").textContent = message;
};

const focusOn = (selector) => (selector && answer.querySelector(selector) || answer).focus({preventScroll: true});

const showPlain = (isOn) => answer.querySelector(".switch")?.setAttribute("aria-pressed", isOn);

const take = (text, focus) => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const held = answer.contains(document.activeElement) ? document.activeElement : null;
  const same = held?.dataset.word ? `[data-word="${held.dataset.word}"]` : held?.matches(".switch") && ".switch";
  const isPlain = answer.querySelector(".switch")?.ariaPressed === "true";
  answer.replaceChildren(...fresh.getElementById("answer").childNodes);
  showPlain(isPlain);
  document.title = fresh.title;
  $("said").textContent = fresh.getElementById("said").textContent;
  $("settings").hidden = fresh.getElementById("settings").hidden;
  for (const field of form.querySelectorAll("#range, #strength, #violations"))
    if (field !== document.activeElement) field.value = fresh.getElementById(field.id)?.value ?? "";
  if (focus || held) focusOn(focus || same);
};

const go = async (search, {replaces = search === asked, isBack = false, focus} = {}) => {
  running?.abort();
  const own = running = new AbortController();
  asked = search;
  const query = new URLSearchParams(search).get("q") ?? "";
  if (box.value !== query && document.activeElement !== box || isBack) box.value = query;
  if (!isBack) history[replaces ? "replaceState" : "pushState"](null, "", location.pathname + search);
  clear.hidden = !box.value;
  document.body.setAttribute("aria-busy", "true");
  try {
    if (query.length > Number(form.dataset.longest))
      return show(`The query has ${query.length.toLocaleString("en")} letters; at most ${form.dataset.longest} are read here.`);
    const response = await fetch(location.pathname + search, {signal: own.signal});
    const text = await response.text();
    if (own !== running) return;
    if (response.headers.get("content-type")?.startsWith("text/html")) take(text, focus); else show(text);
  } catch {
    if (own === running && !own.signal.aborted) show("The server does not answer; try again in a moment.");
  } finally {
    if (own === running) document.body.removeAttribute("aria-busy");
  }
};

const change = (values, options) => {
  const next = new URLSearchParams(asked);
  for (const [name, value] of Object.entries(values)) value === null ? next.delete(name) : next.set(name, value);
  go(next.size ? `?${next}` : "", options);
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  change({q: box.value, excluded: null, k: null});
});

answer.addEventListener("click", (event) => {
  if (event.target.closest(".switch")) showPlain(event.target.ariaPressed !== "true");
  const word = event.target.closest("button[data-word]");
  if (!word) return;
  word.setAttribute("aria-pressed", word.getAttribute("aria-pressed") !== "true");  // a second click counts with this one
  const words = [...answer.querySelectorAll("[data-word]")];
  const isPressed = (one) => one?.ariaPressed === "true";
  // A sign between two excluded words is excluded with them.
  const pressed = words.filter((one, at) => isPressed(one) || (!one.ariaPressed && isPressed(words[at - 1]) && isPressed(words[at + 1])));
  change({excluded: pressed.map((one) => one.dataset.word).join(",") || "none"});
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link === clear) box.value = "", box.focus();
  go(link.search, {focus: link.dataset.focus});
});

box.addEventListener("input", () => clear.hidden = !box.value);

let later;
const set = (values) => {
  clearTimeout(later);
  later = setTimeout(() => change(values, {replaces: true}), 200);
};
$("range").addEventListener("input", (event) => {
  $("strength").value = event.target.value;
  set({strength: event.target.value});
});
$("strength").addEventListener("input", (event) => set({strength: event.target.value || null}));
$("violations")?.addEventListener("change", (event) => set({violations: event.target.value || null}));

addEventListener("popstate", () => go(location.search, {isBack: true}));
