// Runs before the first paint, so that nobody who chose the dark theme sees a white flash.
(() => {
  const chosen = localStorage.getItem("agent-relay.theme");
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
})();
