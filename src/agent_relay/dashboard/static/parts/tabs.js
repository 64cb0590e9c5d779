// One of a few: <Tabs label="Kind" value=${…} options=${[{ value, label, count }]} onChange=${…} />.

import { html } from "../lib/ui.js";

export function Tabs({ label, value, options, onChange }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = options.findIndex((each) => each.value === value);
    onChange(options[(at + step + options.length) % options.length].value);
    event.currentTarget.children[(at + step + options.length) % options.length].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${options.map((each) => html`<button type="button" role="tab" key=${each.value} aria-selected=${each.value === value}
      tabindex=${each.value === value ? 0 : -1} onClick=${() => onChange(each.value)}>
      ${each.label}${each.count ? html`<span class="faint tabular">${each.count}</span>` : null}
    </button>`)}
  </div>`;
}
