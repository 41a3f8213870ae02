"use strict";
(() => {
  // A link into something that is closed opens it.
  const reveal = () => {
    let place = null;
    try {
      place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return;
    }
    if (!place) return;
    for (let box = place; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    place.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) reveal(); // the same place again changes no hash
  });
  for (const button of document.querySelectorAll("[data-all]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      for (const box of document.querySelectorAll("details.attempt")) box.open = button.dataset.all === "open";
    });
  }
  reveal();
})();
