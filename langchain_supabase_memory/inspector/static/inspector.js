// Live updates, opening in place and copying. Everything works without scripts, less smoothly.
"use strict";
(() => {
  const away = document.getElementById("away");
  const showBanner = (text) => { away.textContent = text; away.classList.toggle("shown", text !== ""); };
  const AWAY = "The database is unreachable. This page updates again when the database is back.";
  const ENDED = "The inspector has stopped or is unreachable. Start it again.";
  const NEWER = "There are newer changes. Reload the page to see them.";

  // A part with an open form, an opened detail or a focused field is not replaced.
  const isInUse = (part) => part.querySelector("details.act[open], .inside:not(:empty)") !== null ||
    part.querySelector("textarea:focus, input:focus, select:focus") !== null;

  // Finds the counterpart of an element in a new part: by its id, else by its text without numbers and its position.
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

  // The first visible element keeps its position on the screen.
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
    let isPending = false;
    const keepPosition = anchor();
    for (const part of parts) {
      const fresh = page.getElementById(part.id);
      if (fresh === null || fresh.outerHTML === part.dataset.was) continue;
      if (isInUse(part)) { isPending = true; continue; }
      const focus = focused(part), open = opened(part);
      const was = fresh.outerHTML;
      const made = document.importNode(fresh, true);
      made.dataset.was = was;
      part.replaceWith(made);
      for (const place of open) inPlace(made, "details", place)?.setAttribute("open", "");
      htmx.process(made);
      document.dispatchEvent(new CustomEvent("shown", { detail: made }));
      if (focus !== null) inPlace(made, FOCUS, focus)?.focus({ preventScroll: true });
    }
    keepPosition();
    // A new stream starts with the shown version, unless an update is pending.
    if (!isPending && page.body.dataset.events) document.body.dataset.events = page.body.dataset.events;
    showBanner(isPending ? NEWER : "");
  };

  let waiting = 0;
  const refreshSoon = () => { clearTimeout(waiting); waiting = setTimeout(refresh, 150); };

  // A browser opens at most six connections per host for all pages: a hidden page closes its own.
  let events = null;
  const disconnect = () => { events?.close(); events = null; };
  const connect = () => {
    if (events !== null || document.hidden || !document.body.dataset.events) return;
    const address = new URL(document.body.dataset.events, location.href);
    if (away.textContent === AWAY) address.searchParams.set("seen", "away"); // to be notified when it is back
    events = new EventSource(address);
    events.addEventListener("changed", refreshSoon);
    events.addEventListener("away", () => showBanner(AWAY));
    events.addEventListener("back", () => { showBanner(""); refreshSoon(); });
    events.addEventListener("open", () => { if (away.textContent === ENDED) { showBanner(""); refreshSoon(); } });
    events.addEventListener("error", () => showBanner(ENDED));
    events.addEventListener("again", () => { disconnect(); connect(); });
  };
  const resume = () => { if (document.body.dataset.events && !document.hidden) { connect(); refreshSoon(); } };
  document.addEventListener("visibilitychange", () => document.hidden ? disconnect() : resume());
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) resume(); });
  connect();

  // A second click closes what the first one opened.
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
    else showBanner(AWAY);
  });
  document.addEventListener("htmx:sendError", () => showBanner(ENDED));

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button === null) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch { // over plain HTTP from another machine there is no clipboard: select the text instead
      getSelection().selectAllChildren(source);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected; copy it now";
    }
  });

  // A double click would send a change twice, and show that the second one failed.
  const sent = new Map();
  document.addEventListener("submit", (event) => {
    const button = event.submitter ?? event.target;
    if (event.target.method !== "post") return;
    if (performance.now() - (sent.get(button) ?? -Infinity) < 2000) event.preventDefault();
    else sent.set(button, performance.now());
  });
  addEventListener("pageshow", () => sent.clear()); // somebody came back to this page

  const unfold = () => {
    const hidden = document.getElementById(location.hash.slice(1))?.closest("details:not([open])");
    if (hidden) hidden.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
