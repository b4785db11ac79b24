"use strict";

const THEMES = ["system", "light", "dark"];

function theme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = `Theme: ${name}`;
}

document.getElementById("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || "system";
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

/** First the page, then its data. */
requestAnimationFrame(() =>
  setTimeout(() =>
    openBook().then(
      () => (document.documentElement.dataset.ready = "true"),
      (problem) => document.getElementById("episodes").append(make("p", { class: "limit" }, `The episodes could not be unpacked (${problem.message}). A browser of 2023 or newer is needed.`)),
    ),
  ),
);
