// Live regions: <section id data-live="url"> asks for its own fragment again; one request in flight per region.
const control = () => document.getElementById("live-control");
const state = new WeakMap();
let touched = Date.now(), paused = false, lastGood = Date.now(), problem = "";

for (const kind of ["pointerdown", "keydown", "visibilitychange"]) document.addEventListener(kind, () => { touched = Date.now(); }, { passive: true });

// A region may ask for a pace of its own (data-every, seconds) while the pace is automatic.
function pace(region) {
  const fixed = control()?.dataset.pace ?? "auto";
  if (fixed === "off") return 0;
  if (fixed !== "auto") return Number(fixed) * 1000;
  const idle = Date.now() - touched;
  if (region?.dataset.every) return idle < 300_000 ? Number(region.dataset.every) * 1000 : 60_000;
  return idle < 60_000 ? 2_000 : idle < 300_000 ? 15_000 : 60_000;
}

// A swap must never cost a selection, the focus, an open dialog or menu.
function frozen(region) {
  if (document.querySelector("dialog[open], .top details[open]")) return "open dialog";
  const chosen = region.querySelectorAll("input[data-row]:checked").length;
  if (chosen) return `${chosen} selected`;
  // A log that is followed may have the focus: it gets it back.
  if (region.contains(document.activeElement) && !document.activeElement.matches("[data-tail]")) return "in use";
  if (region.querySelector("details[open]:not([data-keep])")) return "open";
  return window.getSelection()?.isCollapsed === false ? "text selected" : "";
}

async function poll(region) {
  const own = state.get(region) ?? { busy: false, due: 0, wait: 1 };
  state.set(region, own);
  if (own.busy || Date.now() < own.due || frozen(region)) return;
  own.busy = true;
  const began = Date.now();
  try {
    const answer = await fetch(region.dataset.live, { headers: { "HX-Request": "true", "X-Live-Version": region.dataset.version ?? "" }, signal: AbortSignal.timeout(20_000), redirect: "error" });
    if (!answer.ok) throw new Error(answer.status);
    if (answer.status === 200) {
      const html = await answer.text();
      if (!frozen(region) && region.isConnected) swap(region, html, answer.headers.get("X-Live-Version"), own);
    }
    own.wait = Date.now() - began > 1_000 ? Math.min(own.wait * 2, 30) : 1;
    problem = own.wait > 1 ? "slow" : "";
    lastGood = Date.now();
  } catch { own.wait = Math.min(own.wait * 2, 30); problem = "offline"; }
  own.busy = false;
  own.due = Date.now() + Math.min(pace(region) * own.wait, 60_000);
}

const ROOMS = ".scroller, .log, pre.code, .tabs";
const atEnd = (e) => e.scrollHeight - e.scrollTop - e.clientHeight < 8;

function swap(region, html, version, own) {
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById(region.id);
  if (!fresh) return;
  const scrolled = new Map([...region.querySelectorAll(ROOMS)].map((e, i) => [i, { left: e.scrollLeft, top: e.scrollTop, end: atEnd(e) }]));
  fresh.dataset.version = version ?? "";
  const hadFocus = region.contains(document.activeElement);
  region.replaceWith(fresh);
  if (hadFocus) fresh.querySelector("[data-tail]")?.focus({ preventScroll: true });
  state.set(fresh, own);
  fresh.querySelectorAll(ROOMS).forEach((e, i) => {
    const was = scrolled.get(i);
    if (e.matches("[data-tail]") ? was?.end ?? true : false) e.scrollTop = e.scrollHeight;
    else if (was) { e.scrollLeft = was.left; e.scrollTop = was.top; }
  });
  window.htmx?.process(fresh);
  document.dispatchEvent(new CustomEvent("punctual:swapped", { detail: fresh }));
}

function tick() {
  const regions = document.querySelectorAll("[data-live]"), panel = control();
  const off = paused || pace() === 0;
  if (!off && !document.hidden) regions.forEach(poll);
  if (!panel) return;
  const text = panel.querySelector("[data-live-text]"), why = [...regions].map(frozen).find(Boolean), age = Math.round((Date.now() - lastGood) / 1000);
  panel.dataset.liveState = off ? "paused" : problem || (why ? "frozen" : "live");
  document.documentElement.classList.toggle("is-stale", !off && regions.length > 0 && problem !== "" && age > 10);
  text.textContent = off ? "Paused" : problem === "offline" ? "Offline" : problem === "slow" ? "Slow" : why ? `Paused: ${why}` : "Live";
  panel.title = `Updated ${age} s ago`;
}

document.addEventListener("punctual:pause", () => { paused = !paused; tick(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) document.querySelectorAll("[data-live]").forEach((r) => { const s = state.get(r); if (s) s.due = 0; }); });
document.querySelectorAll("[data-tail]").forEach((log) => { log.scrollTop = log.scrollHeight; });
setInterval(tick, 500);
