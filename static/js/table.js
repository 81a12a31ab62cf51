// Rows by keyboard: j and k move, Enter opens the row's first link, x selects.
let current = -1;
const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const all = rows();
  if (!all.length) return;
  if (event.key === "j" || event.key === "k") {
    current = Math.max(0, Math.min(all.length - 1, current + (event.key === "j" ? 1 : -1)));
    all.forEach((row, i) => row.classList.toggle("is-current", i === current));
    all[current].scrollIntoView({ block: "nearest" });
  }
  if (event.key === "Enter" && event.target === document.body) all[current]?.querySelector("a")?.click();
  if (event.key === "x") all[current]?.querySelector("input[data-row]")?.click();
});
