// The one place that names the libraries the page is made with; everything else imports them from here.

import { Component, h } from "../vendor/preact/preact.mjs";
import htm from "../vendor/htm/htm.mjs";

export { h, render, Component, Fragment, createRef } from "../vendor/preact/preact.mjs";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact/hooks.mjs";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "../vendor/signals/signals.mjs";

export const html = htm.bind(h);

/** Class names of those parts that are true: `classes("row", isOn && "on")`. */
export const classes = (...parts) => parts.filter(Boolean).join(" ");

/** A component that is not rendered again while `isSame(before, after)` of its properties; signals it reads still reach it. */
export function memo(component, isSame) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return !isSame(this.props, next);
    }

    render(props) {
      return h(component, props);
    }
  };
}

const RETRY_MS = 2_000;
const loaded = new Map();

/** Loads a style sheet of the package once; resolves when it applies. `path` is relative to the static folder. While the daemon is
 * away it is tried again and again. */
export function loadStyle(path) {
  if (!loaded.has(path)) {
    loaded.set(path, new Promise((resolve) => {
      const attempt = () => {
        const link = document.createElement("link");
        link.rel = "stylesheet";
        link.href = new URL(`../${path}`, import.meta.url).href;
        link.onload = () => resolve();
        link.onerror = () => {
          link.remove();
          setTimeout(attempt, RETRY_MS);
        };
        document.head.append(link);
      };
      attempt();
    }));
  }
  return loaded.get(path);
}
