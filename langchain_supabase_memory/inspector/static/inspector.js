// What a page does by itself: it follows what changes, opens in place, copies. Everything works without it, less smoothly.
"use strict";
(() => {
  const away = document.getElementById("away");
  const say = (text) => { away.textContent = text; away.classList.toggle("shown", text !== ""); };
  const AWAY = "The database cannot be reached. This page shows what it knew, and goes on when it is back.";
  const ENDED = "The inspector has ended, or cannot be reached. Start it again to go on.";
  const NEWER = "This has changed meanwhile. Load the page anew to see it.";

  // What is open, or typed into, is not replaced under a person's hands.
  const isInUse = (part) => part.querySelector("details.act[open], .inside:not(:empty)") !== null ||
    part.querySelector("textarea:focus, input:focus, select:focus") !== null;

  const opened = (part) => [...part.querySelectorAll("details[open]")].map((each) => each.className);

  const refresh = async () => {
    const parts = [...document.querySelectorAll("[data-live]")];
    if (parts.length === 0) { location.reload(); return; }
    let page;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
      if (answer.status === 404) { location.reload(); return; }
      if (!answer.ok) return;
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch { return; }
    let isHeld = false;
    for (const part of parts) {
      const fresh = page.getElementById(part.id);
      if (fresh === null || fresh.outerHTML === part.dataset.was) continue;
      if (isInUse(part)) { isHeld = true; continue; }
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      const open = opened(part);
      const was = fresh.outerHTML;
      const made = document.importNode(fresh, true);
      made.dataset.was = was;
      part.replaceWith(made);
      for (const each of made.querySelectorAll("details")) if (open.includes(each.className)) each.open = true;
      htmx.process(made);
      if (focused) document.getElementById(focused)?.focus();
    }
    say(isHeld ? NEWER : "");
  };

  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(refresh, 150); };

  const address = document.body.dataset.events;
  if (address) {
    const events = new EventSource(address);
    events.addEventListener("changed", soon);
    events.addEventListener("away", () => say(AWAY));
    events.addEventListener("back", () => { say(""); soon(); });
    events.addEventListener("open", () => { if (away.textContent === ENDED) { say(""); soon(); } });
    events.addEventListener("error", () => say(ENDED));
    addEventListener("pagehide", () => events.close());
  }

  // A second click closes what a first has opened.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const link = event.target;
    if (!link.hasAttribute("data-opens")) return;
    const inside = event.detail.target;
    if (link.getAttribute("aria-expanded") === "true") {
      inside.replaceChildren();
      link.setAttribute("aria-expanded", "false");
      event.preventDefault();
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const link = event.detail.requestConfig?.elt;
    if (link?.hasAttribute("data-opens")) link.setAttribute("aria-expanded", "true");
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.target.hasAttribute?.("data-opens")) event.detail.target.innerHTML = event.detail.xhr.responseText;
    else say(AWAY);
  });
  document.addEventListener("htmx:sendError", () => say(ENDED));

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button === null) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });

  const unfold = () => {
    const hidden = document.getElementById(location.hash.slice(1))?.closest("details:not([open])");
    if (hidden) hidden.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
