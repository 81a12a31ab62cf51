// Shortcuts and everything that opens: listeners are on the document, so a swap loses none.
document.documentElement.classList.add("has-js");
let after = "";
const typing = (e) => e.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest?.(selector);
  const toggle = at("[data-toggle]");
  if (toggle) { const open = document.getElementById(toggle.dataset.toggle).classList.toggle("is-open"); toggle.setAttribute("aria-expanded", open); }
  const dialog = at("[data-dialog]");
  if (dialog) document.getElementById(dialog.dataset.dialog).showModal();
  at("[data-dismiss]")?.closest(".toast").remove();
  const copy = at("[data-copy]");
  if (copy) copyText(copy.dataset.copy).then(() => { copy.classList.add("is-done"); setTimeout(() => copy.classList.remove("is-done"), 1500); });
  document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
});

async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelectorAll("details.menu[open]").forEach((m) => { m.open = false; m.querySelector("summary").focus(); });
  if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (after === "g") { after = ""; const link = [...document.querySelectorAll(".side [data-key]")].find((a) => a.dataset.key === event.key); if (link) { event.preventDefault(); location.href = link.href; } return; }
  if (event.key === "g") { after = "g"; setTimeout(() => { after = ""; }, 1200); }
  if (event.key === "?") document.getElementById("help")?.showModal();
  if (event.key === "r") document.dispatchEvent(new Event("punctual:pause"));
});

const dead = document.querySelector("[data-dead]");
if (dead) { const link = document.querySelector('link[rel="icon"]'); if (link?.dataset.alert) link.href = link.dataset.alert; document.title = `(${dead.dataset.dead} dead) ${document.title}`; }
for (const toast of document.querySelectorAll(".toast:not(.is-error)")) setTimeout(() => { if (!toast.matches(":hover, :focus-within")) toast.remove(); }, 8000);
// Where tabs do not fit, the current one is in sight.
function showTab() { for (const tab of document.querySelectorAll(".tabs [aria-current]")) { const row = tab.closest(".tabs"); row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2; } }
showTab(); addEventListener("resize", showTab);
