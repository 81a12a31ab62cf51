// Rows by keyboard: j and k move, Enter opens the row's first link, x selects.
let current = -1;
const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=checkbox]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
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

// Selection: all of the page by the box in the head, a range with Shift, none by Escape; how many are chosen stands beside what can be done.
let last = null;
const boxes = (table) => [...table.querySelectorAll("input[data-row]")];
function count(table) {
  const all = boxes(table), chosen = all.filter((box) => box.checked).length, head = table.querySelector("input[data-all]"), said = table.closest("form")?.querySelector("[data-chosen]");
  if (head) { head.checked = chosen > 0 && chosen === all.length; head.indeterminate = chosen > 0 && chosen < all.length; }
  if (said) said.textContent = `${chosen} selected`;
}
document.addEventListener("click", (event) => {
  const box = event.target.closest?.("input[data-row], input[data-all]"), table = box?.closest("table");
  if (!table) return;
  const all = boxes(table);
  if (box.matches("[data-all]")) all.forEach((one) => { one.checked = box.checked; });
  else if (event.shiftKey && all.includes(last)) { const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b); all.slice(from, to + 1).forEach((one) => { one.checked = box.checked; }); }
  if (box.matches("[data-row]")) last = box;
  count(table);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open], details.menu[open]")) return;
  document.querySelectorAll("table:has(input[data-row]:checked)").forEach((table) => { boxes(table).forEach((box) => { box.checked = false; }); count(table); });
  if (document.activeElement?.matches("[data-row], [data-all]")) document.activeElement.blur();
});
