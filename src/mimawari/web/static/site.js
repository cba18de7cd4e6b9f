// Pages work without this; with it, times are in the visitor's zone and live parts renew themselves.
"use strict";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const kept = zone && `zone=${encodeURIComponent(zone)}`;
// Also after a journey: the zone is that of now.
if (kept && !document.cookie.split("; ").includes(kept)) {
  document.cookie = `${kept};path=/;max-age=31536000;samesite=lax`;
}

const parts = [...document.querySelectorAll("[data-live]")];

// Whoever fills in a form, presses a button or has selected something is not disturbed.
function isBusy(part) {
  const chosen = getSelection();
  const reads = chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  return reads || part.contains(document.activeElement) || part.querySelector(":active") !== null;
}

// What was scrolled aside or opened stays so.
function replace(part, fresh) {
  const moved = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  const opened = [...part.querySelectorAll("details")].map((one) => one.open);
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = moved[at] ?? 0; });
  part.querySelectorAll("details").forEach((one, at) => { one.open = opened[at] ?? one.open; });
}

async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const fresh = made.getElementById(part.id);
    if (fresh && !isBusy(part) && fresh.innerHTML !== part.innerHTML) replace(part, fresh);
  }
}

if (parts.length > 0) {
  let waiting = false;
  // What changes while nobody looks, or right after a renewal, is shown as soon as may be.
  let missed = false;
  const changes = new EventSource("/changes");
  const change = () => {
    missed = waiting || document.hidden;
    if (missed) return;
    waiting = true;
    renew().catch(() => {}).finally(() => { setTimeout(rest, 2000); });
  };
  const rest = () => {
    waiting = false;
    if (missed) change();
  };
  changes.addEventListener("changed", change);
  changes.addEventListener("error", () => { missed = true; });
  changes.addEventListener("open", () => { if (missed) change(); });
  document.addEventListener("visibilitychange", () => { if (missed) change(); });
  addEventListener("pagehide", () => changes.close());
}

// Of the whole page, so that forms in parts that were renewed ask too.
document.addEventListener("submit", (event) => {
  const { ask } = event.target.dataset;
  if (ask && !confirm(ask)) event.preventDefault();
});

// Clocks that count on by themselves; a second here may be more in a demonstration.
function tick() {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    const now = Number(clock.dataset.clock) + Number(clock.dataset.speed);
    clock.dataset.clock = now;
    const whole = Math.abs(Math.round(now));
    const two = (number) => String(number).padStart(2, "0");
    const said = `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
    clock.textContent = (now >= 0 ? "+" : "-") + said;
  }
}
if (document.querySelector("[data-clock]")) setInterval(tick, 1000);
