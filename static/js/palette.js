// The search and jump dialog: suggestions come from the server.
const dialog = document.getElementById("palette");
const links = () => [...dialog.querySelectorAll("#palette-list a")];
function open() { dialog.showModal(); const box = dialog.querySelector("input"); box.select(); box.dispatchEvent(new Event("palette-open")); }
if (dialog) {
  document.addEventListener("click", (e) => { if (e.target.closest?.("[data-palette]")) open(); if (e.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (e) => {
    const isTyping = e.target.closest("input, textarea, select");
    const search = e.key === "/" && !isTyping && !document.querySelector("dialog[open]") && document.querySelector("[data-search]");
    if (search) { e.preventDefault(); search.focus(); search.select(); return; }
    if ((e.key === "k" && (e.ctrlKey || e.metaKey)) || (e.key === "/" && !isTyping)) { e.preventDefault(); if (!dialog.open) open(); }
  });
  dialog.addEventListener("keydown", (e) => {
    const all = links(), at = all.findIndex((a) => a.classList.contains("is-current"));
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); all[at]?.classList.remove("is-current"); all[(at + (e.key === "ArrowDown" ? 1 : all.length - 1) + all.length) % all.length]?.classList.add("is-current"); }
    if (e.key === "Enter") { e.preventDefault(); (all[at] ?? all[0])?.click(); }
  });
}
