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

  // What a new part has in the place of an old one: by its id, else by what it says, numbers apart, the first or the nth.
  const nameOf = (each) => each.id || [each.tagName, each.closest("[id]")?.id, each.getAttribute("name"),
    each.getAttribute("value"), (each.querySelector("summary") ?? each).textContent.replace(/[\d,]+/g, "").trim()].join("|");
  const placeOf = (part, all, each) => {
    const name = nameOf(each);
    return { name, nth: [...part.querySelectorAll(all)].filter((other) => nameOf(other) === name).indexOf(each) };
  };
  const inPlace = (part, all, place) =>
    [...part.querySelectorAll(all)].filter((other) => nameOf(other) === place.name)[place.nth];
  const FOCUS = "a[href], button, summary, input, select, textarea, [tabindex]";
  const opened = (part) => [...part.querySelectorAll("details[open]")].map((each) => placeOf(part, "details", each));
  const focused = (part) => part.contains(document.activeElement) ? placeOf(part, FOCUS, document.activeElement) : null;

  // The first thing that is seen stays where it is on the screen, whatever comes or goes above it.
  const top = (each) => each.getBoundingClientRect().top;
  const anchor = () => {
    const seen = scrollY > 0 ? [...document.querySelectorAll("[data-live] [id]")].find((each) => top(each) >= 0) : undefined;
    return seen === undefined ? () => {} : ((id, was) => () => {
      const now = document.getElementById(id);
      if (now !== null) scrollBy({ top: top(now) - was, behavior: "instant" });
    })(seen.id, top(seen));
  };

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
    const stay = anchor();
    for (const part of parts) {
      const fresh = page.getElementById(part.id);
      if (fresh === null || fresh.outerHTML === part.dataset.was) continue;
      if (isInUse(part)) { isHeld = true; continue; }
      const focus = focused(part), open = opened(part);
      const was = fresh.outerHTML;
      const made = document.importNode(fresh, true);
      made.dataset.was = was;
      part.replaceWith(made);
      for (const place of open) inPlace(made, "details", place)?.setAttribute("open", "");
      htmx.process(made);
      if (focus !== null) inPlace(made, FOCUS, focus)?.focus({ preventScroll: true });
    }
    stay();
    // What is shown now is what a new stream begins with; what is held is told of again.
    if (!isHeld && page.body.dataset.events) document.body.dataset.events = page.body.dataset.events;
    say(isHeld ? NEWER : "");
  };

  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(refresh, 150); };

  // A browser holds six connections to a host, all its pages together: one that nobody sees lets go of its own.
  let events = null;
  const rest = () => { events?.close(); events = null; };
  const follow = () => {
    if (events !== null || document.hidden || !document.body.dataset.events) return;
    const address = new URL(document.body.dataset.events, location.href);
    if (away.textContent === AWAY) address.searchParams.set("seen", "away"); // so that it is told when it is back
    events = new EventSource(address);
    events.addEventListener("changed", soon);
    events.addEventListener("away", () => say(AWAY));
    events.addEventListener("back", () => { say(""); soon(); });
    events.addEventListener("open", () => { if (away.textContent === ENDED) { say(""); soon(); } });
    events.addEventListener("error", () => say(ENDED));
    events.addEventListener("again", () => { rest(); follow(); });
  };
  const goOn = () => { if (document.body.dataset.events && !document.hidden) { follow(); soon(); } };
  document.addEventListener("visibilitychange", () => document.hidden ? rest() : goOn());
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => { if (event.persisted) goOn(); });
  follow();

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
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch { // over plain HTTP from another machine a browser has none: what is selected can be copied
      getSelection().selectAllChildren(source);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected: copy it";
    }
  });

  const unfold = () => {
    const hidden = document.getElementById(location.hash.slice(1))?.closest("details:not([open])");
    if (hidden) hidden.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
