// A file that is made here and saved by the browser.

const KEPT_MS = 10_000; // browsers read it a moment later

/** `content`: text, or a Blob. */
export function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
