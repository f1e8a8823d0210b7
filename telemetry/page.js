
"use strict";
// Every two seconds the page is asked for again, and its live part replaced: what
// is shown is made in one place, with and without scripts.
const freshness = document.getElementById("freshness");
freshness.textContent = "live";
async function refresh() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error("the relay answers " + answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("live").replaceWith(page.getElementById("live"));
    document.title = page.title;
    freshness.textContent = "live";
  } catch (problem) {
    document.title = "no answer";
    freshness.textContent = "no answer since " + (refresh.last || "the page was opened") + ": " + problem.message;
    setTimeout(refresh, 2000);
    return;
  }
  refresh.last = new Date().toLocaleTimeString();
  setTimeout(refresh, 2000);
}
setTimeout(refresh, 2000);
