// Relative times, refreshed; without a script the server's text stays. The browser's zone is told once, by a cookie.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`tz_browser=${zone}`)) document.cookie = `tz_browser=${zone};path=/;max-age=31536000;samesite=lax`;
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

function relative(seconds) {
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  const [each, unit] = UNITS.find(([s]) => size >= s), text = `${Math.floor(size / each)} ${unit}`;
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}
function refresh() { for (const e of document.querySelectorAll("time[datetime]:not([data-fixed])")) { const t = relative((Date.parse(e.dateTime) - Date.now()) / 1000); if (e.textContent !== t) e.textContent = t; } }
refresh(); setInterval(refresh, 5000); document.addEventListener("punctual:swapped", refresh);
