// Times in the person's zone, and keys. Without this script times are in UTC, and every key has a link.
"use strict";
(() => {
  const LOCALE = "en-GB", WEEK = 7 * 86_400;
  const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat(LOCALE, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
  const near = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const far = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", year: "numeric" });
  const full = new Intl.DateTimeFormat(LOCALE, { dateStyle: "full", timeStyle: "long" });
  const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

  const relative = (at) => {
    const seconds = (at - Date.now()) / 1000, size = Math.abs(seconds);
    if (size < 60) return "just now";
    if (size < 3600) return ago.format(Math.trunc(seconds / 60), "minute");
    if (size < 86_400) return ago.format(Math.trunc(seconds / 3600), "hour");
    if (size < WEEK) return ago.format(Math.trunc(seconds / 86_400), "day");
    return at.getFullYear() === new Date().getFullYear() ? near.format(at) : far.format(at);
  };

  // A day that begins at the person's midnight stands where it begins there.
  const regroup = (list) => {
    const template = list.querySelector(".day");
    if (template === null) return;
    for (const each of list.querySelectorAll(".day")) each.remove();
    let today = "";
    for (const time of list.querySelectorAll("time[data-as=clock]")) {
      const at = new Date(time.dateTime), name = day.format(at);
      if (name === today) continue;
      today = name;
      const head = template.cloneNode(true), row = time.closest("li"), turn = row.closest(".turn");
      head.querySelector("time").dateTime = time.dateTime;
      (turn?.querySelector("time[data-as=clock]") === time ? turn : row).before(head);
    }
  };

  const localize = (part) => {
    for (const list of part.querySelectorAll(".lines")) regroup(list);
    for (const time of part.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = full.format(at);
      time.textContent = time.dataset.as === "clock" ? clock.format(at) : time.dataset.as === "day" ? day.format(at) : relative(at);
    }
  };
  localize(document);
  document.addEventListener("shown", (event) => localize(event.detail));
  document.addEventListener("htmx:afterSwap", (event) => localize(event.detail.target));
  const zone = document.getElementById("zone");
  if (zone !== null) zone.textContent = `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}. Keys: press ?.`;

  const keys = document.getElementById("keys");
  keys?.querySelector("[data-close]").addEventListener("click", () => keys.close());
  const rows = () => [...document.querySelectorAll("[data-row], .list a.title, .matches a.title")].filter((each) => each.checkVisibility());
  const step = (by) => {
    const all = rows(), at = all.indexOf(document.activeElement);
    const first = all.findIndex((each) => each.getBoundingClientRect().top >= 0);
    const next = all[at < 0 ? Math.max(0, first) : Math.min(all.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], dialog[open]");
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
    const goes = isGoing && document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    isGoing = event.key === "g";
    if (goes) { location.href = goes.href; return; }
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") keys?.showModal();
    else if (event.key === "/") {
      const field = document.getElementById("search");
      if (field === null) return;
      event.preventDefault();
      field.focus();
      field.select();
    }
  });
})();
